/** The short fuzz run of every test run, with 3,000 fixed inputs. `npm run fuzz` sends 200,000. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { slack } from '../../support/slack.ts';
import { campaign } from './campaign.ts';

const INPUTS = 3_000;
/**
 * Only detects stalls of seconds, such as quadratic work. `npm run fuzz` reports all above 100 ms, which is the longest
 * step for a body of one megabyte; with other tests running it may take twice as long.
 */
const MAX_STALL_MS = 600 * slack();
/** Inputs before stalls count, because code is compiled when it first runs. */
const WARM_UP = 1_000;

it('the API server answers every fuzzed input, never blocks for long, and keeps its state', async () => {
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
  assert.ok(report.plain.requests > 20);
});
