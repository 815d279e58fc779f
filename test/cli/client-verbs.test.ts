import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bundleOf, CLIENT_VERBS, isClientVerb } from '../../src/cli/invocation.ts';
import { VERBS } from '../../src/kubectl/verbs.ts';

test('the launcher recognizes the verbs of the built-in client', () => {
  const own = ['version', 'config', 'plugin', 'proxy'];
  assert.deepEqual(
    CLIENT_VERBS.toSorted(),
    VERBS.map(({ name }) => name)
      .filter((name) => !own.includes(name))
      .toSorted(),
  );
});

test('run is the host process unless an image is given', () => {
  assert.equal(isClientVerb(['run', '--root', '/tmp/x']), false);
  assert.equal(isClientVerb(['run', 'web', '--image=nginx']), true);
  assert.equal(isClientVerb(['run', 'web', '--image', 'nginx']), true);
});

test('the command config has the verbs of kubectl config in addition to the verbs for the bootstrap file', () => {
  assert.equal(isClientVerb(['config', 'view']), true);
  assert.equal(isClientVerb(['config', 'check']), false);
});

test('the built-in client has a separate bundle', () => {
  assert.equal(bundleOf({ argv: ['get', 'pods'], argv0: 'hyperedge' }), 'kubectl');
  assert.equal(bundleOf({ argv: ['kubectl', 'version'], argv0: 'hyperedge' }), 'kubectl');
  assert.equal(bundleOf({ argv: ['get', 'pods'], argv0: '/usr/local/bin/kubectl' }), 'kubectl');
  assert.equal(bundleOf({ argv: ['help', 'get'], argv0: 'hyperedge' }), 'kubectl');
  assert.equal(bundleOf({ argv: ['-n', 'web', '--context=lab', 'logs', 'x'], argv0: 'hyperedge' }), 'kubectl');
  assert.equal(bundleOf({ argv: ['-n', 'web', 'status'], argv0: 'hyperedge' }), 'others');
  assert.equal(bundleOf({ argv: ['get', 'pods'], argv0: 'kubelet' }), 'run');
  assert.equal(bundleOf({ argv: ['__complete', 'get', ''], argv0: 'hyperedge' }), 'complete');
  assert.equal(bundleOf({ argv: ['run'], argv0: 'hyperedge' }), 'run');
  assert.equal(bundleOf({ argv: ['status'], argv0: 'hyperedge' }), 'others');
});
