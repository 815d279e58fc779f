/**
 * `npm run sim -- [--seeds N] [--from SEED] [--trace]`: many seeds of the simulation; for the night. A seed that fails is printed with what it broke;
 * `--from SEED --seeds 1 --trace` shows what happened in it.
 */
import { parseArgs } from 'node:util';
import { simulate } from './raft/simulation.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    trace: { type: 'boolean', default: false },
  },
});
const seeds = Number(values.seeds);
const from = Number(values.from);
if (!Number.isSafeInteger(seeds) || !Number.isSafeInteger(from) || seeds < 1) {
  console.error('--seeds and --from are whole numbers');
  process.exit(2);
}
console.log(`seeds ${from} to ${from + seeds - 1}`);
let failed = 0;
let answered = 0;
let entries = 0;
const begin = performance.now();
for (let seed = from; seed < from + seeds; seed++) {
  const result = simulate(seed, { keepTrace: values.trace });
  for (const line of result.trace) console.log(line);
  answered += result.answered;
  entries += result.highestApplied;
  if (seeds === 1) console.log(`seed ${seed}: trace ${result.hash}`);
  if (result.violation === undefined) continue;
  failed++;
  console.log(`seed ${seed} (trace ${result.hash}): ${result.violation.message}`);
}
const seconds = (performance.now() - begin) / 1000;
console.log(
  `${seeds - failed} passed, ${failed} failed: ${answered} operations answered, ${entries} entries committed, ${seconds.toFixed(1)} s`,
);
process.exit(failed === 0 ? 0 : 1);
