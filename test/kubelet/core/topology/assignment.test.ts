import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Container, Pod } from '../../../../src/api/generated/core/v1.ts';
import { formatCpuSet, parseCpuSet } from '../../../../src/base/linux/cpuset.ts';
import { exclusiveCpus } from '../../../../src/kubelet/core/cgroups/exclusive.ts';
import { type Cpu, takeCpus } from '../../../../src/kubelet/core/topology/assignment.ts';

/** Two sockets with two cores of two threads each. Sibling IDs differ by 4, as Linux numbers them. */
const machine: readonly Cpu[] = Array.from({ length: 8 }, (_, id) => {
  const core = id % 4;
  return { id, core, socket: core < 2 ? 0 : 1, numa: core < 2 ? 0 : 1 };
});
const free = (list: string): ReadonlySet<number> => new Set(parseCpuSet(list));
const take = (list: string, count: number): string | undefined => {
  const used = takeCpus(machine, free(list), count);
  return used === undefined ? undefined : formatCpuSet(used);
};

test('parses and formats CPU lists like the kernel', () => {
  assert.deepEqual(parseCpuSet('0-2,7,5'), [0, 1, 2, 5, 7]);
  assert.equal(formatCpuSet([7, 0, 2, 1, 5, 1]), '0-2,5,7');
  assert.equal(formatCpuSet([]), '');
  for (const bad of ['a', '3-1', '1,,2', '0-99999']) assert.throws(() => parseCpuSet(bad), RangeError, bad);
});

test('takes whole sockets before whole cores, and whole cores before threads', () => {
  assert.equal(take('0-7', 4), '0-1,4-5');
  assert.equal(take('1-7', 4), '2-3,6-7');
  assert.equal(take('1-7', 2), '1,5');
  assert.equal(take('1-7', 1), '4');
  assert.equal(take('0-1', 3), undefined);
  assert.equal(take('0-7', 8), '0-7');
});

test('gives exclusive CPUs only for whole CPUs of Guaranteed pods', () => {
  const container = (requests: object, limits: object = requests): Container =>
    ({ name: 'c', resources: { requests, limits } }) as Container;
  const of = (each: Container, spec: object = {}): number =>
    exclusiveCpus({ spec: { containers: [each], ...spec } } as Pod, each);
  assert.equal(of(container({ cpu: '2', memory: '1Gi' })), 2);
  assert.equal(of(container({ cpu: '1500m', memory: '1Gi' })), 0);
  assert.equal(of(container({ cpu: '2', memory: '1Gi' }, { cpu: '3', memory: '1Gi' })), 0);
  assert.equal(of(container({ cpu: '2', memory: '1Gi' }), { resources: { limits: { cpu: '2', memory: '1Gi' } } }), 0);
});
