/**
 * The router compared with Debian's haproxy in one run on the same machine, and the time until changes are effective
 * with 1,000 routes. `npm run bench:router [-- SECONDS]`. Compare the ratios; the machine's load is printed beside
 * them.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Agent, createServer, request } from 'node:http';
import { Agent as SecureAgent, request as secureRequest } from 'node:https';
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Route } from '../../src/network/router/kinds/routes/types.ts';
import { createAuthority, issue, lifetimeFrom } from '../../src/pki/index.ts';
import { freePorts } from '../support/ports.ts';

const SECONDS = Number(process.argv[2] ?? 3);
const CLIENTS = 16;
const ROUTES = 1_000;
const HAPROXY = '/usr/sbin/haproxy';

const route = (name: string, spec: NonNullable<Route['spec']> = {}): Route => ({
  metadata: { name, namespace: 'bench', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { host: `${name}.bench.test`, wildcardPolicy: 'None', to: { kind: 'Service', name }, ...spec },
});

async function perSecond(work: () => Promise<unknown>): Promise<number> {
  const until = performance.now() + SECONDS * 1_000;
  let done = 0;
  await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      while (performance.now() < until) {
        await work();
        done++;
      }
    }),
  );
  return done / SECONDS;
}

const agent = new Agent({ keepAlive: true });
const secureAgent = new SecureAgent({ keepAlive: true });

function get(port: number, host: string, secure = false, path = '/'): Promise<number> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, headers: { host } };
    const sent = secure
      ? secureRequest({ ...options, servername: host, rejectUnauthorized: false, agent: secureAgent })
      : request({ ...options, agent });
    sent.on('response', (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
    });
    sent.on('error', reject);
    sent.end();
  });
}

/** Bytes per second over TCP from an endless server, after a ClientHello with the host name. */
function bytesPerSecond(port: number, hello: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let bytes = 0;
    let sinceMs = 0;
    socket.on('error', reject);
    socket.write(hello);
    socket.on('data', (chunk) => {
      if (bytes === 0) sinceMs = performance.now();
      bytes += chunk.length;
    });
    setTimeout(() => {
      socket.destroy();
      resolve((bytes * 1_000) / (performance.now() - sinceMs));
    }, SECONDS * 1_000);
  });
}

/** First record that Node's own TLS client sends. */
async function helloFor(name: string): Promise<Buffer> {
  const server = createTcpServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const used = new Promise<Buffer>((resolve) => {
    server.once('connection', (socket) =>
      socket.once('data', (chunk) => {
        socket.destroy();
        resolve(Buffer.from(chunk));
      }),
    );
  });
  secureRequest({ host: '127.0.0.1', port, servername: name, agent: false })
    .on('error', () => {})
    .end();
  const hello = await used;
  server.close();
  return hello;
}

async function haproxy(directory: string, text: string): Promise<ChildProcess | undefined> {
  if (!existsSync(HAPROXY)) {
    console.log(`${HAPROXY} is missing: no ratios; apt-get install haproxy`);
    return undefined;
  }
  await writeFile(join(directory, 'haproxy.cfg'), text);
  const child = spawn(HAPROXY, ['-db', '-f', join(directory, 'haproxy.cfg')], { stdio: 'ignore' });
  await new Promise((resolve) => setTimeout(resolve, 500));
  return child;
}

const percentile = (values: number[], part: number): number =>
  values.sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))] ?? 0;

const directory = await mkdtemp(join(tmpdir(), 'he-bench-router-'));
const ca = await createAuthority('bench', lifetimeFrom(Date.now(), 10));
const pair = await issue(ca, {
  subject: { commonName: 'bench' },
  usages: ['server'],
  names: { dns: ['*.bench.test'], ips: [] },
  validity: lifetimeFrom(Date.now(), 10),
});
const [httpPort = 0, httpsPort = 0, otherHttp = 0, otherHttps = 0, web = 0, stream = 0] = await freePorts(6);
const server = createServer((_request, response) => response.end('x'.repeat(128))).listen(web, '127.0.0.1');
const block = Buffer.alloc(64 * 1024);
const sender = createTcpServer((socket) => {
  socket.on('error', () => {});
  const send = (): void => {
    while (socket.writable && socket.write(block));
  };
  socket.on('drain', send);
  send();
}).listen(stream, '127.0.0.1');

const child = fork(
  fileURLToPath(new URL('router.child.ts', import.meta.url)),
  [JSON.stringify({ httpPort, httpsPort, web, stream, certificate: pair.certPem, key: pair.keyPem })],
  { execArgv: [] },
);
await once(child, 'message');
/** Adds or changes routes. Resolves when the table has been replaced. */
const swap = async (routes: readonly Route[]): Promise<void> => {
  child.send(routes);
  await once(child, 'message');
};
const base = [
  route('http'),
  route('edge', { tls: { termination: 'edge' } }),
  route('pass', { tls: { termination: 'passthrough' } }),
];
await swap(base);
await writeFile(join(directory, 'pair.pem'), `${pair.certPem}\n${pair.keyPem}`);
const other = await haproxy(
  directory,
  `global\n  maxconn 1000\ndefaults\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s
frontend http\n  mode http\n  option forwardfor\n  bind 127.0.0.1:${otherHttp}\n  default_backend web
frontend https\n  mode tcp\n  bind 127.0.0.1:${otherHttps}\n  tcp-request inspect-delay 5s\n  tcp-request content accept if { req.ssl_hello_type 1 }
  use_backend pass if { req.ssl_sni -i pass.bench.test }\n  default_backend sni
backend sni\n  mode tcp\n  server sni unix@${directory}/sni.sock send-proxy-v2
frontend sni\n  mode http\n  option forwardfor\n  bind unix@${directory}/sni.sock ssl crt ${directory}/pair.pem accept-proxy\n  default_backend web
backend web\n  mode http\n  server web 127.0.0.1:${web}
backend pass\n  mode tcp\n  server pass 127.0.0.1:${stream}\n`,
);
const compare = async (what: string, goal: number, measure: (port: number) => Promise<number>, ports: number[]) => {
  const [own = 0, its = 0] = ports;
  const ours = await measure(own);
  const theirs = other === undefined ? Number.NaN : await measure(its);
  const load = loadavg()[0]?.toFixed(1);
  const ratio = (ours / theirs).toFixed(2);
  console.log(
    `${what}: ${Math.round(ours)}/s, haproxy ${Math.round(theirs)}/s, ratio ${ratio} (goal ${goal}, load ${load})`,
  );
};
try {
  // Warm up, because a router runs compiled code after some minutes.
  for (let at = 0; at < 2_000; at++) await get(httpPort, 'http.bench.test');
  const hello = await helloFor('pass.bench.test');
  await compare('HTTP requests', 0.35, (port) => perSecond(() => get(port, 'http.bench.test')), [httpPort, otherHttp]);
  const edge = (port: number) => perSecond(() => get(port, 'edge.bench.test', true));
  await compare('edge requests', 0.35, edge, [httpsPort, otherHttps]);
  await compare('passthrough bytes', 0.6, (port) => bytesPerSecond(port, hello), [httpsPort, otherHttps]);

  // Each change adds or moves one route among 1,000. The change is effective when a request for the route is answered.
  const many = [...base, ...Array.from({ length: ROUTES }, (_, at) => route(`r${at}`))];
  await swap(many.slice(base.length));
  const tookMs: number[] = [];
  let failed = 0;
  let sent = 0;
  let running = true;
  const traffic = Promise.all(
    Array.from({ length: 4 }, async () => {
      while (running) {
        const status = await get(httpPort, 'http.bench.test').catch(() => 0);
        sent++;
        if (status !== 200) failed++;
      }
    }),
  );
  for (let at = 0; at < 1_000; at++) {
    const begin = performance.now();
    await swap([route(`new${at % 50}`, { path: `/${at}` })]);
    if ((await get(httpPort, `new${at % 50}.bench.test`, false, `/${at}`)) !== 200) failed++;
    tookMs.push(performance.now() - begin);
  }
  running = false;
  await traffic;
  console.log(
    `table to answer at ${ROUTES} routes: p50 ${percentile(tookMs, 0.5).toFixed(1)} ms, p99 ${percentile(tookMs, 0.99).toFixed(1)} ms (goal 200)`,
  );
  console.log(`${failed} of ${sent} requests failed during 1,000 changes (goal 0)`);
} finally {
  other?.kill();
  agent.destroy();
  secureAgent.destroy();
  child.disconnect();
  server.close();
  server.closeAllConnections();
  sender.close();
  await rm(directory, { recursive: true, force: true });
}
process.exit(0);
