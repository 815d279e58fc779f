/**
 * Webhook calls: JSON over HTTPS with a verified certificate, with limits of time and size. Source:
 * k8s.io/apiserver/pkg/util/webhook. Redirects are not followed, because a webhook could otherwise send requests with
 * the API server's network access (CVE-2020-8561).
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
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
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

interface WebhookRequest {
  readonly address: Address;
  readonly payload: Buffer;
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
      const request: WebhookRequest = {
        address: query === '' ? address : { ...address, path: `${address.path}?${query}` },
        payload,
        credentials,
        allowAddress: client.service === undefined ? mayBeNamed : destinations.extension(address.port),
      };
      const { statusCode = 0, headers, chunks } = await this.#send(client, request, timeoutMs, abort.signal);
      if (REDIRECTS.has(statusCode) && headers.location !== undefined)
        throw new CodedError('redirect', 'the webhook attempted to redirect the request, which is not permitted');
      if (statusCode < 200 || statusCode > MAX_GOOD)
        throw new CodedError('unexpected-status', refusal(statusCode, Buffer.concat(chunks)));
      return decodeJson(Buffer.concat(chunks));
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

  async #send(client: WebhookClient, request: WebhookRequest, timeoutMs: number, signal: AbortSignal) {
    const { backends } = this.#deps;
    const { address, payload, allowAddress } = request;
    const { certificate, key, authorization } = request.credentials;
    const answer = await backends.request(
      {
        network: client.service === undefined ? 'controlplane' : 'cluster',
        scheme: 'https',
        host: address.host,
        port: address.port,
        method: 'POST',
        path: address.path,
        headers: {
          host: address.authority,
          accept: 'application/json',
          'user-agent': 'kube-apiserver-admission',
          'content-type': 'application/json',
          'content-length': payload.length,
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
