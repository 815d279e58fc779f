import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PeerReport } from '../../../../src/api/kinds/nodes/nodes/host-report.ts';
import { type PeerHost, probersOf, unreachableReason } from '../../../../src/openshift/updates/core/index.ts';

const host = (name: string, report: PeerReport | undefined, ready = true): PeerHost => ({
  name,
  master: name.startsWith('m'),
  ready,
  report,
});
const reached = { h: { id: '7', why: '' } };
const failed = { h: { id: '7', why: 'kubelet at 10.0.0.1: connection refused' } };

test('selects at most three hosts that probe the updated host, masters first', () => {
  const hosts = ['w2', 'w1', 'm2', 'm1', 'm3', 'm0'].map((name) => host(name, {}));
  assert.deepEqual(
    probersOf('m1', [...hosts, host('a', undefined), host('m4', {}, false)]).map(({ name }) => name),
    ['m0', 'm2', 'm3'],
  );
});

test('requires that most of the probing hosts have reached the host during its update', () => {
  assert.equal(unreachableReason('h', '7', [host('h', {})]), '', 'a host that is alone');
  assert.equal(unreachableReason('h', '7', [host('w1', undefined)]), '', 'a release that does not probe');
  assert.match(unreachableReason('h', '7', [host('w1', {})]), /0 of 1 .* w1: has not probed it yet/);
  assert.match(unreachableReason('h', '7', [host('w1', { h: { id: '6', why: '' } })]), /has not probed it yet/);
  assert.match(
    unreachableReason('h', '7', [host('w1', failed)]),
    /0 of 1 .* w1: kubelet at 10\.0\.0\.1: connection refused/,
  );
  assert.equal(unreachableReason('h', '7', [host('w1', reached)]), '');
  assert.equal(unreachableReason('h', '7', [host('w1', reached), host('w2', reached), host('w3', failed)]), '');
  assert.match(unreachableReason('h', '7', [host('w1', failed), host('w2', reached), host('w3', failed)]), /1 of 3/);
  assert.match(unreachableReason('h', '7', [host('w1', failed), host('w2', reached)]), /1 of 2/);
});
