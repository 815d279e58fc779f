/**
 * Binds pods directly at the rate that the API server accepts, then has a deployment scheduled. Runs in the network of
 * an appliance with hollow nodes. Prints a JSON line. Arguments: kubeconfig, root of the appliance, replicas.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Deployment } from '../../../src/api/generated/apps/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import { silentLog as log } from '../../../src/base/log.ts';
import { openClient } from '../../../src/host/process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../../../src/host/process/process.ts';
import { cpuByProcess } from './cpu-by-process.ts';

const [kubeconfig = '', root = '', count = '1000'] = process.argv.slice(2);
const replicas = Number(count);
const BARE_PODS = 500;
const AT_ONCE = 64;
const IDLE_MS = 5_000;
const access = await openClient(kubeconfig, 'bench', { clock, random, log });
const pods = access.client.resource(resources.pods);
const namespace = 'default';
const spec = {
  // On the appliance's own node, pods would actually be started.
  nodeSelector: { 'hyperedge.dev/hollow': 'true' },
  containers: [{ name: 'c', image: 'none', resources: { requests: { cpu: '10m', memory: '16Mi' } } }],
};

async function inParallel(total: number, work: (index: number) => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < total; index = next++) await work(index);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return (performance.now() - begin) / 1000;
}

await inParallel(BARE_PODS, (index) =>
  pods.create({ metadata: { name: `bare-${index}`, namespace }, spec: { ...spec, schedulerName: 'none' } }),
);
const bareSeconds = await inParallel(BARE_PODS, (index) =>
  pods.createSubresource(`bare-${index}`, namespace, 'binding', {
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: { name: `bare-${index}`, namespace },
    target: { apiVersion: 'v1', kind: 'Node', name: `hollow-${index % 10}` },
  }),
);
const labels = { app: 'bench' };
const deployment: Deployment = {
  metadata: { name: 'bench', namespace },
  spec: { replicas, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
};
const informer = access.newInformers().informer(resources.pods);
informer.start();
await informer.synced;
const placed = new Set<string>();
let firstMs = 0;
const all = new Promise<void>((resolve) => {
  informer.onChange({
    updated: ({ metadata, spec: bound }) => {
      if (metadata?.labels?.['app'] !== 'bench' || (bound?.nodeName ?? '') === '') return;
      if (placed.size === 0) firstMs = performance.now();
      placed.add(metadata.name ?? '');
      if (placed.size === replicas) resolve();
    },
  });
});
// Wait until the directly bound pods are Running too.
await sleep(IDLE_MS);
const idle = await cpuByProcess(root);
await sleep(IDLE_MS);
const before = await cpuByProcess(root);
const begin = performance.now();
await access.client.resource(resources.deployments).create(deployment);
await all;
const seconds = (performance.now() - begin) / 1000;
const bindingSeconds = (performance.now() - firstMs) / 1000;
const after = await cpuByProcess(root);
const cpu = Object.fromEntries(
  [...after].map(([name, ms]) => {
    const start = before.get(name) ?? 0;
    return [name, { idle: (start - (idle.get(name) ?? 0)) / IDLE_MS, pod: (ms - start) / replicas }];
  }),
);
console.log(JSON.stringify({ bare: BARE_PODS / bareSeconds, seconds, rate: replicas / bindingSeconds, cpu }));
process.exit(0);
