import assert from 'node:assert/strict';
import { test } from 'node:test';
import { secretFileProblem } from '../../../src/base/files/secret-file.ts';

test('checks mode and owner of private files and names the command that repairs the file', () => {
  const problem = (mode: number, uid = 0, own = 0): string | undefined =>
    secretFileProblem('/etc/ca.key', { mode: 0o100000 | mode, uid }, own);
  for (const mode of [0o600, 0o400, 0o700]) assert.equal(problem(mode), undefined);
  assert.equal(problem(0o600, 7, 7), undefined);
  assert.equal(problem(0o600, 0, 7), undefined);
  for (const [mode, says] of [
    [0o604, 'every user can read'],
    [0o644, 'every user can read'],
    [0o640, 'its group can read'],
    [0o620, 'its group can write'],
    [0o602, 'every user can write'],
    [0o666, 'every user can read and write'],
  ] as const)
    assert.equal(problem(mode), `/etc/ca.key: private material that ${says}; run chmod 0600 /etc/ca.key`);
  assert.equal(problem(0o600, 1000), '/etc/ca.key: private material that belongs to uid 1000; run chown 0 /etc/ca.key');
});
