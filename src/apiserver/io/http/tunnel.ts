/**
 * Connections through a proxy by HTTP CONNECT. Source: RFC 9110 section 9.3.6;
 * k8s.io/apiserver/pkg/server/egressselector.
 */
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { CodedError, messageOf } from '../../../base/errors.ts';
import type { EgressProxy } from '../../port.ts';

const OK = 200;
/** Maximum size of the proxy's response with its header. */
const MAX_ANSWER = 16 * 1024;
const END = '\r\n\r\n';

/**
 * Opens a connection to `authority` (HOST:PORT), which the proxy resolves. Rejects with CodedError 'connect-failed' if
 * the proxy is unreachable, refuses, or takes more than `timeoutMs`, and with 'aborted'.
 */
export function openTunnel(
  proxy: EgressProxy,
  authority: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connectTo(proxy);
    let answer = '';
    const settle = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', aborted);
      socket.removeAllListeners('error').removeAllListeners('close').removeListener('readable', read);
    };
    const fail = (why: string, code = 'connect-failed'): void => {
      settle();
      socket.on('error', () => undefined).destroy();
      reject(new CodedError(code, `${authority} through the proxy ${nameOf(proxy)}: ${why}`));
    };
    const aborted = (): void => fail('the client disconnected', 'aborted');
    // Reads without a 'data' listener, so that bytes after the response stay in the socket for the next reader.
    const read = (): void => {
      answer += (socket.read() as Buffer | null)?.toString('latin1') ?? '';
      const end = answer.indexOf(END);
      if (end < 0) {
        if (answer.length > MAX_ANSWER) fail(`answers with more than ${MAX_ANSWER} bytes`);
        return;
      }
      const code = Number(/^HTTP\/1\.[01] (\d{3})/.exec(answer)?.[1]);
      if (code !== OK) fail(`answers ${JSON.stringify(answer.slice(0, answer.indexOf('\r\n')).slice(0, 128))}`);
      // The client starts the protocols inside the tunnel, so data before its first request is an error.
      else if (answer.length > end + END.length) fail('sent data before the first request');
      else {
        settle();
        resolve(socket);
      }
    };
    const timer = setTimeout(() => fail(`did not answer within ${timeoutMs} ms`), timeoutMs);
    socket.on('error', (error) => fail(messageOf(error)));
    socket.on('close', () => fail('closed the connection'));
    socket.on('readable', read);
    if (signal.aborted) aborted();
    else {
      signal.addEventListener('abort', aborted, { once: true });
      const login = proxy.authorization === undefined ? '' : `\r\nProxy-Authorization: ${proxy.authorization}`;
      socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}${login}${END}`);
    }
  });
}

function connectTo({ at, tls }: EgressProxy): Socket {
  if ('socket' in at) return connect(at.socket);
  if (tls === undefined) return connect(at.port, at.host);
  return connectTls({
    host: at.host,
    port: at.port,
    ...(tls.certificate === undefined ? {} : { cert: tls.certificate }),
    ...(tls.key === undefined ? {} : { key: tls.key }),
    servername: tls.serverName ?? at.host,
    ...(tls.authority === undefined ? {} : { ca: tls.authority }),
  });
}

const nameOf = ({ at }: EgressProxy): string => ('socket' in at ? at.socket : `${at.host}:${at.port}`);
