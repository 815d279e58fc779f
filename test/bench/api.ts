/**
 * `npm run bench:api -- [speed] [cost] [watches] [size] [growth] [--seconds N] [--rounds N] [--objects N] [--curve NAME]`: the packaged appliance's API server, driven over TLS
 * with keep-alive and a bearer token by `wrk` and clients of our own, each part on an appliance of its own; `speed` alone when no part is named.
 *
 * * speed: GET, LIST and writes, as shares of a bare `node:https` server with the same bytes, of the store beneath, and of Debian's etcd;
 * * cost: CPU time of each process for a create and a merge patch;
 * * watches: events to 300 of them, memory of 5,000 idle ones;
 * * size: memory, a LIST of everything and a cold start with 100,000 objects of 1 KB;
 * * growth: what a create costs while that grows which does not concern it, as plots.
 *
 * Figures "scaled to the mark" are what the machine of the mark would give, by the bare server's GETs here and there. Turn by turn in one run. Prints each
 * figure against its goal and exits 1 when one is missed.
 */
import { parseArgs } from 'node:util';
import { measureCost } from './api/cost.ts';
import { measureGrowth, measureSize } from './api/growth.ts';
import { measureSpeed } from './api/speed.ts';
import { Target } from './api/target.ts';
import { measureWatches } from './api/watching.ts';

const PARTS = ['speed', 'cost', 'watches', 'size', 'growth'] as const;
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
    objects: { type: 'string', default: '100000' },
    curve: { type: 'string', default: '' },
  },
});
const unknown = positionals.find((each) => !PARTS.some((part) => part === each));
if (unknown !== undefined) {
  console.error(`unknown part "${unknown}"; parts are ${PARTS.join(', ')}`);
  process.exit(2);
}
const parts = new Set(positionals.length === 0 ? ['speed'] : positionals);
const seconds = Number(values.seconds);
let missed = 0;

async function measured(part: (typeof PARTS)[number], measure: (target: Target) => Promise<void>): Promise<void> {
  if (!parts.has(part)) return;
  await using target = await Target.start();
  await measure(target);
  missed += target.missed;
}

await measured('speed', (target) => measureSpeed(target, { seconds, rounds: Number(values.rounds) }));
await measured('cost', (target) => measureCost(target, { seconds, rounds: Number(values.rounds) }));
await measured('watches', (target) => measureWatches(target, seconds));
await measured('size', (target) => measureSize(target, Number(values.objects)));
await measured('growth', (target) => measureGrowth(target, 2, values.curve));
process.exit(missed === 0 ? 0 : 1);
