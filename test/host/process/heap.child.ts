/**
 * A process with a server's heap settings: busy, then idle, then busy again. Reports its heap size after each phase.
 */
import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';
import { collectLessOften, collectWhenIdle, keepYoungGenerationSmall } from '../../../src/host/process/heap.ts';

const YOUNG = 8 << 20;
keepYoungGenerationSmall(YOUNG);
collectLessOften();
collectWhenIdle();

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const youngBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size ?? 0;
const say = (what: string): void =>
  void process.send?.({ what, heap: getHeapStatistics().total_heap_size, young: youngBytes() });

/** Creates objects that live for a while and then become garbage in the old generation. */
async function work(rounds: number, until: () => boolean): Promise<void> {
  let living: object[] = [];
  for (let round = 0; round < rounds && !until(); round++) {
    for (let n = 0; n < 20_000; n++) living.push({ round, n, text: `${round}/${n}`, more: [n, round] });
    if (living.length >= 400_000) living = [];
    await pause(1);
  }
}

await work(60, () => false);
say('busy');
// The process is idle until it receives a message.
const signalled = Promise.withResolvers<void>();
process.once('message', () => signalled.resolve());
const look = setInterval(() => say('idle'), 500);
await signalled.promise;
clearInterval(look);
await work(2000, () => youngBytes() >= YOUNG);
say('busy again');
process.disconnect();
