import assert from 'node:assert/strict';
import { test } from 'node:test';
import { atTurnEnd } from '../../../src/wire/http2/turn-end.ts';

const nextImmediate = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('runs callbacks added by callbacks in the same event loop turn, in order', async () => {
  const ran: string[] = [];
  await nextImmediate();
  atTurnEnd(() => {
    ran.push('propose');
    atTurnEnd(() => ran.push('flush'));
  });
  atTurnEnd(() => ran.push('other'));
  // This callback would run before any callback that needs a second turn of the event loop.
  setImmediate(() => ran.push('later'));
  assert.deepEqual(ran, []);
  await nextImmediate();
  assert.deepEqual(ran, ['propose', 'other', 'flush', 'later']);
});

test('an exception in a callback at the end of an event loop turn does not prevent later callbacks', async () => {
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
