/**
 * `npm run bench:api -- [speed] [cost] [watches] [size] [growth] [--seconds N] [--rounds N] [--objects N] [--curve NAME]`
 * measures the API server of the packaged appliance over TLS with keep-alive and a bearer token. Clients are `wrk` and
 * those of `api/client.ts`. Each part uses an appliance of its own; the default is `speed`.
 *
 * * speed: GET, LIST and writes, relative to a bare `node:https` server with the same bytes, the store, and Debian's
 *   etcd;
 * * cost: CPU time of each process for a create and a merge patch;
 * * watches: events to 300 of them, memory of 5,000 idle ones;
 * * size: memory, a LIST of everything and a cold start with 100,000 objects of 1 KB;
 * * growth: cost of a create while unrelated data grow, as plots.
 *
 * Figures "scaled to the mark" are converted to the reference machine by the ratio of the bare server's GETs. Runs
 * alternate. Prints each figure with its goal and exits with 1 if a goal is missed.
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
