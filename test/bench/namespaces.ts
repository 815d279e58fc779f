/**
 * `npm run bench:namespaces -- [--namespaces N]`: creates N namespaces with a config map each on
 * the packaged appliance, deletes all of them at once, and measures the time until they are removed. Default: 300.
 */
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { Target } from './api/target.ts';

const { values } = parseArgs({ options: { namespaces: { type: 'string', default: '300' } } });
const count = Number(values.namespaces);

await using target = await Target.start();
const { appliance } = target;
const names = Array.from({ length: count }, (_, index) => `bulk-${index}`);
const file = target.file('namespaces.json');
const items = names.flatMap((name) => [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { bench: 'bulk' } } },
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'content', namespace: name } },
]);
await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
await appliance.must(['create', '-f', file]);
await new Promise((resolve) => setTimeout(resolve, 20_000));
const left = async () =>
  (await appliance.must(['get', 'namespaces', '-l', 'bench=bulk', '-o', 'name']))
    .split('\n')
    .filter((each) => each !== '').length;
const began = performance.now();
await appliance.must(['delete', 'namespaces', '-l', 'bench=bulk', '--wait=false']);
const deleted = performance.now();
while ((await left()) > 0) await new Promise((resolve) => setTimeout(resolve, 500));
const seconds = (performance.now() - began) / 1000;
console.log(
  `${count} namespaces: requested in ${((deleted - began) / 1000).toFixed(1)} s, removed after ${seconds.toFixed(1)} s, ${(count / seconds).toFixed(1)}/s`,
);
