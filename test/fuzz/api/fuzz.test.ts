/** The part of the fuzz that every test run has: 3,000 inputs, always the same. `npm run fuzz` sends 200,000. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { slack } from '../../slack.ts';
import { campaign } from './campaign.ts';

const INPUTS = 3_000;
/**
 * `npm run fuzz` reports all above 100 ms, which the longest step of a body of a megabyte may take, and twice that beside other tests. Here is caught what takes
 * seconds: work that grows by the square of what is sent.
 */
const MAX_STALL_MS = 600 * slack();
/** Turns in which code is compiled that has never run before; a server that has been up for a moment has none. */
const WARM_UP = 1_000;

it('answers whatever comes, stands still for nobody, and is the same afterwards', async () => {
  const report = await campaign({ seed: 20261121, inputs: INPUTS });
  assert.deepEqual(report.faults, []);
  const stalled = report.stalls.filter(
    (stall) => stall.cpuMs > MAX_STALL_MS && !stall.inputs.some((input) => Number.parseInt(input, 10) < WARM_UP),
  );
  assert.deepEqual(stalled, []);
  const [before = 0, ...later] = report.heapMb;
  assert.ok(Math.max(...later) < before + 80, `memory grew from ${before} to ${later.join(', ')} MB`);
  const stored = [200, 201].map((code) => report.codes.get(code) ?? 0);
  assert.ok(
    stored.every((count) => count > INPUTS / 100),
    `few inputs come as far as being served: ${JSON.stringify([...report.codes])}`,
  );
  assert.ok(report.plain.asked > 20);
});
