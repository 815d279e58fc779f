/**
 * Creates pods that no scheduler binds, prints `ready`, and changes their status at a rate until it is stopped. Prints
 * the reached rate every second. Runs in the network of an appliance. Arguments: kubeconfig, pods, changes a second.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { resources } from '../../../src/api/resources.ts';
import { silentLog as log } from '../../../src/base/log.ts';
import { openClient } from '../../../src/host/process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../../../src/host/process/process.ts';

const [kubeconfig = '', count = '2000', perSecond = '200'] = process.argv.slice(2);
const [total, rate] = [Number(count), Number(perSecond)];
const AT_ONCE = 32;
const access = await openClient(kubeconfig, 'bench', { clock, random, log });
const pods = access.client.resource(resources.pods);
const namespace = 'default';
const nameOf = (index: number): string => `bench-${index}`;

let next = 0;
await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    for (let index = next++; index < total; index = next++)
      await pods.create({
        metadata: { name: nameOf(index), namespace, labels: { app: 'bench' } },
        spec: { schedulerName: 'none', containers: [{ name: 'c', image: 'none' }] },
      });
  }),
);
console.log('ready');

let sent = 0;
let done = 0;
const begin = performance.now();
const change = async (): Promise<void> => {
  const index = sent++;
  const status = { message: `change ${index}` };
  await pods.patch(nameOf(index % total), namespace, 'merge', { status }, { subresource: 'status' });
  done++;
};
setInterval(() => console.log(`rate ${((done * 1000) / (performance.now() - begin)).toFixed(0)}`), 1_000);
const underWay = new Set<Promise<void>>();
for (;;) {
  const due = ((performance.now() - begin) / 1000) * rate;
  while (sent < due && underWay.size < AT_ONCE) {
    const pending = change().finally(() => underWay.delete(pending));
    underWay.add(pending);
  }
  await sleep(5);
}
