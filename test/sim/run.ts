/**
 * `npm run sim -- [--seeds N] [--from SEED] [--only raft|store] [--trace]`: runs the simulations with many seeds, for
 * example overnight. A failed seed is printed with the violated guarantee; `--only … --from SEED --seeds 1 --trace`
 * prints its events.
 */
import { parseArgs } from 'node:util';
import { simulate as simulateRaft } from './raft/simulation.ts';
import { simulate as simulateStore } from './store/simulation.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    only: { type: 'string' },
    trace: { type: 'boolean', default: false },
  },
});
const seeds = Number(values.seeds);
const from = Number(values.from);
if (!Number.isSafeInteger(seeds) || !Number.isSafeInteger(from) || seeds < 1) {
  console.error('--seeds and --from are whole numbers');
  process.exit(2);
}
const simulations = {
  raft: async (seed: number, keepTrace: boolean) => simulateRaft(seed, { keepTrace }),
  store: (seed: number, keepTrace: boolean) => simulateStore(seed, { keepTrace }),
};
const { only } = values;
if (only !== undefined && only !== 'raft' && only !== 'store') {
  console.error('--only takes raft or store');
  process.exit(2);
}
console.log(`seeds ${from} to ${from + seeds - 1}`);
let failed = 0;
for (const [name, simulate] of Object.entries(simulations)) {
  if (only !== undefined && only !== name) continue;
  let answered = 0;
  let committed = 0;
  let broken = 0;
  const seen = new Map<string, number>();
  const begin = performance.now();
  for (let seed = from; seed < from + seeds; seed++) {
    const result = await simulate(seed, values.trace);
    for (const line of result.trace) console.log(line);
    answered += result.answered;
    committed += result.committed;
    for (const [what, count] of result.seen) seen.set(what, (seen.get(what) ?? 0) + count);
    if (seeds === 1) console.log(`${name} seed ${seed}: trace ${result.hash}`);
    if (result.violation === undefined) continue;
    broken++;
    console.log(`${name} seed ${seed} (trace ${result.hash}): ${result.violation.message}`);
  }
  const seconds = (performance.now() - begin) / 1000;
  const counts = [...seen].sort(([, a], [, b]) => b - a).map(([what, count]) => `${what} ${count}`);
  console.log(`${name}: ${counts.join(', ')}`);
  console.log(
    `${name}: ${seeds - broken} passed, ${broken} failed: ${answered} operations answered, ${committed} entries committed, ${seconds.toFixed(1)} s`,
  );
  failed += broken;
}
process.exit(failed === 0 ? 0 : 1);
