import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { PodStarts, type PodStartsOptions } from '../../../src/kubelet/pods/pod-starts.ts';
import { Retries } from '../../../src/kubelet/pods/retries.ts';

test('doubles the delay of a step with each failure up to a maximum, and resets the delay after a success', () => {
  const retries = new Retries({ minMs: 500, maxMs: 10_000 });
  const due = Array.from({ length: 6 }, () => {
    retries.failed('sandbox', 1_000);
    return (retries.dueAtMs('sandbox') ?? 0) - 1_000;
  });
  assert.deepEqual(due, [500, 1_000, 2_000, 4_000, 8_000, 10_000]);
  assert.equal(retries.dueAtMs('other'), undefined);
  retries.failedUntil('sandbox', 7_000);
  assert.equal(retries.dueAtMs('sandbox'), 7_000);
  assert.equal(retries.delayMs('sandbox'), 500);
  retries.failed('sandbox', 0);
  retries.succeeded('sandbox');
  assert.equal(retries.dueAtMs('sandbox'), undefined);
  assert.equal(retries.delayMs('sandbox'), 500);
});

test('resets the back-off of a container whose image changed', () => {
  const starts = new PodStarts({} as PodStartsOptions);
  const podOf = (images: Record<string, string>): Pod => ({
    spec: { containers: Object.entries(images).map(([name, image]) => ({ name, image })) },
  });
  for (const name of ['same', 'other']) starts.backOff.set(name, { delayMs: 300_000, sinceMs: 0 });
  starts.updated(podOf({ same: 'a', other: 'b' }), podOf({ same: 'a', other: 'c' }));
  assert.deepEqual([...starts.backOff.keys()], ['same']);
});
