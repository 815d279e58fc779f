import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forHost } from '../../../src/doctor/core/commands.ts';
import { diagnose } from '../../../src/doctor/core/diagnosis.ts';
import { CHECKS } from '../../../src/doctor/core/index.ts';
import { gathered } from '../facts.ts';

const INSTALLED = { program: 'hyperedge', root: '/', kubeconfig: '/etc/origin/master/admin.kubeconfig' };
const BELOW = {
  program: '/opt/x/hyperedge-linux-x64',
  root: '/r',
  kubeconfig: '/r/etc/origin/master/admin.kubeconfig',
};

test('printed fixes use the built-in client with the kubeconfig of this host', () => {
  const fix = "kubectl -n a logs 'b c' -c d --previous; kubectl -n a rollout undo deployment/b";
  const client = 'hyperedge kubectl --kubeconfig /etc/origin/master/admin.kubeconfig';
  assert.equal(forHost(fix, INSTALLED), fix.replaceAll('kubectl', client));
});

test('printed fixes contain --root once, in commands that accept the flag', () => {
  for (const [fix, expected] of [
    ['hyperedge image remove a && hyperedge image pull a', 'P image remove a --root /r && P image pull a --root /r'],
    ['hyperedge snapshot save --root /r; hyperedge members', 'P snapshot save --root /r; P members --root /r'],
    [
      'master-logs api api --tail 30; hyperedge status',
      'P master-logs api api --tail 30 --root /r; P status --root /r',
    ],
    [
      'kill 1; while kill -0 1; do sleep 1; done; hyperedge run --root /r',
      'kill 1; while kill -0 1; do sleep 1; done; P run --root /r',
    ],
    ['systemctl restart hyperedge    # or hyperedge run', 'systemctl restart hyperedge    # or hyperedge run'],
    ["printf 'hyperedge x' > /f", "printf 'hyperedge x' > /f"],
  ] as const)
    assert.equal(forHost(fix, BELOW), expected.replaceAll(/\bP\b/g, BELOW.program));
});

test('prints a long fix completely or omits the fix', () => {
  const mounts = [`/${'m'.repeat(2000)}`, `/${'m'.repeat(20_000)}`];
  const leftovers = CHECKS.filter(({ id }) => id === 'leftover-mounts');
  const [report] = diagnose(leftovers, gathered({ leftovers: { mounts, namespaces: [] } }), INSTALLED);
  assert.deepEqual(
    report?.findings.map(({ fix }) => fix),
    [`mount --make-rprivate ${mounts[0]} && umount -l ${mounts[0]}`, undefined],
  );
});
