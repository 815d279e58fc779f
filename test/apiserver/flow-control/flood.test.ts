/** A flood by one user on a server in another process, and its effect on nodes and administrators. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { it } from 'node:test';

const CONNECTIONS = 200;
const FLOOD_MS = 3_000;
const PREPARING = 8;
const OBJECTS = 1_000;

interface Identity {
  readonly cert: string;
  readonly key: string;
}

interface Place {
  readonly port: number;
  readonly ca: string;
  readonly admin: Identity;
  readonly node: Identity;
  readonly flood: Identity;
}

function run(name: string, argument: string): { readonly child: ChildProcess; line(): Promise<string> } {
  const child = spawn(process.execPath, [join(import.meta.dirname, name), argument], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  assert.ok(child.stdout !== null);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return { child, line: async () => String((await lines.next()).value) };
}

function client({ port, ca }: Place, { cert, key }: Identity) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ca, cert, key });
  return {
    close: () => agent.destroy(),
    ask: (
      method: string,
      path: string,
      body?: unknown,
    ): Promise<{ readonly code: number; readonly text: string; readonly ms: number }> =>
      new Promise((resolve, reject) => {
        const began = performance.now();
        const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
        const headers = body === undefined ? {} : { 'content-type': type };
        const sent = request({ host: '127.0.0.1', port, agent, method, path, headers }, (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.once('end', () =>
            resolve({
              code: response.statusCode ?? 0,
              text: Buffer.concat(chunks).toString(),
              ms: performance.now() - began,
            }),
          );
        });
        sent.once('error', reject);
        sent.end(body === undefined ? undefined : JSON.stringify(body));
      }),
  };
}

const at = (sorted: readonly number[], part: number): number => sorted[Math.floor(sorted.length * part)] ?? Number.NaN;

interface Outcome {
  readonly idle: readonly number[];
  readonly beats: readonly number[];
  readonly admins: readonly number[];
  readonly flood: { readonly codes: Record<string, number>; readonly median: number };
  readonly metrics: string;
}

async function measure(fairness: 'with' | 'without'): Promise<Outcome> {
  const server = run('server.child.ts', fairness);
  const place = JSON.parse(await server.line()) as Place;
  const admin = client(place, place.admin);
  const node = client(place, place.node);
  try {
    await admin.ask('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
      metadata: { name: 'flood' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'flood' }],
    });
    const filler = 'x'.repeat(900);
    const prepare = async (first: number): Promise<void> => {
      const own = client(place, place.admin);
      for (let index = first; index < OBJECTS; index += PREPARING) {
        const object = { metadata: { name: `object-${index}` }, data: { filler } };
        await own.ask('POST', '/api/v1/namespaces/default/configmaps', object);
      }
      own.close();
    };
    await Promise.all(Array.from({ length: PREPARING }, (_, first) => prepare(first)));
    const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
    const lease = { metadata: { name: 'n1' }, spec: { holderIdentity: 'n1', leaseDurationSeconds: 40 } };
    assert.equal((await node.ask('POST', leases, lease)).code, 201);
    const beat = async (): Promise<number> => {
      const { code, text, ms } = await node.ask('PATCH', `${leases}/n1`, {
        spec: { renewTime: new Date().toISOString().replace('Z', '000Z') },
      });
      assert.equal(code, 200, text);
      return ms;
    };
    const idle: number[] = [];
    for (let count = 0; count < 100; count++) idle.push(await beat());
    const flood = run(
      'flood.child.ts',
      JSON.stringify({
        ...place.flood,
        port: place.port,
        ca: place.ca,
        connections: CONNECTIONS,
        requests: [
          // A request that searches all objects and returns few, so that the server is the bottleneck.
          { method: 'GET', path: '/api/v1/configmaps?limit=1&labelSelector=app!%3Dnone' },
          {
            method: 'POST',
            path: '/api/v1/namespaces/kube-public/secrets',
            body: { metadata: { generateName: 'flood-' }, stringData: { filler } },
          },
        ],
      }),
    );
    // Waits until all connections are open.
    for (let wait = 0; wait < 100; wait++) {
      const { text } = await admin.ask('GET', '/metrics');
      const served =
        /^apiserver_request_total\{[^}]*resource="configmaps",scope="cluster"[^}]*code="200"\} (\d+)/m.exec(text);
      if (Number(served?.[1]) > CONNECTIONS) break;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const beats: number[] = [];
    const admins: number[] = [];
    const end = performance.now() + FLOOD_MS;
    while (performance.now() < end) {
      beats.push(await beat());
      const { code, ms } = await admin.ask('GET', '/api/v1/namespaces/default');
      assert.equal(code, 200);
      admins.push(ms);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    flood.child.stdin?.end();
    const output = JSON.parse(await flood.line()) as Outcome['flood'];
    const { text: metrics } = await admin.ask('GET', '/metrics');
    for (const each of [idle, beats, admins]) each.sort((a, b) => a - b);
    return { idle, beats, admins, flood: output, metrics };
  } finally {
    admin.close();
    node.close();
    server.child.stdin?.end();
    await once(server.child, 'exit');
  }
}

const ms = (values: readonly number[]): string =>
  [0.5, 0.9, 0.99].map((part) => at(values, part).toFixed(1)).join(' / ');

it('heartbeats and administrators are served before a flood of lists and creates', async (t) => {
  const { idle, beats, admins, flood, metrics } = await measure('with');
  t.diagnostic(
    `heartbeats, p50 / p90 / p99: idle ${ms(idle)} ms, in the flood ${ms(beats)} ms; administrators ${ms(admins)} ms`,
  );
  t.diagnostic(`the flood: ${JSON.stringify(flood.codes)}, median ${flood.median.toFixed(1)} ms`);
  assert.ok(Number(flood.codes['200']) > 20 && Number(flood.codes['201']) > 20, 'the flood is served too');
  // The 200 flood requests wait for each other. Without priority levels a heartbeat would wait as long.
  assert.ok(at(beats, 0.5) < flood.median / 4, `${at(beats, 0.5)} ms, the flood ${flood.median} ms`);
  assert.ok(at(admins, 0.5) < flood.median / 4, `${at(admins, 0.5)} ms, the flood ${flood.median} ms`);
  const counted = (name: string, level: string): number => {
    const pattern = new RegExp(
      `^apiserver_flowcontrol_${name}\\{[^}]*priority_level="${level}"[^}]*\\} ([\\d.e+-]+)$`,
      'gm',
    );
    return [...metrics.matchAll(pattern)].reduce((sum, [, value]) => sum + Number(value), 0);
  };
  assert.equal(counted('rejected_requests_total', 'node-high'), 0);
  assert.ok(counted('dispatched_requests_total', 'node-high') >= beats.length);
  assert.ok(counted('request_queue_length_after_enqueue_count', 'global-default') > 50, 'the flood has had to wait');
});

if (process.env['COMPARE'] !== undefined) {
  it('measures heartbeats and administrators in a flood of requests without priority and fairness', async (t) => {
    const { idle, beats, admins, flood } = await measure('without');
    t.diagnostic(`heartbeats: idle ${ms(idle)}, in the flood ${ms(beats)} ms; administrators ${ms(admins)} ms`);
    t.diagnostic(`the flood: ${JSON.stringify(flood.codes)}, median ${flood.median.toFixed(1)} ms`);
  });
}
