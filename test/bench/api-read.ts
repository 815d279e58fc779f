/**
 * GET of one object and LIST of 1,000 objects of 1 KB, as ratios of a bare `node:https` server that returns the same bytes from memory
 * to the same client: `wrk`, keep-alive, bearer token. Each server runs in a process of its own.
 *
 *   node test/bench/api-read.ts [seconds]
 */
import { execFile, fork } from 'node:child_process';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createAuthority, issue, lifetimeFrom } from '../../src/io/pki/certificate.ts';
import { startServer } from '../components/apiserver/harness.ts';

const TOKEN = 'bench-token';
const OBJECTS = 1000;
const run = promisify(execFile);

interface Ready {
  readonly port: number;
  readonly get: string;
  readonly list: string;
}

const configMap = (index: number) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: `object-${String(index).padStart(4, '0')}`, namespace: 'default' },
  data: { text: 'x'.repeat(700) },
});

async function serveApi(): Promise<void> {
  const server = await startServer({ config: { staticTokens: `${TOKEN},bench,bench,"system:masters"` } });
  const path = '/api/v1/namespaces/default/configmaps';
  for (let index = 0; index < OBJECTS; index++) await server.call('POST', path, { body: configMap(index) });
  const get = await server.call('GET', `${path}/object-0500`);
  const list = await server.call('GET', path);
  process.once('SIGTERM', () => {
    void server.stop().then(() => process.exit(0));
  });
  process.send?.({ port: server.port, get: get.text, list: list.text } satisfies Ready);
}

async function serveBare(): Promise<void> {
  const [ready] = await new Promise<[Ready]>((resolve) =>
    process.once('message', (message) => resolve([message as Ready])),
  );
  const validity = lifetimeFrom(Date.now(), 1);
  const ca = await createAuthority('bench', validity);
  const { certPem, keyPem } = await issue(ca, {
    subject: { commonName: 'bench' },
    usages: ['server'],
    names: { dns: ['localhost'], ips: ['127.0.0.1'] },
    validity,
  });
  const get = Buffer.from(ready.get);
  const list = Buffer.from(ready.list);
  const server = createServer({ cert: certPem, key: keyPem }, (request, response) => {
    const body = request.url?.endsWith('configmaps') === true ? list : get;
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
    response.end(body);
  });
  server.listen(0, '127.0.0.1', () => process.send?.({ ...ready, port: (server.address() as AddressInfo).port }));
}

function child(role: string): { process: ReturnType<typeof fork>; ready: Promise<Ready> } {
  const started = fork(fileURLToPath(import.meta.url), [role], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const ready = new Promise<Ready>((resolve, reject) => {
    started.once('message', (message) => resolve(message as Ready));
    started.once('exit', () => reject(new Error(`${role} ended`)));
  });
  return { process: started, ready };
}

async function requestsPerSecond(port: number, path: string, seconds: number): Promise<number> {
  const { stdout } = await run('wrk', [
    '-t1',
    '-c16',
    `-d${seconds}s`,
    '-H',
    `Authorization: Bearer ${TOKEN}`,
    `https://127.0.0.1:${port}${path}`,
  ]);
  if (stdout.includes('Non-2xx')) throw new Error(stdout);
  return Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1] ?? Number.NaN);
}

async function main(): Promise<void> {
  const seconds = Number(process.argv[2] ?? '3');
  const api = child('api');
  const bare = child('bare');
  try {
    const served = await api.ready;
    bare.process.send(served);
    const plain = await bare.ready;
    const path = '/api/v1/namespaces/default/configmaps';
    for (const [name, url] of [
      ['GET', `${path}/object-0500`],
      ['LIST', path],
    ] as const) {
      await requestsPerSecond(served.port, url, 1);
      await requestsPerSecond(plain.port, url, 1);
      const ours = await requestsPerSecond(served.port, url, seconds);
      const theirs = await requestsPerSecond(plain.port, url, seconds);
      console.log(
        `${name}: ${ours.toFixed(0)}/s of ${theirs.toFixed(0)}/s bare = ${((ours / theirs) * 100).toFixed(0)} %`,
      );
    }
  } finally {
    api.process.kill();
    bare.process.kill();
  }
}

if (process.argv[2] === 'api') await serveApi();
else if (process.argv[2] === 'bare') await serveBare();
else await main();
