/**
 * `npm run bench:namespaces -- [--namespaces N]`: creates N namespaces with a config map each on
 * the packaged appliance, deletes all of them at once, and measures the time until they are removed, the memory of the
 * components and their longest turns of the event loop. Default: 300.
 */
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { diagnosticsBelow, type ProcessDump, requestDump } from '../../src/host/process/diagnostics.ts';
import { Target } from './api/target.ts';

const { values } = parseArgs({ options: { namespaces: { type: 'string', default: '300' } } });
const count = Number(values.namespaces);
/** kubectl sends at most 50 requests per second by default, and each namespace needs two. */
const patience = { timeoutMs: 60_000 + count * 100 };
const PAGE = 500;

interface Peak {
  rssMb: number;
  turnMs: number;
}

await using target = await Target.start();
const { appliance } = target;

const peaks = new Map<string, Peak>();
const sample = async (): Promise<void> => {
  const directory = diagnosticsBelow(appliance.root);
  const sockets = (await readdir(directory)).filter((each) => each.endsWith('.sock'));
  await Promise.all(
    sockets.map(async (socket) => {
      const dump = (await requestDump(join(directory, socket), AbortSignal.timeout(20_000))) as ProcessDump;
      const peak = peaks.get(dump.component) ?? { rssMb: 0, turnMs: 0 };
      peak.rssMb = Math.max(peak.rssMb, dump.memory.rss / 1024 / 1024);
      peak.turnMs = Math.max(peak.turnMs, dump.eventLoop.delayMs.max);
      peaks.set(dump.component, peak);
    }),
  );
};
const report = (phase: string): void => {
  for (const [component, { rssMb, turnMs }] of peaks)
    console.log(`${phase}: ${component}: at most ${rssMb.toFixed(0)} MB (RSS), longest turn ${turnMs.toFixed(0)} ms`);
  peaks.clear();
};
let sampling = true;
const sampler = (async () => {
  while (sampling) {
    await sample().catch((error: unknown) => console.log(`no sample: ${String(error)}`));
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
})();

const names = Array.from({ length: count }, (_, index) => `bulk-${index}`);
for (let from = 0; from < count; from += PAGE) {
  const file = target.file('namespaces.json');
  const items = names.slice(from, from + PAGE).flatMap((name) => [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { bench: 'bulk' } } },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'content', namespace: name } },
  ]);
  await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  await appliance.must(['create', '-f', file], patience);
}
await new Promise((resolve) => setTimeout(resolve, 20_000));
report('created');
const left = async () =>
  (await appliance.must(['get', 'namespaces', '-l', 'bench=bulk', '-o', 'name'], patience))
    .split('\n')
    .filter((each) => each !== '').length;
const began = performance.now();
await appliance.must(['delete', 'namespaces', '-l', 'bench=bulk', '--wait=false'], patience);
const deleted = performance.now();
while ((await left()) > 0) await new Promise((resolve) => setTimeout(resolve, 500));
const seconds = (performance.now() - began) / 1000;
report('deleted');
console.log(
  `${count} namespaces: requested in ${((deleted - began) / 1000).toFixed(1)} s, removed after ${seconds.toFixed(1)} s, ${(count / seconds).toFixed(1)}/s`,
);
await new Promise((resolve) => setTimeout(resolve, 60_000));
report('a minute later');
sampling = false;
await sampler;
