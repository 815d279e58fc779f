/**
 * Clients of the benchmarks. Each is a process in the appliance's network: `node client.ts WHAT OPTIONS`. They print
 * one line of JSON per result and read commands from standard input.
 */
import { readFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { Agent, request as send } from 'node:https';
import { createInterface } from 'node:readline';
import { silentLog } from '../../../src/base/log.ts';
import { systemClock } from '../../../src/host/process/process.ts';
import { createEtcdStore } from '../../../src/store/client/etcd-store.ts';
import { load } from '../etcd/load.ts';

const [what = '', text = '{}'] = process.argv.slice(2);
const options = JSON.parse(text);
const { server, token } = options as { server: string; token: string };
const ca = readFileSync(options.ca);
const say = (value: unknown): void => void process.stdout.write(`${JSON.stringify(value)}\n`);
const words = createInterface({ input: process.stdin });
let heard: ((word: string) => void) | undefined;
words.on('line', (word) => {
  if (word === 'end') process.exit(0);
  heard?.(word);
});
words.on('close', () => process.exit(0));

function asking(connections: number) {
  const agent = new Agent({ ca, keepAlive: true, maxSockets: connections });
  return (method: string, path: string, body?: string, contentType = 'application/json'): Promise<number> =>
    new Promise((resolve, reject) => {
      const request = send(
        `${server}${path}`,
        {
          method,
          agent,
          headers: {
            authorization: `Bearer ${token}`,
            ...(body === undefined ? {} : { 'content-type': contentType, 'content-length': Buffer.byteLength(body) }),
          },
        },
        (response) => {
          response.resume();
          response.on('end', () => resolve(response.statusCode ?? 0)).on('error', reject);
        },
      );
      request.on('error', reject);
      request.end(body);
    });
}

/** Creates objects of 1 KB, numbered `from` to `to`, in one or several namespaces. */
async function fill(): Promise<void> {
  const { from, to, namespace, namespaces, filler } = options;
  const ask = asking(16);
  let next = from;
  const worker = async (): Promise<void> => {
    while (next < to) {
      const n = next++;
      const where = namespaces === undefined ? namespace : `${namespace}-${n % namespaces}`;
      const body = {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: `object-${n}`, labels: { group: String(n % 10) } },
        data: { filler },
      };
      const code = await ask('POST', `/api/v1/namespaces/${where}/configmaps`, JSON.stringify(body));
      if (code !== 201 && code !== 409) throw new Error(`create: ${code}`);
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
  say({ count: to - from });
}

/** Puts of 1 KB to the store. */
async function puts(): Promise<void> {
  const store = createEtcdStore({
    endpoints: [options.etcd],
    ca: readFileSync(options.etcdCa),
    cert: readFileSync(options.etcdCert),
    key: readFileSync(options.etcdKey),
    log: silentLog,
    clock: systemClock,
  });
  const value = Buffer.alloc(1024, 'x');
  say(
    await load(options.clients, options.seconds, (n) =>
      store.commit({ guards: [], puts: [{ key: `/bench/${options.round}/${n}`, value }] }),
    ),
  );
}

/** Opens `count` watches over HTTP/2, `perConnection` on each connection, and reports their events on request. */
async function watches(): Promise<void> {
  const { count, perConnection, path } = options;
  let events = 0;
  const mark = Buffer.from('{"type":');
  const sessions = [];
  let open = 0;
  for (let made = 0; made < count; made += perConnection) {
    const session = connectHttp2(server, { ca, settings: { initialWindowSize: 1 << 20 } });
    session.on('error', (error) => {
      throw error;
    });
    sessions.push(session);
    await new Promise<void>((resolve) => session.once('connect', () => resolve()));
    await Promise.all(
      Array.from({ length: Math.min(perConnection, count - made) }, async () => {
        const stream = session.request({ ':path': path, authorization: `Bearer ${token}` });
        stream.on('data', (bytes: Buffer) => {
          for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + mark.length)) events += 1;
        });
        await new Promise<void>((resolve, reject) => {
          stream.once('response', (headers) =>
            headers[':status'] === 200 ? resolve() : reject(new Error(`watch: ${headers[':status']}`)),
          );
        });
        open += 1;
      }),
    );
  }
  heard = () => say({ events, atMs: performance.now() });
  say({ open });
}

/** Measures sequential GETs with a pause between them until it is stopped. */
async function latency(): Promise<void> {
  const ask = asking(1);
  let times: number[] = [];
  heard = () => {
    times.sort((a, b) => a - b);
    const at = (share: number): number => times[Math.floor(times.length * share)] ?? 0;
    say({ count: times.length, p50: at(0.5), p99: at(0.99), max: times.at(-1) ?? 0 });
    times = [];
  };
  say({});
  for (;;) {
    const begin = performance.now();
    const code = await ask('GET', options.path);
    if (code !== 200) throw new Error(`GET: ${code}`);
    times.push(performance.now() - begin);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Measures one LIST. */
async function list(): Promise<void> {
  const ask = asking(1);
  const begin = performance.now();
  const code = await ask('GET', options.path);
  say({ code, ms: performance.now() - begin });
}

const clients: Readonly<Record<string, () => Promise<void>>> = { fill, puts, watches, latency, list };
const run = clients[what];
if (run === undefined) throw new Error(`unknown client ${what}`);
await run();
