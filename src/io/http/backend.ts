/**
 * Requests from the API server to kubelets, pods and services. The address is judged after name resolution and right before the
 * connection, so a name that resolves differently the second time gains nothing. Redirects are never followed.
 */

import { lookup } from 'node:dns';
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest, type RequestOptions } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { Duplex, Readable } from 'node:stream';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { CodedError, messageOf } from '../../base/errors.ts';
import type {
  BackendConnector,
  BackendRequest,
  EgressProxy,
  Network,
  UpgradeAnswer,
} from '../../components/apiserver/port.ts';
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
 * Connections to servers that are asked again and again. One that has been idle for a minute is closed: servers keep theirs for 90
 * seconds, and a request on one that they are about to close would be lost.
 */
const pool = new Agent({ keepAlive: true, maxFreeSockets: 16, timeout: 60_000 });

type Connection = NonNullable<RequestOptions['createConnection']>;

/** Connects to `target` through a proxy; TLS, if any, is with `target`. */
function through(proxy: EgressProxy, target: BackendRequest, host: string): Connection {
  return (options, done) => {
    const authority = `${host.includes(':') ? `[${host}]` : host}:${target.port}`;
    const opened = (error: Error | null, socket?: Duplex): void => done?.(error, socket as Duplex);
    openTunnel(proxy, authority, target.connectTimeoutMs, target.signal).then(
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

function open(target: BackendRequest, pooled: boolean, proxy: EgressProxy | undefined): ClientRequest {
  const host = target.host.startsWith('[') ? target.host.slice(1, -1) : target.host;
  if (isIP(host) !== 0 && !target.allowAddress(host)) throw refused(host, host);
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
  const tls = target.tls ?? {};
  return httpsRequest({
    ...options,
    ...(tls.certificate === undefined ? {} : { cert: tls.certificate, key: tls.key }),
    ...(tls.serverName === undefined ? {} : { servername: tls.serverName }),
    ...(tls.authority === undefined ? { rejectUnauthorized: false } : { ca: tls.authority }),
  });
}

/** Settles with the first of: answer, upgrade, failure. The connection must stand within the time allowed. */
function exchange(
  target: BackendRequest,
  send: (request: ClientRequest) => void,
  { pooled, proxy }: { readonly pooled: boolean; readonly proxy: EgressProxy | undefined },
): Promise<UpgradeAnswer> {
  return new Promise((resolve, reject) => {
    let request: ClientRequest;
    try {
      request = open(target, pooled, proxy);
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
      if (request.reusedSocket || proxy !== undefined) clearTimeout(timer);
      else socket.once(target.scheme === 'https' ? 'secureConnect' : 'connect', () => clearTimeout(timer));
    });
    request.once('error', (error) => {
      clearTimeout(timer);
      if (error instanceof CodedError) reject(error);
      else if (request.reusedSocket && isClosed(error)) reject(new StaleConnection(error));
      else if (target.signal.aborted) reject(new CodedError('aborted', 'the client went away', { cause: error }));
      else
        reject(
          new CodedError('connect-failed', `${target.host}:${target.port}: ${messageOf(error)}`, { cause: error }),
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

/** A connection of the pool was closed by the other side before anything was answered. */
class StaleConnection extends CodedError {
  constructor(cause: Error) {
    super('connect-failed', messageOf(cause), { cause });
  }
}

function isClosed(error: NodeJS.ErrnoException): boolean {
  return error.code === 'ECONNRESET' || error.code === 'EPIPE';
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
  try {
    return await exchange(target, send, { pooled: target.pooled === true, proxy });
  } catch (error) {
    const repeatable = body === undefined ? target.method === 'GET' || target.method === 'HEAD' : Buffer.isBuffer(body);
    if (!(error instanceof StaleConnection) || !repeatable) throw error;
    return exchange(target, send, { pooled: false, proxy });
  }
}

export function createBackends(egress: ReadonlyMap<Network, EgressProxy>): BackendConnector {
  return {
    async request(target: BackendRequest, body: Readable | Buffer | undefined): Promise<IncomingMessage> {
      const answer = await answered(target, body, egress.get(target.network));
      if (answer.upgraded) {
        answer.socket.destroy();
        throw new CodedError('connect-failed', `${target.host}:${target.port} switched protocols without being asked`);
      }
      return answer.response;
    },
    upgrade: (target) =>
      exchange(target, (request) => request.end(), { pooled: false, proxy: egress.get(target.network) }),
  };
}
