/**
 * Behaviour with many objects: memory, a LIST of everything, a cold start, and the cost of a write while unrelated data
 * grow.
 */
import { cpuMs, FILLER, LIST, median, pss, rss, settled, shown, type Target, wait } from './target.ts';

interface Latency {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export async function measureSize(target: Target, objects: number): Promise<void> {
  const idle = await pss(await target.apiPid());
  const begin = performance.now();
  await target.fill({ from: 0, to: objects });
  console.log(`${objects} objects of 1 KB in ${((performance.now() - begin) / 1000).toFixed(0)} s`);
  const pid = await target.apiPid();
  const full = await settled(pid);
  const bytes = Number((await target.appliance.must(['get', '--raw', `${LIST}?limit=1000`])).length / 1000) * objects;
  const allowed = 2.2 * bytes + 90e6;
  const detail = `${mb(full)} with ${mb(bytes)} of objects, ${mb(idle)} before`;
  target.report('memory / (2.2 × the bytes of the objects + 90 MB)', full / allowed, 1, 'less', detail);
  await wholeList(target, pid);
  await coldStart(target, objects);
}

const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(0)} MB`;

async function wholeList(target: Target, pid: number): Promise<void> {
  const others = target.client('latency', { path: `${LIST}/object-1` });
  await others.next();
  await wait(3000);
  others.say('count');
  const quiet = await others.next<Latency>();
  const before = await rss(pid);
  let peak = before;
  let looking = true;
  const look = (async () => {
    while (looking) {
      peak = Math.max(peak, await rss(pid));
      await wait(10);
    }
  })();
  others.say('count');
  await others.next();
  const { code, ms } = await target.client('list', { path: LIST }).result<{ code: number; ms: number }>();
  others.say('count');
  const meanwhile = await others.next<Latency>();
  looking = false;
  await look;
  others.kill();
  if (code !== 200) throw new Error(`LIST: ${code}`);
  target.report(
    'LIST of all: memory above what was there, MB',
    (peak - before) / 1e6,
    30,
    'less',
    `in ${ms.toFixed(0)} ms`,
  );
  target.report(
    "LIST of all: others' GET at p99 later than without, ms",
    meanwhile.p99 - quiet.p99,
    20,
    'less',
    `p99 ${shown(quiet.p99)} and ${shown(meanwhile.p99)} ms, longest ${shown(meanwhile.max)} ms, of ${meanwhile.count}`,
  );
}

async function coldStart(target: Target, objects: number): Promise<void> {
  const pid = await target.apiPid();
  process.kill(pid, 'SIGKILL');
  let started = 0;
  for (;;) {
    const now = await target.apiPid();
    if (now !== pid) {
      started = performance.now();
      break;
    }
    await wait(5);
  }
  for (;;) {
    const ran = await target.appliance.inside('curl', [
      '-sk',
      '-m',
      '1',
      '-H',
      `Authorization: Bearer ${target.token}`,
      `${target.server}/readyz`,
    ]);
    if (ran.stdout === 'ok') break;
    if (performance.now() - started > 60_000) throw new Error('not ready after a minute');
    await wait(20);
  }
  target.report(
    `cold start with ${objects} objects, s`,
    (performance.now() - started) / 1000,
    3,
    'less',
    'from the process to /readyz',
  );
}

interface Point {
  readonly at: number;
  /** CPU time of the API server for a create, in ms. */
  readonly cost: number;
}

type Grow = (target: Target, from: number, to: number) => Promise<void>;

/** Curves by name: the numbers of objects at their points, and the function that creates the objects up to a point. */
const CURVES: Readonly<Record<string, { readonly sizes: readonly number[]; readonly grow: Grow }>> = {
  'objects of the same kind': {
    sizes: [0, 5_000, 20_000, 50_000],
    grow: (target, from, to) => target.fill({ from, to }),
  },
  namespaces: {
    sizes: [0, 100, 500, 2_000],
    grow: async (target, from, to) => {
      for (let at = from; at < to; at += 500)
        await applied(
          target,
          Array.from({ length: Math.min(500, to - at) }, (_, i) => ({
            apiVersion: 'v1',
            kind: 'Namespace',
            metadata: { name: `grown-${at + i}` },
          })),
        );
    },
  },
  kinds: {
    sizes: [0, 20, 60, 150],
    grow: (target, from, to) =>
      applied(
        target,
        Array.from({ length: to - from }, (_, i) => definition(from + i)),
      ),
  },
  'watches of another namespace': {
    sizes: [0, 500, 2_000, 5_000],
    grow: async (target, from, to) => {
      const path = '/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=3000';
      await target.client('watches', { count: to - from, perConnection: 100, path }).next();
    },
  },
};

/**
 * Cost of a create in the API server while unrelated data grow: for all curves, or for the one whose name starts with
 * `only`.
 */
export async function measureGrowth(target: Target, seconds: number, only = ''): Promise<void> {
  // Warm up, so that compilation is not counted at the first point.
  await createCost(target, seconds);
  for (const [what, { sizes, grow }] of Object.entries(CURVES)) {
    if (!what.startsWith(only)) continue;
    const points: Point[] = [];
    let from = 0;
    for (const to of sizes) {
      if (to > from) await grow(target, from, to);
      from = to;
      await wait(3000);
      points.push({ at: to, cost: await createCost(target, seconds) });
    }
    plot(what, points);
    const ratio = (points.at(-1)?.cost ?? Number.NaN) / (points[0]?.cost ?? Number.NaN);
    target.report(`a create with ${from} ${what} / with none`, ratio, 1.3, 'less');
  }
}

async function applied(target: Target, items: readonly object[]): Promise<void> {
  const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  await target.appliance.must(['create', '-f', '-'], { input, timeoutMs: 300_000 });
}

function definition(n: number): object {
  const names = { plural: `grown${n}s`, singular: `grown${n}`, kind: `Grown${n}` };
  const schema = {
    openAPIV3Schema: {
      type: 'object',
      properties: { spec: { type: 'object', properties: { n: { type: 'integer' } } } },
    },
  };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `grown${n}s.bench.example.com` },
    spec: {
      group: 'bench.example.com',
      scope: 'Namespaced',
      names,
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  };
}

async function createCost(target: Target, seconds: number): Promise<number> {
  const pid = await target.apiPid();
  const body = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"cost-"},"data":{"filler":"${FILLER}"}}`;
  const costs: number[] = [];
  for (let round = 0; round < 3; round++) {
    const before = await cpuMs(pid);
    const rate = await target.rate(LIST, {
      clients: 4,
      seconds,
      method: 'POST',
      contentType: 'application/json',
      body,
    });
    costs.push(((await cpuMs(pid)) - before) / (rate * seconds));
  }
  await target.appliance.inside('curl', [
    '-sk',
    '-X',
    'DELETE',
    '-H',
    `Authorization: Bearer ${target.token}`,
    '-o',
    '/dev/null',
    `${target.server}${LIST}?labelSelector=%21group`,
  ]);
  return median(costs);
}

const WIDTH = 50;

function plot(what: string, points: readonly Point[]): void {
  const most = Math.max(...points.map(({ cost }) => cost));
  console.log(`CPU time of the API server for a create, by ${what}:`);
  for (const { at, cost } of points)
    console.log(
      `  ${String(at).padStart(7)} ${'█'.repeat(Math.round((cost / most) * WIDTH)).padEnd(WIDTH)} ${cost.toFixed(3)} ms`,
    );
}
