/**
 * Webhook calls: JSON over HTTPS with a verified certificate, with limits of time, size and redirects. Source:
 * k8s.io/apiserver/pkg/util/webhook.
 */

import type { JsonObject, JsonValue } from '../../api/meta/object.ts';
import { hostOfUrl, portOfUrl } from '../../base/addresses/url-endpoint.ts';
import { CodedError } from '../../base/errors.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import { decodeJson } from '../http/decode.ts';
import type { BackendConnector } from '../port.ts';
import { type AddressRule, type Destinations, mayBeNamed } from '../server/destinations.ts';
import type { WatchCache } from '../watch-cache/watch-cache.ts';
import { identityFor, type WebhookIdentities, type WebhookIdentity } from './identities.ts';
import { type HostPort, serviceEndpoints } from './service-endpoints.ts';
import { escapedPath, joinedPath, pathOfUrl } from './webhook-path.ts';

const CONNECT_TIMEOUT_MS = 10_000;
const MAX_ANSWER = 16 * 1024 * 1024;
/** Maximum number of redirects, as in Go's HTTP client. */
const MAX_REDIRECTS = 10;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const KEEPS_BODY: ReadonlySet<number> = new Set([307, 308]);
/** Highest status code of a successful response, as in client-go. */
const MAX_GOOD = 206;

/** Address of a webhook as in its configuration. */
export interface WebhookClient {
  readonly url?: string;
  readonly service?: {
    readonly namespace: string;
    readonly name: string;
    readonly path?: string;
    readonly port?: number;
  };
  /** PEM bundle of CAs in base64. Absent: the public authorities. */
  readonly caBundle?: string;
}

export interface WebhookCallerDeps {
  readonly backends: BackendConnector;
  readonly cache: WatchCache;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly destinations: Destinations;
}

interface PostOptions {
  /** Query that is appended to the path. */
  readonly query?: string;
  readonly identities?: WebhookIdentities | undefined;
}

interface Address {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly serverName: string;
  /** Value of the Host header. */
  readonly authority: string;
}

/** One request of a call. A redirect causes another request. */
interface Hop {
  readonly address: Address;
  /** Body of the request. Undefined for GET requests. */
  readonly payload: Buffer | undefined;
  readonly credentials: WebhookIdentity;
  readonly allowAddress: AddressRule;
}

export class WebhookCaller {
  readonly #deps: WebhookCallerDeps;

  constructor(deps: WebhookCallerDeps) {
    this.#deps = deps;
  }

  /** Posts `body` and returns the body of the 200 response. Throws a CodedError. */
  async post(
    client: WebhookClient,
    body: JsonObject,
    timeoutMs: number,
    { query = '', identities }: PostOptions = {},
  ): Promise<JsonValue> {
    const { clock, destinations } = this.#deps;
    const address = this.#resolve(client);
    const { certificate, key, authorization } =
      (identities === undefined ? undefined : identityFor(identities, targetOf(client, address))) ?? {};
    const credentials = {
      ...(certificate === undefined || key === undefined ? {} : { certificate, key }),
      ...(authorization === undefined ? {} : { authorization }),
    };
    const payload = Buffer.from(JSON.stringify(body));
    const abort = new AbortController();
    const timer = clock.setTimer(timeoutMs, () => abort.abort());
    try {
      let hop: Hop = {
        address: query === '' ? address : { ...address, path: `${address.path}?${query}` },
        payload,
        credentials,
        allowAddress: client.service === undefined ? mayBeNamed : destinations.extension(address.port),
      };
      for (let redirects = 0; ; redirects += 1) {
        const { statusCode = 0, headers, chunks } = await this.#send(client, hop, timeoutMs, abort.signal);
        const { location } = headers;
        if (REDIRECTS.has(statusCode) && location !== undefined) {
          if (redirects >= MAX_REDIRECTS)
            throw new CodedError('too-many-redirects', `stopped after ${MAX_REDIRECTS} redirects`);
          hop = this.#redirected(hop, statusCode, location);
          continue;
        }
        if (statusCode < 200 || statusCode > MAX_GOOD)
          throw new CodedError('unexpected-status', refusal(statusCode, Buffer.concat(chunks)));
        return decodeJson(Buffer.concat(chunks));
      }
    } catch (error) {
      const isLate = abort.signal.aborted;
      abort.abort();
      if (isLate)
        throw new CodedError('timeout', `the webhook did not answer within ${timeoutMs} ms`, { cause: error });
      throw error;
    } finally {
      timer.cancel();
    }
  }

  async #send(client: WebhookClient, hop: Hop, timeoutMs: number, signal: AbortSignal) {
    const { backends } = this.#deps;
    const { address, payload, allowAddress } = hop;
    const { certificate, key, authorization } = hop.credentials;
    const answer = await backends.request(
      {
        network: client.service === undefined ? 'controlplane' : 'cluster',
        scheme: 'https',
        host: address.host,
        port: address.port,
        method: payload === undefined ? 'GET' : 'POST',
        path: address.path,
        headers: {
          host: address.authority,
          accept: 'application/json',
          'user-agent': 'kube-apiserver-admission',
          ...(payload === undefined ? {} : { 'content-type': 'application/json', 'content-length': payload.length }),
          ...(authorization === undefined ? {} : { authorization }),
        },
        tls: {
          authority: authorityOf(client, backends.publicAuthorities),
          ...(certificate === undefined || key === undefined ? {} : { certificate, key }),
          ...(client.service === undefined ? {} : { serverName: address.serverName }),
        },
        allowAddress,
        connectTimeoutMs: Math.min(CONNECT_TIMEOUT_MS, timeoutMs),
        signal,
        pooled: true,
      },
      payload,
    );
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > MAX_ANSWER)
        throw new CodedError('answer-too-large', `the webhook's answer is larger than ${MAX_ANSWER} bytes`);
      chunks.push(chunk);
    }
    return { statusCode: answer.statusCode, headers: answer.headers, chunks };
  }

  /**
   * The request after a redirect, as Go's HTTP client sends it: only 307 and 308 repeat method and body. Another host
   * gets no credentials and must not be an address of the control plane (CVE-2020-8561).
   */
  #redirected({ address, payload, credentials, allowAddress }: Hop, code: number, location: string): Hop {
    let url: URL;
    try {
      url = new URL(location, `https://${address.authority}${address.path}`);
    } catch (error) {
      throw new CodedError('bad-redirect', `failed to parse Location header ${JSON.stringify(location)}`, {
        cause: error,
      });
    }
    if (url.protocol !== 'https:') throw new CodedError('bad-redirect', `redirect to ${url.protocol} is not followed`);
    const repeated = KEEPS_BODY.has(code) ? payload : undefined;
    const path = `${url.pathname}${url.search}`;
    if (url.host === new URL(`https://${address.authority}`).host)
      return { address: { ...address, path }, payload: repeated, credentials, allowAddress };
    const host = hostOfUrl(url);
    const port = portOfUrl(url);
    return {
      address: { host, port, path, serverName: address.serverName, authority: url.host },
      payload: repeated,
      credentials: {},
      allowAddress: this.#deps.destinations.extension(port),
    };
  }

  #resolve(client: WebhookClient): Address {
    if (client.url !== undefined) {
      const url = new URL(client.url);
      const host = hostOfUrl(url);
      return {
        host,
        port: portOfUrl(url),
        path: pathOfUrl(url),
        serverName: host,
        authority: url.host,
      };
    }
    const { service } = client;
    if (service === undefined) throw new CodedError('no-address', 'the webhook names neither a url nor a service');
    const found = serviceEndpoints(this.#deps.cache, service.namespace, service.name, service.port ?? 443);
    const { host, port } = found[Math.floor(this.#deps.random.random() * found.length)] as HostPort;
    const serverName = `${service.name}.${service.namespace}.svc`;
    const path = escapedPath(joinedPath(service.path ?? ''));
    return { host, port, path, serverName, authority: `${serverName}:${service.port ?? 443}` };
  }
}

/** Key for the credentials: the configured host with its port. */
function targetOf({ url }: WebhookClient, { authority, port }: Address): string {
  return url === undefined || /:\d+$/.test(authority) ? authority : `${authority}:${port}`;
}

/** Error messages of client-go by status code. Source: k8s.io/apimachinery/pkg/api/errors, NewGenericServerResponse. */
const REFUSALS: ReadonlyMap<number, string> = new Map([
  [400, 'the server rejected our request for an unknown reason'],
  [401, 'the server has asked for the client to provide credentials'],
  [404, 'the server could not find the requested resource'],
  [405, 'the server does not allow this method on the requested resource'],
  [409, 'the server reported a conflict'],
  [422, 'the server rejected our request due to an error in our request'],
  [429, 'the server has received too many requests and has asked us to try again later'],
  [503, 'the server is currently unable to handle the request'],
  [504, 'the server was unable to return a response in the time allotted, but may still be processing the request'],
]);
const MAX_QUOTED = 1024;

function refusal(code: number, body: Buffer): string {
  const known = REFUSALS.get(code);
  if (known !== undefined) return known;
  const text = body.toString('utf8', 0, MAX_QUOTED).trim();
  if (code >= 500) return `an error on the server (${JSON.stringify(text)}) has prevented the request from succeeding`;
  return `the server responded with the status code ${code} but did not return more information`;
}

function authorityOf(client: WebhookClient, publicAuthorities: string): string {
  if (client.caBundle === undefined || client.caBundle === '') return publicAuthorities;
  return Buffer.from(client.caBundle, 'base64').toString('utf8');
}
