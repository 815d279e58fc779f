/**
 * Webhook calls: HTTPS with a verified certificate, JSON there and back, no redirects, bounded in time and size.
 * Source: k8s.io/apiserver/pkg/util/webhook.
 */
import type { JsonObject, JsonValue } from '../../../api/meta/object.ts';
import type { Clock, RandomSource } from '../../../base/clock.ts';
import { CodedError } from '../../../base/errors.ts';
import { type Destinations, mayBeNamed } from '../destinations.ts';
import { decodeJson } from '../http/decode.ts';
import type { BackendConnector } from '../port.ts';
import type { WatchCache } from '../watchcache/watch-cache.ts';
import { identityFor, type WebhookIdentities } from './identities.ts';
import { type HostPort, serviceEndpoints } from './service-endpoints.ts';

const CONNECT_TIMEOUT_MS = 10_000;
const MAX_ANSWER = 16 * 1024 * 1024;

/** Where a webhook is, as definitions and configurations say it. */
export interface WebhookClient {
  readonly url?: string;
  readonly service?: {
    readonly namespace: string;
    readonly name: string;
    readonly path?: string;
    readonly port?: number;
  };
  /** Base64 of PEM; absent: the certificate authorities that everybody trusts. */
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
  /** Put behind the path. */
  readonly query?: string;
  readonly identities?: WebhookIdentities | undefined;
}

interface Address {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly serverName: string;
  /** What the Host header says. */
  readonly authority: string;
}

export class WebhookCaller {
  readonly #deps: WebhookCallerDeps;

  constructor(deps: WebhookCallerDeps) {
    this.#deps = deps;
  }

  /** Posts `body` and returns what came back with 200. Throws a CodedError that says what went wrong. */
  async post(
    client: WebhookClient,
    body: JsonObject,
    timeoutMs: number,
    { query = '', identities }: PostOptions = {},
  ): Promise<JsonValue> {
    const { backends, clock, destinations } = this.#deps;
    const address = this.#resolve(client);
    const { certificate, key, authorization } =
      (identities === undefined ? undefined : identityFor(identities, targetOf(client, address))) ?? {};
    const payload = Buffer.from(JSON.stringify(body));
    const abort = new AbortController();
    const timer = clock.setTimer(timeoutMs, () => abort.abort());
    try {
      const answer = await backends.request(
        {
          network: client.service === undefined ? 'controlplane' : 'cluster',
          scheme: 'https',
          host: address.host,
          port: address.port,
          method: 'POST',
          path: query === '' ? address.path : `${address.path}?${query}`,
          headers: {
            host: address.authority,
            'content-type': 'application/json',
            accept: 'application/json',
            'content-length': payload.length,
            'user-agent': 'kube-apiserver-admission',
            ...(authorization === undefined ? {} : { authorization }),
          },
          tls: {
            authority: authorityOf(client, backends.publicAuthorities),
            ...(certificate === undefined || key === undefined ? {} : { certificate, key }),
            ...(client.service === undefined ? {} : { serverName: address.serverName }),
          },
          allowAddress: client.service === undefined ? mayBeNamed : destinations.extension(address.port),
          connectTimeoutMs: Math.min(CONNECT_TIMEOUT_MS, timeoutMs),
          signal: abort.signal,
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
      if (answer.statusCode !== 200) {
        throw new CodedError('unexpected-status', refusal(answer.statusCode ?? 0, Buffer.concat(chunks)));
      }
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

  #resolve(client: WebhookClient): Address {
    if (client.url !== undefined) {
      const url = new URL(client.url);
      const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
      return {
        host,
        port: url.port === '' ? 443 : Number(url.port),
        path: `${url.pathname}${url.search}`,
        serverName: host,
        authority: url.host,
      };
    }
    const { service } = client;
    if (service === undefined) throw new CodedError('no-address', 'the webhook names neither a url nor a service');
    const found = serviceEndpoints(this.#deps.cache, service.namespace, service.name, service.port ?? 443);
    const { host, port } = found[Math.floor(this.#deps.random.random() * found.length)] as HostPort;
    const serverName = `${service.name}.${service.namespace}.svc`;
    return { host, port, path: service.path ?? '/', serverName, authority: `${serverName}:${service.port ?? 443}` };
  }
}

/** What is looked up: the host that is named, with its port. */
function targetOf({ url }: WebhookClient, { authority, port }: Address): string {
  return url === undefined || /:\d+$/.test(authority) ? authority : `${authority}:${port}`;
}

/**
 * What client-go says of such an answer, which upstream asks with. Source: k8s.io/apimachinery/pkg/api/errors,
 * NewGenericServerResponse.
 */
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
