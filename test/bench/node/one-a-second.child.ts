/**
 * Creates one pod per second in the network of an appliance and measures the time until a watch shows it as Running.
 * Prints the milliseconds as JSON. Arguments: kubeconfig, image, number of pods.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { resources } from '../../../src/api/resources.ts';
import { silentLog as log } from '../../../src/base/log.ts';
import { openClient } from '../../../src/host/process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../../../src/host/process/process.ts';

const [kubeconfig = '', image = '', count = '30'] = process.argv.slice(2);
const namespace = 'default';
const access = await openClient(kubeconfig, 'bench', { clock, random, log });
const pods = access.client.resource(resources.pods);
const informer = access.newInformers().informer(resources.pods);
const waiting = new Map<string, () => void>();
informer.onChange({
  updated: ({ metadata, status }) => {
    if (status?.phase === 'Running') waiting.get(metadata?.name ?? '')?.();
  },
});
informer.start();
await informer.synced;
const times: number[] = [];
for (let index = 0; index < Number(count); index++) {
  const name = `single-${index}`;
  const running = new Promise<void>((resolve) => {
    waiting.set(name, resolve);
  });
  const begin = performance.now();
  await pods.create({
    metadata: { name, namespace },
    spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'c', image, command: ['sleep', '100000'] }] },
  });
  await running;
  times.push(performance.now() - begin);
  await pods.delete(name, namespace);
  await sleep(Math.max(0, 1_000 - (performance.now() - begin)));
}
console.log(JSON.stringify(times));
process.exit(0);
