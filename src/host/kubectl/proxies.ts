/**
 * Proxies between the client and the API server: `proxy-url` of the kubeconfig, or the environment variables as Go
 * interprets them. Source: golang.org/x/net/http/httpproxy, k8s.io/client-go/tools/clientcmd.
 */

import { once } from 'node:events';
import { request as plainRequest } from 'node:http';
import { Agent, request as tlsRequest } from 'node:https';
import { isIP, connect as tcpConnect } from 'node:net';
import { Duplex } from 'node:stream';
import { type TLSSocket, connect as tlsConnect } from 'node:tls';
import { hostOfUrl, portOfUrl } from '../../base/addresses/url-endpoint.ts';
import { ClientError } from '../../kubectl/core/errors.ts';
import { entriesOf, proxyFor } from '../../wire/outbound/proxy-choice.ts';

const SCHEMES = ['http:', 'https:', 'socks5:', 'socks5h:'];
const CONNECT_TIMEOUT_MS = 30_000;

type Environment = Readonly<Record<string, string | undefined>>;

/** Proxy in the kubeconfig. Throws ClientError with the field. */
export function proxyOfKubeconfig(url: string): URL {
  const field = `proxy-url: ${JSON.stringify(url)}`;
  if (!URL.canParse(url)) throw new ClientError(`kubeconfig: ${field} is not a URL; use http://HOST:PORT`);
  const proxy = new URL(url);
  if (!SCHEMES.includes(proxy.protocol))
    throw new ClientError(
      `kubeconfig: ${field}: unsupported scheme "${proxy.protocol.slice(0, -1)}", must be http, https, or socks5`,
    );
  return proxy;
}

/**
 * Proxy for a server according to the environment variables; undefined for a direct connection. Servers on the local
 * host are always reached directly.
 */
export function proxyOfEnvironment(target: URL, env: Environment): URL | undefined {
  const variable = (name: string): string | undefined => env[name] || env[name.toLowerCase()] || undefined;
  const host = hostOfUrl(target);
  if (host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))) return undefined;
  const name = target.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const given = variable(name);
  if (given === undefined) return undefined;
  const url = given.includes('://') ? given : `http://${given}`;
  if (!URL.canParse(url) || !SCHEMES.includes(new URL(url).protocol))
    throw new ClientError(`${name}: ${JSON.stringify(given)} is not the URL of a proxy; use http://HOST:PORT`);
  const noProxy = entriesOf(variable('NO_PROXY') ?? '');
  return proxyFor(target, { httpProxy: url, httpsProxy: url, noProxy }) === undefined ? undefined : new URL(url);
}

/** Headers with the user name and password of the proxy URL; empty if it has none. */
export function proxyAuthorization({ username, password }: URL): Record<string, string> {
  if (username === '') return {};
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(login).toString('base64')}` };
}

/** Opens a connection to the target through the proxy. */
export async function tunnel(proxy: URL, host: string, port: number): Promise<Duplex> {
  return proxy.protocol.startsWith('socks5') ? socksTunnel(proxy, host, port) : connectTunnel(proxy, host, port);
}

function connectTunnel(proxy: URL, host: string, port: number): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const target = `${host.includes(':') ? `[${host}]` : host}:${port}`;
    const call = (proxy.protocol === 'https:' ? tlsRequest : plainRequest)({
      method: 'CONNECT',
      host: hostOfUrl(proxy),
      port: portOfUrl(proxy),
      path: target,
      agent: false,
      timeout: CONNECT_TIMEOUT_MS,
      headers: { host: target, ...proxyAuthorization(proxy) },
    });
    call.once('connect', (response, socket: Duplex, head: Buffer) => {
      if (response.statusCode !== 200) {
        socket.destroy();
        reject(new Error(`proxyconnect tcp: ${response.statusMessage || `HTTP ${response.statusCode}`}`));
        return;
      }
      if (head.length > 0) socket.unshift(head);
      call.setTimeout(0);
      resolve(socket);
    });
    call.once('timeout', () =>
      call.destroy(new Error(`proxyconnect tcp: no response within ${CONNECT_TIMEOUT_MS} ms`)),
    );
    call.once('error', (error) => reject(new Error(`proxyconnect tcp: ${error.message}`, { cause: error })));
    call.end();
  });
}

/**
 * Opens a connection through a SOCKS 5 proxy, with or without authentication (RFC 1928, RFC 1929). The proxy resolves
 * the host name, as in client-go.
 */
async function socksTunnel(proxy: URL, host: string, port: number): Promise<Duplex> {
  const socket = tcpConnect({ host: hostOfUrl(proxy), port: portOfUrl(proxy) });
  const timer = setTimeout(() => socket.destroy(new Error('socks connect tcp: timed out')), CONNECT_TIMEOUT_MS);
  try {
    await once(socket, 'connect');
    const login = proxy.username !== '';
    socket.write(Buffer.from(login ? [5, 2, 0, 2] : [5, 1, 0]));
    const [, method] = await bytes(socket, 2);
    if (method === 2 && login) {
      const user = Buffer.from(decodeURIComponent(proxy.username));
      const password = Buffer.from(decodeURIComponent(proxy.password));
      socket.write(Buffer.concat([Buffer.from([1, user.length]), user, Buffer.from([password.length]), password]));
      const [, failed] = await bytes(socket, 2);
      if (failed !== 0) throw new Error('username/password authentication failed');
    } else if (method !== 0) throw new Error('no acceptable authentication methods');
    const name = Buffer.from(host);
    socket.write(Buffer.concat([Buffer.from([5, 1, 0, 3, name.length]), name, Buffer.from([port >> 8, port & 255])]));
    const [, status, , type] = await bytes(socket, 4);
    if (status !== 0) throw new Error(`the proxy answered with status ${status}`);
    const [length = 0] = type === 3 ? await bytes(socket, 1) : [type === 4 ? 16 : 4];
    await bytes(socket, length + 2);
    return socket;
  } catch (error) {
    socket.destroy();
    throw new Error(
      `socks connect tcp ${proxy.host}->${host}:${port}: ${error instanceof Error ? error.message : error}`,
      {
        cause: error,
      },
    );
  } finally {
    clearTimeout(timer);
  }
}

async function bytes(socket: Duplex, count: number): Promise<Buffer> {
  for (;;) {
    const found: Buffer | null = socket.read(count);
    if (found !== null) {
      if (found.length < count) throw new Error('unexpected end of the response');
      return found;
    }
    if (socket.readableEnded || socket.destroyed) throw new Error('unexpected end of the response');
    await Promise.race([once(socket, 'readable'), once(socket, 'end'), once(socket, 'close')]);
  }
}

/** Agent whose connections go through a proxy. TLS to the server is inside the tunnel. */
export class TunnelAgent extends Agent {
  readonly #proxy: URL;
  readonly #isPlain: boolean;

  constructor(proxy: URL, options: ConstructorParameters<typeof Agent>[0], isPlain = false) {
    super(options);
    this.#proxy = proxy;
    this.#isPlain = isPlain;
    // node:http rejects an agent whose protocol differs from that of the request.
    if (isPlain) Object.assign(this, { protocol: 'http:' });
  }

  override createConnection(
    options: Parameters<Agent['createConnection']>[0],
    callback?: (error: Error | null, stream: Duplex) => void,
  ): undefined {
    const { host, port, ...rest } = options as { host?: string; port?: number | string; servername?: string };
    tunnel(this.#proxy, host ?? '', Number(port)).then(
      (socket) => {
        if (this.#isPlain) return callback?.(null, socket);
        const secured: TLSSocket = tlsConnect({ ...rest, socket });
        callback?.(null, secured);
      },
      (error: Error) => callback?.(error, new Duplex()),
    );
    return undefined;
  }
}
