import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bundleOf } from '../../src/cli/invocation.ts';

test('every link name of a long-running command selects the same separate bundle', () => {
  const of = (argv0: string, ...argv: string[]): string => bundleOf({ argv0, argv });
  assert.equal(of('/usr/local/bin/hyperedge', 'etcd', '--config', 'x'), 'etcd');
  assert.equal(of('etcd', '--data-dir', 'x'), 'etcd');
  assert.equal(of('hyperkube', 'kube-apiserver'), 'api');
  assert.equal(of('kubelet'), 'run');
  assert.equal(of('hyperedge', 'token', 'list'), 'others');
  assert.equal(of('hyperedge'), 'others');
  assert.equal(of('hyperedge', 'toString'), 'others');
});
