/** Requests to servers: HTTP/1.1 over kept connections, or HTTP/2 if the server supports only that. */
import { type ClientRequest, Agent as HttpAgent, request as httpRequest } from 'node:http';
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { type ConnectionOptions, createSecureContext, type SecureContext } from 'node:tls';
import { BoundedMap } from '../../../base/bounded-map.ts';
import type { Backend, Choice } from '../core/port.ts';
import type { RawHeaders } from './headers.ts';

/** Maximum number of idle connections per server. Further connections are closed after their request. */
const IDLE_PER_SERVER = 64;
const IDLE_MS = 15_000;
const HTTP2_IDLE_MS = 60_000;
const MAX_CONTEXTS = 1_024;

export interface UpstreamRequest {
  readonly backend: Backend;
  readonly choice: Choice;
  readonly method: string;
  readonly path: string;
  readonly headers: RawHeaders;
}

export class Upstreams {
  readonly #http = new HttpAgent({ keepAlive: true, maxFreeSockets: IDLE_PER_SERVER, timeout: IDLE_MS });
  readonly #https = new HttpsAgent({ keepAlive: true, maxFreeSockets: IDLE_PER_SERVER, timeout: IDLE_MS });
  readonly #sessions = new Map<string, ClientHttp2Session>();
  readonly #contexts = new BoundedMap<string, SecureContext>(MAX_CONTEXTS);
  #clusterCa = '';

  useClusterCa(pem: string): void {
    this.#clusterCa = pem;
  }

  /** Starts a request to a server. Throws if the method, the path or a header cannot be sent. */
  request({ backend, choice, method, path, headers }: UpstreamRequest): ClientRequest {
    const { address: host, port } = choice.endpoint;
    const common = { host, port, method, path, headers, setHost: false };
    if (!backend.upstream.tls) return httpRequest({ ...common, agent: this.#http });
    return httpsRequest({ ...common, agent: this.#https, ...this.tlsOptions(backend) });
  }

  /** Starts an upgrade on a separate connection. */
  upgrade({ backend, choice, method, path, headers }: UpstreamRequest): ClientRequest {
    const { address: host, port } = choice.endpoint;
    const common = { host, port, method, path, headers, setHost: false, agent: false as const };
    return backend.upstream.tls ? httpsRequest({ ...common, ...this.tlsOptions(backend) }) : httpRequest(common);
  }

  tlsOptions({ upstream }: Backend): ConnectionOptions {
    if (!upstream.tls) return {};
    const { ca, serverName: servername } = upstream;
    const secureContext = this.#contextOf(ca ?? this.#clusterCa);
    // `ca` separates the kept connections of the agent.
    if (ca === undefined) return { ca: this.#clusterCa, secureContext, servername };
    // A route with its own CA trusts that CA for every server name.
    return { ca, secureContext, servername, checkServerIdentity: () => undefined };
  }

  /** Parsing a bundle of hundreds of certificates takes 20 ms, which each connection would repeat. */
  #contextOf(ca: string): SecureContext {
    const known = this.#contexts.get(ca);
    if (known !== undefined) return known;
    const context = createSecureContext({ ca });
    this.#contexts.set(ca, context);
    return context;
  }

  session(backend: Backend, { key }: Choice): ClientHttp2Session {
    const { upstream } = backend;
    const scheme = upstream.tls ? 'https' : 'http';
    const id = upstream.tls ? `${scheme} ${key} ${upstream.serverName} ${upstream.ca ?? ''}` : `${scheme} ${key}`;
    const known = this.#sessions.get(id);
    if (known !== undefined && !known.closed && !known.destroyed) return known;
    // Push is disabled: pushed streams would have no listeners, and the reset of such a stream would end this process.
    const session = connectHttp2(`${scheme}://${key}`, {
      ...this.tlsOptions(backend),
      settings: { enablePush: false },
    });
    session.on('stream', (pushed) => pushed.on('error', () => {}));
    this.#sessions.set(id, session);
    const forget = (): void => {
      if (this.#sessions.get(id) === session) this.#sessions.delete(id);
    };
    session.on('close', forget);
    session.on('error', forget);
    session.on('goaway', forget);
    session.setTimeout(HTTP2_IDLE_MS, () => {
      if (Object.keys(session.state).length === 0 || session.state.outboundQueueSize === 0) session.close();
    });
    return session;
  }

  close(): void {
    this.#http.destroy();
    this.#https.destroy();
    for (const session of this.#sessions.values()) session.destroy(undefined, constants.NGHTTP2_CANCEL);
    this.#sessions.clear();
  }
}
