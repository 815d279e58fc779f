/** Proxy between a client and a server that records the client's requests in order. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, request as forward } from 'node:https';
import type { AddressInfo } from 'node:net';
import { issue, lifetimeFrom } from '../../../src/pki/index.ts';
import type { TestServer } from '../../apiserver/harness.ts';
import { Marks } from './marks.ts';
import { isWatch, type Step } from './script.ts';

/** Headers that change the response. */
const RELEVANT = ['accept', 'content-type', 'user-agent'];
/** Limit for recordings of the same request, because informers and leader elections repeat theirs indefinitely. */
const REPEATS = 2;

export interface Recording {
  readonly port: number;
  readonly steps: readonly Step[];
  close(): Promise<void>;
}

/** Starts the proxy, which records until it is closed. At most `limit` requests are recorded; all are forwarded. */
export async function record(server: TestServer, limit: number): Promise<Recording> {
  const names = { dns: ['localhost'], ips: ['127.0.0.1'] };
  const validity = lifetimeFrom(Date.now(), 1);
  const serving = await issue(server.ca, { subject: { commonName: 'proxy' }, usages: ['server'], names, validity });
  const steps: Step[] = [];
  const marks = new Marks();
  const requested = new Map<string, number>();
  /** Forwards requests one after the other, so that the responses arrive in the order of the recording. */
  let turn: Promise<unknown> = Promise.resolve();

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const { url = '/' } = request;
    if (isWatch({ path: url })) {
      write(request, body, undefined);
      relay(request, body, (incoming) => {
        incoming.pipe(response.writeHead(incoming.statusCode ?? 502, incoming.headers));
      });
      return;
    }
    const own = turn.then(
      () =>
        new Promise<void>((resolve) => {
          relay(request, body, (incoming) => {
            const parts: Buffer[] = [];
            incoming.on('data', (part: Buffer) => parts.push(part));
            incoming.on('end', () => {
              const bytes = Buffer.concat(parts);
              write(request, body, { bytes, type: incoming.headers['content-type'] ?? '' });
              response.writeHead(incoming.statusCode ?? 502, incoming.headers).end(bytes);
              resolve();
            });
          });
        }),
    );
    turn = own;
    await own;
  };

  function relay(request: IncomingMessage, body: Buffer, take: (incoming: IncomingMessage) => void): void {
    const { 'accept-encoding': _coding, authorization: _who, host: _host, ...headers } = request.headers;
    const sent = forward(
      {
        host: '127.0.0.1',
        port: server.port,
        method: request.method ?? 'GET',
        path: request.url ?? '/',
        headers,
        ca: server.ca.certPem,
        cert: server.admin.certPem,
        key: server.admin.keyPem,
        agent: false,
      },
      take,
    );
    sent.on('error', () => {});
    request.socket.once('close', () => sent.destroy());
    sent.end(body);
  }

  function write(request: IncomingMessage, body: Buffer, incoming: { bytes: Buffer; type: string } | undefined): void {
    const headers = Object.fromEntries(
      RELEVANT.flatMap((name) => (request.headers[name] === undefined ? [] : [[name, String(request.headers[name])]])),
    );
    const path = request.url ?? '/';
    const key = `${request.method} ${path.replaceAll(/resourceVersion=\d+|timeout[a-zA-Z]*=\w+/g, '')}`;
    const times = (requested.get(key) ?? 0) + 1;
    requested.set(key, times);
    const repeated = times > REPEATS && (request.method === 'GET' || path.includes('/leases/'));
    if (steps.length >= limit || repeated) return;
    const step = marks.write({ method: request.method ?? 'GET', path, headers }, body);
    steps.push(step);
    if (incoming !== undefined) marks.read(steps.length - 1, incoming);
  }

  const proxy = createServer({ cert: serving.certPem, key: serving.keyPem }, (request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return {
    port: (proxy.address() as AddressInfo).port,
    get steps() {
      return marks.finish(steps);
    },
    close: () =>
      new Promise((resolve) => {
        proxy.close(() => resolve());
        proxy.closeAllConnections();
      }),
  };
}
