/** The usage history of the packaged executable: through the node proxy, with rights, and across a restart. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Appliance, eventually } from './harness.ts';
import { helloImage, importHelloImage } from './images.ts';

interface Answer {
  readonly kind: string;
  readonly stepSeconds: number;
  readonly points: number;
  readonly series: readonly {
    readonly pod?: string;
    readonly namespace?: string;
    readonly slice?: string;
    readonly container?: string;
    readonly metrics: Readonly<
      Record<string, { readonly unit: string; readonly average: (number | null)[]; readonly max: (number | null)[] }>
    >;
  }[];
}

const pod = (name: string, command: string): string => `
apiVersion: v1
kind: Pod
metadata: {name: ${name}, labels: {test: history}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: main, image: ${helloImage}, command: [/bin/sh, -c, '${command}']}
`;
const numbers = (list: readonly (number | null)[] | undefined): number[] =>
  (list ?? []).filter((each): each is number => each !== null);
const highest = (list: readonly (number | null)[] | undefined): number => Math.max(0, ...numbers(list));

describe('usage history', { timeout: 900_000 }, () => {
  let appliance: Appliance;
  let scratch = '';
  let node = '';

  const path = (query: string): string => `/api/v1/nodes/${node}/proxy/metrics/history?${query}`;
  const read = async (query: string): Promise<Answer> =>
    JSON.parse(await appliance.must(['get', '--raw', path(query)]));
  const seriesOf = (answer: Answer, name: string) => answer.series.find((each) => each.pod === name)?.metrics;

  before(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'he-history-'));
    appliance = await Appliance.create();
    await appliance.start(240_000);
    await importHelloImage(appliance, scratch);
    node = (await appliance.must(['get', 'nodes', '-o', 'name'])).trim().replace('node/', '');
    for (const [name, command] of [
      ['busy', 'while true; do :; done'],
      ['idle', 'while true; do sleep 1000; done'],
    ] as const) {
      const file = join(scratch, `${name}.yaml`);
      await writeFile(file, pod(name, command));
      await appliance.must(['apply', '-f', file]);
    }
    await appliance.must(['wait', '--for=condition=Ready', 'pod', '-l', 'test=history', '--timeout=120s']);
  });

  after(async () => {
    await appliance?.stop();
    await rm(scratch, { recursive: true, force: true });
  });

  it('shows that a busy pod uses more CPU than an idle pod, in all scopes', async () => {
    await eventually('two samples of the pods', 90_000, async () => {
      const answer = await read('scope=pod&metric=cpu&since=10m');
      return numbers(seriesOf(answer, 'busy')?.['cpu']?.average).length >= 2 ? true : undefined;
    });
    const pods = await read('scope=pod&namespace=default&since=10m');
    const busy = highest(seriesOf(pods, 'busy')?.['cpu']?.max);
    // The bound is low, because other tests may use the processors at the same time.
    assert.ok(busy > 0.02, `${busy} cores`);
    assert.ok(highest(seriesOf(pods, 'idle')?.['cpu']?.max) < busy / 5);
    assert.ok(highest(seriesOf(pods, 'busy')?.['memory']?.max) > 4_096);
    assert.equal(seriesOf(pods, 'busy')?.['memory']?.unit, 'bytes');
    const containers = await read('scope=container&namespace=default&pod=busy&container=main&metric=cpu&since=10m');
    assert.equal(containers.series.length, 1);
    assert.ok(highest(containers.series[0]?.metrics['cpu']?.max) > 0.02);
    const slices = await read('scope=slice&slice=kubepods&metric=cpu,memory&since=10m');
    assert.ok(highest(slices.series[0]?.metrics['cpu']?.max) > 0.02);
    const host = await read('since=10m');
    assert.ok(highest(host.series[0]?.metrics['cpu']?.max) > 0.02);
    assert.ok(highest(host.series[0]?.metrics['memory']?.max) > 1_000_000);
    // Traffic of probes and of the pod itself is not certain; the counters of a network with routes are.
    assert.ok(numbers(seriesOf(pods, 'busy')?.['networkReceive']?.average).length > 0);
  });

  it('shows requests to the API server and the latency of the store', async () => {
    const metrics = await eventually('two readings of the components', 150_000, async () => {
      const found = (await read('metric=apiRequests,apiErrors,storeLatency,storeFlushes&since=10m')).series[0]?.metrics;
      return highest(found?.['apiRequests']?.max) > 0 && highest(found?.['storeLatency']?.max) > 0 ? found : undefined;
    });
    assert.ok(highest(metrics['storeLatency']?.max) < 10);
    assert.ok(highest(metrics['storeFlushes']?.max) > 0);
  });

  it('rejects invalid parameters by name', async () => {
    for (const [query, message] of [
      ['points=0', /points: .*0.* is not a whole number/],
      ['since=forever', /since: .*forever.* is not a duration/],
      ['scope=pod&metric=cpu,nothing', /metric: .*nothing.* is not a metric of scope=pod/],
      ['pod=busy', /pod: not used with scope=node/],
      ['depth=3', /depth: unknown parameter/],
    ] as const) {
      const { code, stderr } = await appliance.hyperedge([
        ...['kubectl', '--kubeconfig', appliance.kubeconfig, 'get', '--raw', path(query)],
      ]);
      assert.notEqual(code, 0, query);
      assert.match(stderr, message);
      assert.doesNotMatch(stderr, /InternalError/);
    }
  });

  it('requires the permission to get nodes/metrics', async () => {
    await appliance.must(['create', 'serviceaccount', 'viewer']);
    const as = ['--as=system:serviceaccount:default:viewer'];
    const rejected = await appliance.kubectl(['get', '--raw', path('since=1h'), ...as]);
    assert.match(rejected.stderr, /forbidden/i);
    const token = (await appliance.must(['create', 'token', 'viewer'])).trim();
    const direct = (): ReturnType<Appliance['inside']> =>
      appliance.inside('curl', [
        ...['-sk', '-o', '/dev/null', '-w', '%{http_code}', '-H', `Authorization: Bearer ${token}`],
        'https://127.0.0.1:10250/metrics/history?since=1h',
      ]);
    assert.equal((await direct()).stdout, '403');
    await appliance.must(['create', 'clusterrole', 'node-metrics', '--verb=get', '--resource=nodes/metrics']);
    await appliance.must([
      ...['create', 'clusterrolebinding', 'node-metrics', '--clusterrole=node-metrics'],
      '--serviceaccount=default:viewer',
    ]);
    // The kubelet keeps a denial for thirty seconds.
    await eventually('access', 60_000, async () => ((await direct()).stdout === '200' ? true : undefined));
  });

  it('keeps the long series of a deleted pod across a restart', async () => {
    await appliance.must(['delete', 'pod', 'busy', '--wait']);
    await appliance.halt('SIGTERM');
    const names = await readdir(join(appliance.root, 'var/lib/origin/usage-history'));
    assert.ok(names.length === 1 && /^\d+\.history$/.test(names[0] ?? ''), names.join());
    await appliance.start(240_000);
    const answer = await eventually('history', 30_000, () => read('scope=pod&namespace=default&metric=cpu&since=24h'));
    assert.ok(highest(seriesOf(answer, 'busy')?.['cpu']?.average) > 0.01);
    await appliance.halt('SIGKILL');
    const path = join(appliance.root, 'var/lib/origin/usage-history', names[0] ?? '');
    await writeFile(path, 'HEUSAGE9 of a newer version');
    await appliance.start(240_000);
    await eventually('the log line', 30_000, () =>
      /history file ignored and removed .*unknown format/.test(appliance.output) ? true : undefined,
    );
    const damaged = await eventually('history', 30_000, () => read('scope=pod&metric=cpu&since=24h'));
    assert.equal(seriesOf(damaged, 'busy'), undefined);
  });
});
