/**
 * Throughput of single requests relative to a bare server, the store, and each other, in alternating rounds of one run.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { connect, makeCertificates, remove, startDebianEtcd, temporaryDirectory } from '../../store/harness.ts';
import { load } from '../etcd/load.ts';
import { FILLER, LIST, MARK_BARE, median, type Target, wait } from './target.ts';

const CLIENTS = 16;
const SETTLE_MS = 1000;
const OBJECTS = 1000;
interface Options {
  readonly seconds: number;
  readonly rounds: number;
}

export async function measureSpeed(target: Target, options: Options): Promise<void> {
  await target.fill({ from: 0, to: OBJECTS });
  await target.appliance.must(['-n', 'bench', 'delete', 'cm', '--ignore-not-found', 'kube-root-ca.crt']);
  const bareGets = await reads(target, options);
  await lists(target, options);
  await writes(target, options, bareGets);
}

/** GETs and LISTs compared with a bare server with the same bytes in memory. */
async function reads(target: Target, { seconds, rounds }: Options): Promise<number> {
  const one = `${LIST}/object-500`;
  const [list, object] = await Promise.all([LIST, one].map((path) => target.appliance.must(['get', '--raw', path])));
  const bare = await target.startBare({ [LIST]: list ?? '', [one]: object ?? '' });
  let gets = 0;
  for (const [what, path, goal, clients] of [
    ['GET of one object / bare', one, 0.6, 32],
    ['LIST of 1,000 objects of 1 KB / bare', LIST, 0.5, 8],
  ] as const) {
    const ours: number[] = [];
    const limit: number[] = [];
    for (let round = 0; round < rounds; round++) {
      limit.push((await target.wrk(`${bare.url}${path}`, { clients, seconds })).perSecond);
      ours.push(await target.rate(path, { clients, seconds }));
    }
    if (path === one) gets = median(limit);
    const ratio = median(ours.map((value, round) => value / (limit[round] ?? Number.NaN)));
    const detail = `${median(ours).toFixed(0)}/s against ${median(limit).toFixed(0)}/s, ${clients} clients`;
    target.report(what, ratio, goal, 'more', detail);
  }
  bare.stop();
  return gets;
}

/** LISTs compared with each other: current or from the cache, all objects or a tenth. */
async function lists(target: Target, { seconds, rounds }: Options): Promise<void> {
  const paths = { now: LIST, cached: `${LIST}?resourceVersion=0`, tenth: `${LIST}?labelSelector=group%3D3` };
  const found: Record<keyof typeof paths, number[]> = { now: [], cached: [], tenth: [] };
  for (let round = 0; round < rounds; round++)
    for (const name of ['now', 'cached', 'tenth'] as const)
      found[name].push(await target.rate(paths[name], { clients: 8, seconds }));
  const ratio = (one: number[], other: number[]): number =>
    median(one.map((value, round) => value / (other[round] ?? Number.NaN)));
  const rate = (name: keyof typeof paths): string => `${median(found[name]).toFixed(0)}/s`;
  target.report('LIST as new as now / from the cache', ratio(found.now, found.cached), 0.8, 'more', rate('now'));
  target.report('LIST by a label of a tenth / whole LIST', ratio(found.tenth, found.now), 5, 'more', rate('tenth'));
}

/** Flushes writes of the previous load to the disk, so that they do not affect the next one. */
async function settle(): Promise<void> {
  await promisify(execFile)('sync');
  await wait(SETTLE_MS);
}

/** Creates and patches compared with puts to the store and to Debian's etcd. */
async function writes(target: Target, { seconds, rounds }: Options, bareGets: number): Promise<void> {
  const directory = await temporaryDirectory();
  const certificates = await makeCertificates(directory);
  const etcd = await startDebianEtcd(directory, certificates);
  const store = connect(etcd.endpoint, certificates);
  const value = Buffer.alloc(1024, 'x');
  const found = { creates: [] as number[], patches: [] as number[], beneath: [] as number[], etcd: [] as number[] };
  const body = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"load-"},"data":{"filler":"${FILLER}"}}`;
  try {
    for (let round = 0; round < rounds; round++) {
      await settle();
      const etcdPuts = await load(CLIENTS, seconds, (n) =>
        store.commit({ guards: [], puts: [{ key: `/bench/${round}/${n}`, value }] }),
      );
      found.etcd.push(etcdPuts.perSecond);
      await settle();
      const beneath = target.client('puts', { etcd: 'https://127.0.0.1:2379', clients: CLIENTS, seconds, round });
      found.beneath.push((await beneath.result<{ perSecond: number }>()).perSecond);
      const common = { clients: CLIENTS, seconds };
      await settle();
      found.creates.push(await target.rate(LIST, { ...common, method: 'POST', contentType: 'application/json', body }));
      await settle();
      found.patches.push(
        await target.rate(LIST, {
          ...common,
          method: 'PATCH',
          contentType: 'application/merge-patch+json',
          path: `"${LIST}/object-" .. (n % ${OBJECTS}), nil, '{"metadata":{"annotations":{"n":"' .. n .. '"}}}'`,
        }),
      );
    }
  } finally {
    await store.close();
    await etcd.stop();
    await remove(directory);
  }
  const scaled = (values: readonly number[]): number => (median(values) * MARK_BARE) / bareGets;
  const share = (of: readonly number[]): number =>
    median(found.creates.map((each, round) => each / (of[round] ?? Number.NaN)));
  const rate = (values: readonly number[]): string => `${median(values).toFixed(0)}/s`;
  target.report(
    'creates / puts of the store beneath',
    share(found.beneath),
    0.85,
    'more',
    `${rate(found.creates)} against ${rate(found.beneath)}`,
  );
  target.report(
    "creates / puts of Debian's etcd",
    share(found.etcd),
    0.7,
    'more',
    `${rate(found.creates)} against ${rate(found.etcd)}`,
  );
  target.report(
    'creates a second, scaled to the mark by the bare server',
    scaled(found.creates),
    4500,
    'more',
    rate(found.creates),
  );
  target.report('merge patches a second, scaled likewise', scaled(found.patches), 3000, 'more', rate(found.patches));
}
