/**
 * Requests from the API server to kubelets, pods and services. The address is checked after name resolution and
 * immediately before the connection, so that a name that resolves differently the second time cannot bypass the check.
 * Redirects are never followed.
 */

import { lookup } from 'node:dns';
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest, type RequestOptions } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { Duplex, Readable } from 'node:stream';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { isAddress } from '../../../base/addresses/destinations.ts';
import { hostOfUrl, portOfUrl } from '../../../base/addresses/url-endpoint.ts';
import { CodedError, messageOf } from '../../../base/errors.ts';
import { authoritiesOf } from '../../../wire/outbound/connection.ts';
import { type OutboundSettings, proxyFor } from '../../../wire/outbound/proxy-choice.ts';
import type { BackendConnector, BackendRequest, EgressProxy, Network, UpgradeAnswer } from '../../port.ts';
import { connectionFailure, isTrustedForHost, looksSelfSigned } from './server-certificate.ts';
import { openTunnel } from './tunnel.ts';

const refused = (host: string, address: string): CodedError =>
  new CodedError('address-refused', `address ${address} of ${host} is not allowed`);

function guardedLookup(target: BackendRequest): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, '', 0);
      const allowed = addresses.filter((each) => target.allowAddress(each.address));
      const [first] = allowed;
      if (first === undefined) return callback(refused(hostname, addresses[0]?.address ?? ''), '', 0);
      if (options.all) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}

/**
 * Kept connections. The pool closes an idle connection after a minute. Servers close idle connections after 90 seconds,
 * and a request on a connection that is about to be closed would be lost.
 */
const pool = new Agent({ keepAlive: true, maxFreeSockets: 16, timeout: 60_000 });

type Connection = NonNullable<RequestOptions['createConnection']>;

const placeOf = (target: BackendRequest, host: string): string =>
  `${host.includes(':') ? `[${host}]` : host}:${target.port}`;

/** Connects to `target` through a proxy. If `target` uses TLS, TLS runs inside the tunnel. */
function through(proxy: EgressProxy, target: BackendRequest, host: string): Connection {
  return (options, done) => {
    const opened = (error: Error | null, socket?: Duplex): void => done?.(error, socket as Duplex);
    openTunnel(proxy, placeOf(target, host), target.connectTimeoutMs, target.signal).then(
      (socket): void => {
        if (target.scheme === 'http') {
          opened(null, socket);
          return;
        }
        const { servername = isIP(host) === 0 ? host : '' } = options as { servername?: string };
        const secured = connectTls({ ...(options as ConnectionOptions), socket, host, servername });
        secured.once('error', opened).once('secureConnect', () => {
          secured.removeListener('error', opened);
          opened(null, secured);
        });
      },
      (error: Error) => opened(error),
    );
    return undefined;
  };
}

/** Connects to `target`. This function verifies the certificate instead of OpenSSL, before any data is sent. */
function checkedConnection(proxy: EgressProxy | undefined, target: BackendRequest, host: string): Connection {
  return (_, done) => {
    const { authority = '', certificate, key, serverName = host } = target.tls ?? {};
    const opened = (error: Error | null, socket?: Duplex): void => done?.(error, socket as Duplex);
    const connect = (socket?: Duplex): void => {
      const secured = connectTls({
        ...(socket === undefined ? { host, port: target.port, lookup: guardedLookup(target) } : { socket }),
        ...(certificate === undefined ? {} : { cert: certificate, key }),
        servername: isIP(serverName) === 0 ? serverName : '',
        rejectUnauthorized: false,
      });
      const late = setTimeout(() => secured.destroy(new Error('no TLS handshake in time')), target.connectTimeoutMs);
      secured.once('close', () => clearTimeout(late));
      secured.once('error', opened).once('secureConnect', () => {
        clearTimeout(late);
        secured.removeListener('error', opened);
        const leaf = secured.getPeerX509Certificate();
        if (leaf !== undefined && isTrustedForHost(leaf, authority, serverName, Date.now())) {
          opened(null, secured);
          return;
        }
        secured.destroy();
        opened(Object.assign(new Error('refused certificate'), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }));
      });
    };
    if (proxy === undefined) connect();
    else {
      openTunnel(proxy, placeOf(target, host), target.connectTimeoutMs, target.signal).then(connect, opened);
    }
    return undefined;
  };
}

interface Route {
  readonly pooled: boolean;
  readonly proxy: EgressProxy | undefined;
  /** True if this module verifies the server's certificate instead of OpenSSL. */
  readonly judging?: true;
}

function open(target: BackendRequest, { pooled, proxy, judging }: Route): ClientRequest {
  const host = target.host.startsWith('[') ? target.host.slice(1, -1) : target.host;
  if (isAddress(host) && !target.allowAddress(host)) throw refused(host, host);
  const options: RequestOptions = {
    host,
    port: target.port,
    method: target.method,
    path: target.path,
    headers: target.headers,
    ...(proxy === undefined
      ? { agent: pooled && target.scheme === 'https' ? pool : false, lookup: guardedLookup(target) }
      : { createConnection: through(proxy, target, host) }),
    signal: target.signal,
  };
  if (target.scheme === 'http') return httpRequest(options);
  if (judging) {
    const { agent: _, lookup: __, ...plain } = options;
    return httpsRequest({ ...plain, createConnection: checkedConnection(proxy, target, host) });
  }
  const tls = target.tls ?? {};
  return httpsRequest({
    ...options,
    ...(tls.certificate === undefined ? {} : { cert: tls.certificate, key: tls.key }),
    ...(tls.serverName === undefined ? {} : { servername: tls.serverName }),
    ...(tls.authority === undefined
      ? { rejectUnauthorized: false }
      : { ca: tls.authority, allowPartialTrustChain: true }),
  });
}

/**
 * Settles when the first of response, upgrade or failure arrives. The connection must be established within the time
 * limit.
 */
function exchange(
  target: BackendRequest,
  send: (request: ClientRequest) => void,
  route: Route,
): Promise<UpgradeAnswer> {
  return new Promise((resolve, reject) => {
    let request: ClientRequest;
    try {
      request = open(target, route);
    } catch (error) {
      reject(error);
      return;
    }
    const timer = setTimeout(() => {
      request.destroy(
        new CodedError(
          'connect-failed',
          `${target.host}:${target.port} did not answer within ${target.connectTimeoutMs} ms`,
        ),
      );
    }, target.connectTimeoutMs);
    request.once('socket', (socket) => {
      // The address of a kept connection was checked for another request, so it is checked again.
      const { remoteAddress } = socket;
      if (request.reusedSocket && remoteAddress !== undefined && !target.allowAddress(remoteAddress)) {
        request.destroy(refused(target.host, remoteAddress));
        return;
      }
      if (request.reusedSocket || route.proxy !== undefined || route.judging) clearTimeout(timer);
      else socket.once(target.scheme === 'https' ? 'secureConnect' : 'connect', () => clearTimeout(timer));
    });
    request.once('error', (error) => {
      clearTimeout(timer);
      if (error instanceof CodedError) reject(error);
      else if (request.reusedSocket && isClosed(error)) reject(new StaleConnection(error));
      else if (target.signal.aborted) reject(new CodedError('aborted', 'the client disconnected', { cause: error }));
      else
        reject(
          new CodedError('connect-failed', `${target.host}:${target.port}: ${connectionFailure(error)}`, {
            cause: error,
          }),
        );
    });
    request.once('response', (response) => {
      clearTimeout(timer);
      resolve({ upgraded: false, response });
    });
    request.once('upgrade', (response: IncomingMessage, socket, head) => {
      clearTimeout(timer);
      resolve({ upgraded: true, response, socket, head });
    });
    send(request);
  });
}

/** Error: the server closed a pooled connection before it responded. */
class StaleConnection extends CodedError {
  constructor(cause: Error) {
    super('connect-failed', messageOf(cause), { cause });
  }
}

function isClosed(error: NodeJS.ErrnoException): boolean {
  return error.code === 'ECONNRESET' || error.code === 'EPIPE';
}

/**
 * Adds the framing of a body of unknown length. Without it, node:http writes the body of a DELETE or OPTIONS request as
 * if it were the next request of the connection.
 */
function framed(target: BackendRequest, body: Readable | Buffer | undefined): BackendRequest {
  const { headers } = target;
  if (body === undefined || headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined)
    return target;
  const framing = Buffer.isBuffer(body) ? { 'content-length': body.length } : { 'transfer-encoding': 'chunked' };
  return { ...target, headers: { ...headers, ...framing } };
}

async function answered(
  target: BackendRequest,
  body: Readable | Buffer | undefined,
  proxy: EgressProxy | undefined,
): Promise<UpgradeAnswer> {
  const send = (request: ClientRequest): void => {
    if (body === undefined || Buffer.isBuffer(body)) request.end(body);
    else body.pipe(request);
  };
  const hasBodyAtHand = body === undefined || Buffer.isBuffer(body);
  try {
    return await exchange(target, send, { pooled: target.pooled === true, proxy });
  } catch (error) {
    // No data has been sent to a server that was not verified, so a retry is safe.
    if (hasBodyAtHand && looksSelfSigned((error as CodedError).cause))
      return exchange(target, send, { pooled: false, proxy, judging: true });
    const repeatable = body === undefined ? target.method === 'GET' || target.method === 'HEAD' : hasBodyAtHand;
    if (!(error instanceof StaleConnection) || !repeatable) throw error;
    return exchange(target, send, { pooled: false, proxy });
  }
}

/** The host's proxy for a server that is named by a URL. Source: net/http ProxyFromEnvironment in kube-apiserver. */
function outboundProxy(target: BackendRequest, settings: OutboundSettings): EgressProxy | undefined {
  if (target.network !== 'controlplane') return undefined;
  const url = proxyFor(new URL(`${target.scheme}://${placeOf(target, target.host.replace(/^\[|\]$/g, ''))}`), settings);
  if (url === undefined) return undefined;
  const proxy = new URL(url);
  const { protocol, username, password } = proxy;
  const login = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64');
  const secure = protocol === 'https:';
  return {
    at: { host: hostOfUrl(proxy), port: portOfUrl(proxy) },
    ...(secure ? { tls: { authority: authoritiesOf(settings).join('\n') } } : {}),
    ...(username === '' ? {} : { authorization: `Basic ${login}` }),
  };
}

export function createBackends(
  egress: ReadonlyMap<Network, EgressProxy>,
  outbound: OutboundSettings,
): BackendConnector {
  const proxyOf = (target: BackendRequest): EgressProxy | undefined =>
    egress.get(target.network) ?? outboundProxy(target, outbound);
  return {
    get publicAuthorities() {
      return authoritiesOf(outbound).join('\n');
    },
    async request(target: BackendRequest, body: Readable | Buffer | undefined): Promise<IncomingMessage> {
      const answer = await answered(framed(target, body), body, proxyOf(target));
      if (answer.upgraded) {
        answer.socket.destroy();
        throw new CodedError(
          'connect-failed',
          `${target.host}:${target.port} switched protocols without a request for it`,
        );
      }
      return answer.response;
    },
    upgrade: (target) => exchange(target, (request) => request.end(), { pooled: false, proxy: proxyOf(target) }),
  };
}
