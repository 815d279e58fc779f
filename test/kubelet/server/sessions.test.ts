import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Sessions, TooManySessions } from '../../../src/kubelet/server/sessions.ts';

test('limits sessions by kind and owner, and releases capacity when sessions end', async () => {
  const sessions = new Sessions();
  const open = Array.from({ length: 16 }, () => sessions.open('exec', 'a'));
  assert.throws(() => sessions.open('exec', 'a'), {
    name: 'TooManySessions',
    message: 'too many exec sessions of the container: the limit is 16; close one and try again',
  });
  sessions.open('exec', 'b');
  sessions.open('attach', 'a');
  open[0]?.();
  // Ending one session twice frees only one place.
  open[0]?.();
  await assert.rejects(
    sessions.run('exec', 'a', async () => {
      assert.throws(() => sessions.open('exec', 'a'), TooManySessions);
      throw new Error('the session broke');
    }),
    /the session broke/,
  );
  sessions.open('exec', 'a');
});
