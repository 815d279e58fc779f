import assert from 'node:assert/strict';
import { test } from 'node:test';
import { atTurnEnd } from '../../../src/io/grpc/turn-end.ts';

const nextImmediate = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('what a run at the end of a turn asks for still runs in that turn, in order', async () => {
  const ran: string[] = [];
  await nextImmediate();
  atTurnEnd(() => {
    ran.push('propose');
    atTurnEnd(() => ran.push('flush'));
  });
  atTurnEnd(() => ran.push('other'));
  // Queued behind the first: a second turn of the loop would come after it.
  setImmediate(() => ran.push('later'));
  assert.deepEqual(ran, []);
  await nextImmediate();
  assert.deepEqual(ran, ['propose', 'other', 'flush', 'later']);
});

test('whoever throws ends nobody else’s turn', async () => {
  const caught: Error[] = [];
  process.setUncaughtExceptionCaptureCallback((error) => caught.push(error));
  try {
    await new Promise<void>((resolve) => {
      atTurnEnd(() => {
        throw new Error('torn');
      });
      atTurnEnd(resolve);
    });
  } finally {
    process.setUncaughtExceptionCaptureCallback(null);
  }
  assert.deepEqual(
    caught.map(({ message }) => message),
    ['torn'],
  );
});
