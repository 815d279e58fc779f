/**
 * `npm run fuzz -- [--inputs N] [--seed N] [--from INDEX]` sends hostile and random requests to a real API server. The
 * same seed sends the same inputs. To repeat a failing one alone, use `--from INDEX --inputs 1`.
 */
import { parseArgs } from 'node:util';
import { bytesOf, campaign } from './campaign.ts';
import { inputOf } from './requests.ts';

const { values } = parseArgs({
  options: {
    inputs: { type: 'string', default: '200000' },
    seed: { type: 'string', default: '1' },
    from: { type: 'string', default: '0' },
    show: { type: 'boolean', default: false },
  },
});
const [inputs = 0, seed = 0, from = 0] = [values.inputs, values.seed, values.from].map(Number);
if (![inputs, seed, from].every(Number.isSafeInteger) || inputs < 1) {
  console.error('--inputs, --seed and --from are whole numbers');
  process.exit(2);
}
const MAX_STALL_MS = 100;
const SHOWN = 40;

console.log(`seed ${seed}, inputs ${from} to ${from + inputs - 1}`);
if (values.show) {
  for (let index = from; index < from + inputs; index++)
    console.log(bytesOf(inputOf(seed, index)).toString('latin1').slice(0, 4000));
}
const report = await campaign({ seed, inputs, from, progress: (line) => console.log(line) });
console.log(`codes: ${[...report.codes].map(([code, count]) => `${code} ${count}`).join(', ')}`);
console.log(
  `event loop: longest turn ${report.longestWallMs.toFixed(0)} ms by the clock; turns with the most CPU time, garbage collection apart: ${report.stalls
    .slice(0, 8)
    .map((stall) => `${stall.cpuMs.toFixed(0)} (+${stall.gcMs.toFixed(0)})`)
    .join(', ')} ms; longest collection ${report.longestGcMs.toFixed(0)} ms`,
);
console.log(
  `memory after collection: ${report.heapMb.map((mb) => mb.toFixed(0)).join(', ')} MB; resident ${report.residentMb.toFixed(0)} MB`,
);
console.log(
  `a plain GET beside it: ${report.plain.requests} asked, p99 ${report.plain.p99.toFixed(0)} ms, longest ${report.plain.max.toFixed(0)} ms`,
);
const stalled = report.stalls.filter((stall) => stall.cpuMs > MAX_STALL_MS);
for (const stall of stalled.slice(0, SHOWN))
  console.log(
    `stall of ${stall.cpuMs.toFixed(0)} ms CPU (${stall.wallMs.toFixed(0)} ms): inputs ${stall.inputs.slice(0, 40).join(' ')}`,
  );
console.log(
  `${report.inputs} inputs in ${report.seconds.toFixed(0)} s: ${report.faults.length} faults, ${stalled.length} stalls over ${MAX_STALL_MS} ms`,
);
process.exit(report.faults.length + stalled.length === 0 ? 0 : 1);
