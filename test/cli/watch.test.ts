import assert from 'node:assert/strict';
import { test } from 'node:test';
import { usesColours } from '../../src/cli/colours.ts';
import { watchFrames, watchInterval } from '../../src/cli/watch.ts';

const ESCAPE = '\u001b[';

/** Shows the frames and ends the watch during the sleep after the last one. */
async function watched(frames: readonly string[], rows: number | undefined, failing = false): Promise<string[]> {
  const written: string[] = [];
  const slept: number[] = [];
  const end = new AbortController();
  let at = 0;
  const frame = async (): Promise<string> => {
    const text = frames[at++];
    if (text === undefined || (failing && at === frames.length)) throw new Error('no frame');
    return text;
  };
  const options = {
    write: (text: string) => void written.push(text),
    rows: () => rows,
    intervalMs: 3000,
    sleep: async (ms: number) => {
      slept.push(ms);
      if (at === frames.length) end.abort();
    },
    signal: end.signal,
  };
  await watchFrames(frame, options).catch((error: unknown) => assert.ok(failing, String(error)));
  assert.ok(slept.every((ms) => ms === 3000));
  return written;
}

test('redraws each frame over the previous frame with one write, and restores the terminal', async () => {
  assert.deepEqual(await watched(['a\nb\n', 'c\n'], 24), [
    `${ESCAPE}?25l${ESCAPE}?7l`,
    `\ra${ESCAPE}K\nb${ESCAPE}K\n${ESCAPE}J`,
    `${ESCAPE}2A\rc${ESCAPE}K\n${ESCAPE}J`,
    `${ESCAPE}?7h${ESCAPE}?25h`,
  ]);
});

test('restores the terminal when a frame fails', async () => {
  assert.equal((await watched(['a\n', 'b\n'], 24, true)).at(-1), `${ESCAPE}?7h${ESCAPE}?25h`);
});

test('cuts a frame that is higher than the terminal', async () => {
  const [, frame] = await watched(['1\n2\n3\n4\n5\n'], 4);
  assert.equal(frame, `\r1${ESCAPE}K\n2${ESCAPE}K\n… 3 more lines${ESCAPE}K\n${ESCAPE}J`);
});

test('prints frames without control sequences if the output is no terminal', async () => {
  assert.deepEqual(await watched(['a\n', 'b\n'], undefined), ['a\n', '\nb\n']);
});

test('reads the interval of a watch and rejects invalid intervals with the range', () => {
  assert.deepEqual([undefined, '5', '5s', '2m'].map(watchInterval), [2000, 5000, 5000, 120_000]);
  for (const text of ['0', '1h', '-1', '61m', 'x', '5000'])
    assert.throws(() => watchInterval(text), /--watch .*: give an interval from 1 to 3600 seconds/, text);
});

test('output has colours only on terminals that allow colours', () => {
  assert.equal(usesColours({ isTTY: true }, {}), true);
  assert.equal(usesColours({ isTTY: true }, { NO_COLOR: '' }), true);
  assert.equal(usesColours({ isTTY: true }, { NO_COLOR: '1' }), false);
  assert.equal(usesColours({ isTTY: true }, { TERM: 'dumb' }), false);
  assert.equal(usesColours({}, {}), false);
});
