/**
 * `npm run bench:api`: the packaged appliance's API server, driven by `wrk` over TLS with keep-alive and a bearer token.
 *
 * * GET of one object and LIST of 1,000 objects of 1 KB, as a share of what a bare `node:https` server of the same Node returns from memory
 *   (the same bytes) to the same client;
 * * creates by 16 clients, as a share of the puts that Debian's etcd takes from 16 clients with values of the same size on the same disk.
 *
 * Turn by turn in one run. Prints each figure against its goal and exits 1 when one is missed.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, makeCertificates, remove, startDebianEtcd, temporaryDirectory } from '../components/etcd/harness.ts';
import { Appliance } from '../e2e/harness.ts';

const SECONDS = Number(process.argv[2] ?? 4);
const ROUNDS = 3;
const CLIENTS = 16;
const BARE_PORT = 19_443;

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

const scratch = await mkdtemp(join(tmpdir(), 'he-bench-'));
const appliance = await Appliance.create();
const etcdDirectory = await temporaryDirectory();
let bare: ChildProcess | undefined;
let missed = 0;

interface Load {
  readonly perSecond: number;
  readonly errors: number;
}

/** One run of wrk inside the appliance's network. */
async function wrk(url: string, script: string, clients: number): Promise<Load> {
  const file = join(scratch, `wrk-${Math.random().toString(36).slice(2)}.lua`);
  await writeFile(file, script);
  const ran = await appliance.inside('wrk', ['-t1', `-c${clients}`, `-d${SECONDS}s`, '-s', file, url], {
    timeoutMs: (SECONDS + 20) * 1000,
  });
  const perSecond = Number(/Requests\/sec:\s+([\d.]+)/.exec(ran.stdout)?.[1] ?? Number.NaN);
  const errors = Number(/Non-2xx or 3xx responses: (\d+)/.exec(ran.stdout)?.[1] ?? 0);
  if (Number.isNaN(perSecond)) throw new Error(`wrk: ${ran.stdout}${ran.stderr}`);
  return { perSecond, errors };
}

function report(what: string, value: number, goal: number, detail: string): void {
  const met = value >= goal;
  if (!met) missed++;
  console.log(`${met ? 'met   ' : 'MISSED'} ${what}: ${value.toFixed(2)} (goal ${goal})  ${detail}`);
}

/** Serves the given bodies by path from memory, over TLS with the API server's own certificate, in the appliance's network. */
async function startBare(bodies: Readonly<Record<string, string>>): Promise<void> {
  const bodiesFile = join(scratch, 'bodies.json');
  await writeFile(bodiesFile, JSON.stringify(bodies));
  const program = join(scratch, 'bare.mjs');
  const master = join(appliance.root, 'etc/origin/master');
  await writeFile(
    program,
    `import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
const bodies = new Map(Object.entries(JSON.parse(readFileSync(${JSON.stringify(bodiesFile)}, 'utf8'))).map(([path, text]) => [path, Buffer.from(text)]));
createServer({ key: readFileSync(${JSON.stringify(join(master, 'master.server.key'))}), cert: readFileSync(${JSON.stringify(join(master, 'master.server.crt'))}) }, (request, response) => {
  const body = bodies.get(request.url);
  response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json', 'content-length': body?.length ?? 0 });
  response.end(body);
}).listen(${BARE_PORT}, '127.0.0.1', () => console.log('ready'));
`,
  );
  bare = appliance.spawnInside(process.execPath, [program]);
  if (bare.stdout === null) throw new Error('no output of the bare server');
  await once(bare.stdout, 'data');
}

try {
  await appliance.start();
  await appliance.must(['create', 'namespace', 'bench']);
  await appliance.must(['create', 'serviceaccount', 'bench', '-n', 'bench']);
  await appliance.must([
    'create',
    'clusterrolebinding',
    'bench',
    '--clusterrole=cluster-admin',
    '--serviceaccount=bench:bench',
  ]);
  const token = (await appliance.must(['create', 'token', 'bench', '-n', 'bench', '--duration=1h'])).trim();
  const server = await appliance.must(['config', 'view', '-o', 'jsonpath={.clusters[0].cluster.server}']);
  const filler = 'x'.repeat(700);
  const objects = Array.from({ length: 1000 }, (_, index) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: `object-${index}`, namespace: 'bench', labels: { group: String(index % 10) } },
    data: { filler },
  }));
  await appliance.must(['create', '-f', '-'], {
    input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
    timeoutMs: 120_000,
  });
  await appliance.must(['-n', 'bench', 'delete', 'cm', 'kube-root-ca.crt']);
  const list = '/api/v1/namespaces/bench/configmaps';
  const one = `${list}/object-500`;
  const [listBody, oneBody] = [
    await appliance.must(['get', '--raw', list]),
    await appliance.must(['get', '--raw', one]),
  ];
  await startBare({ [list]: listBody, [one]: oneBody });
  const read = `wrk.headers["Authorization"] = "Bearer ${token}"`;
  for (const [what, path, goal, clients] of [
    ['GET of one object / bare', one, 0.5, 32],
    ['LIST of 1,000 objects of 1 KB / bare', list, 0.4, 8],
  ] as const) {
    const ours: number[] = [];
    const limit: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      limit.push((await wrk(`https://127.0.0.1:${BARE_PORT}${path}`, read, clients)).perSecond);
      const load = await wrk(`${server}${path}`, read, clients);
      if (load.errors > 0) throw new Error(`${what}: ${load.errors} requests were refused`);
      ours.push(load.perSecond);
    }
    const ratios = ours.map((value, round) => value / (limit[round] ?? Number.NaN));
    report(
      what,
      median(ratios),
      goal,
      `${median(ours).toFixed(0)}/s against ${median(limit).toFixed(0)}/s, ${clients} clients`,
    );
  }
  bare?.kill('SIGKILL');

  const certificates = await makeCertificates(etcdDirectory);
  const etcd = await startDebianEtcd(etcdDirectory, certificates);
  const store = connect(etcd.endpoint, certificates);
  const value = Buffer.alloc(1024, 'x');
  const creates: number[] = [];
  const puts: number[] = [];
  try {
    for (let round = 0; round < ROUNDS; round++) {
      let count = 0;
      const end = performance.now() + SECONDS * 1000;
      await Promise.all(
        Array.from({ length: CLIENTS }, async () => {
          while (performance.now() < end) {
            const key = `/bench/${round}/${count++}`;
            await store.commit({ guards: [], puts: [{ key, value }] });
          }
        }),
      );
      puts.push(count / SECONDS);
      const load = await wrk(
        `${server}/api/v1/namespaces/bench/configmaps`,
        `wrk.method = "POST"
wrk.headers["Authorization"] = "Bearer ${token}"
wrk.headers["Content-Type"] = "application/json"
wrk.body = [[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"load-"},"data":{"filler":"${filler}"}}]]`,
        CLIENTS,
      );
      if (load.errors > 0) throw new Error(`creates: ${load.errors} requests were refused`);
      creates.push(load.perSecond);
    }
  } finally {
    await store.close();
    await etcd.stop();
  }
  const ratios = creates.map((each, round) => each / (puts[round] ?? Number.NaN));
  report(
    "creates by 16 clients / puts of Debian's etcd by 16 clients",
    median(ratios),
    0.7,
    `${median(creates).toFixed(0)}/s against ${median(puts).toFixed(0)}/s`,
  );
} finally {
  bare?.kill('SIGKILL');
  await appliance.stop();
  await remove(etcdDirectory);
  await rm(scratch, { recursive: true, force: true });
}
process.exit(missed === 0 ? 0 : 1);
