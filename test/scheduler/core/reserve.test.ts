import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podInfoOf } from '../../../src/api/podspec/scheduling/pod-info.ts';
import { toNodeName } from '../../../src/base/brand.ts';
import { rejectUnresolvable } from '../../../src/scheduler/core/filters/filter.ts';
import { type ReservePlugin, reservePod, unreservePod } from '../../../src/scheduler/core/reserve.ts';
import { cluster, node, pod, view } from './cluster-objects.ts';

test('calls unreserve of earlier Reserve plug-ins in reverse order after one rejects a pod', () => {
  const calls: string[] = [];
  const plugin = (name: string, refuses = false): ReservePlugin => ({
    reserve: () => {
      calls.push(`reserve ${name}`);
      return refuses ? rejectUnresolvable('VolumeBinding', name) : undefined;
    },
    unreserve: (_, on) => calls.push(`unreserve ${name} ${on}`),
  });
  const made = cluster([node('n')]);
  const info = podInfoOf(pod());
  const target = made.node(toNodeName('n'));
  assert.ok(target !== undefined);
  const all = [plugin('a'), plugin('b'), plugin('c', true), plugin('d')];
  assert.deepEqual(reservePod(all, info, target, view(made))?.reasons, ['c']);
  assert.deepEqual(calls, ['reserve a', 'reserve b', 'reserve c', 'unreserve b n', 'unreserve a n']);
  calls.length = 0;
  assert.equal(reservePod(all.slice(0, 2), info, target, view(made)), undefined);
  unreservePod(all.slice(0, 2), info, toNodeName('n'));
  assert.deepEqual(calls, ['reserve a', 'reserve b', 'unreserve b n', 'unreserve a n']);
});
