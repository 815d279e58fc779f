import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../../src/api/generated/core/v1.ts';
import { ApiError } from '../../../../src/api/meta/status.ts';
import { silentLog } from '../../../../src/base/log.ts';
import { attemptAll } from '../../../../src/controllers/framework/attempt-all.ts';
import { podGcController } from '../../../../src/controllers/garbage-collection/pods/controller.ts';

test('continues to delete pods when a deletion is rejected', async () => {
  const finished = (name: string): Pod => ({
    metadata: { name, namespace: 'ns', uid: name, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { nodeName: 'n', containers: [] },
    status: { phase: 'Succeeded' },
  });
  const pods = ['a', 'b', 'c', 'd'].map(finished);
  const deleted: string[] = [];
  const client = {
    delete: async (name: string) => {
      if (name === 'a') throw new ApiError('Forbidden', 'a webhook refuses it');
      deleted.push(name);
    },
  };
  const nodes = [{ metadata: { name: 'n' } }];
  const handle = {
    informer: (type: { plural: string }) => ({ list: () => (type.plural === 'pods' ? pods : nodes) }),
    writer: () => client,
    clock: { monotonicMs: () => 0 },
    log: silentLog,
    options: { terminatedPodThreshold: 1 },
    plan: () => ({ nowMs: 0, random: () => 0 }),
  };
  let task: (() => void | Promise<void>) | undefined;
  const scope = {
    signal: new AbortController().signal,
    every: (_: number, each: () => void | Promise<void>) => {
      task = each;
    },
  };
  await podGcController.prepare(handle as never)(scope as never);
  await task?.();
  assert.deepEqual(deleted, ['b', 'c']);
});

test('the pod garbage collector attempts every deletion and then reports the failures', async () => {
  const seen: number[] = [];
  const act = async (item: number): Promise<void> => {
    seen.push(item);
    if (item % 2 === 1) throw new Error(`item ${item}`);
  };
  await assert.rejects(attemptAll([1, 2, 3, 4], act), /2 writes failed, first: item 1/);
  await assert.rejects(attemptAll([5], act), /^Error: item 5$/);
  await attemptAll([6], act);
  assert.deepEqual(seen, [1, 2, 3, 4, 5, 6]);
});
