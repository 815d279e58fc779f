import assert from 'node:assert/strict';
import { test } from 'node:test';
import { counting, createProgress, transferring } from '../../../src/base/command-line/progress.ts';

const MIB = 1024 * 1024;
const ERASE = '\r\u001b[K';

/** A progress with a clock that the test sets, and a stream that records. */
function recorded(options: { terminal: boolean; quiet?: boolean; columns?: number; colours?: boolean }) {
  const written: string[] = [];
  const clock = { ms: 5000 };
  const progress = createProgress({
    ...options,
    columns: () => options.columns,
    write: (text) => void written.push(text),
    nowMs: () => clock.ms,
  });
  return { progress, written, clock };
}

test('redraws one line with bytes, rate and remaining time on a terminal', () => {
  const { progress, written, clock } = recorded({ terminal: true });
  const transfer = progress.transfer('pulling web');
  transfer.update(0, 40 * MIB);
  clock.ms += 2000;
  transfer.update(8 * MIB, 40 * MIB);
  clock.ms += 3000;
  transfer.update(40 * MIB, 40 * MIB);
  transfer.end();
  assert.deepEqual(written, [
    `${ERASE}pulling web: 0B of 40.0MiB (0 %)`,
    `${ERASE}pulling web: 8.0MiB of 40.0MiB (20 %), 4.0MiB/s, 8 s left`,
    `${ERASE}pulling web: 40.0MiB of 40.0MiB (100 %), 8.0MiB/s`,
    `${ERASE}pulling web: 40.0MiB in 5.0 s (8.0MiB/s)\n`,
  ]);
});

test('prints one plain line per transfer if the output is no terminal', () => {
  const { progress, written, clock } = recorded({ terminal: false });
  const transfer = progress.transfer('saving');
  for (let at = 1; at <= 100; at += 1) transfer.update(at * MIB, 100 * MIB);
  clock.ms += 500;
  transfer.end();
  progress.step('files are in place');
  assert.deepEqual(written, ['saving: 100MiB in 0.5 s\n', 'files are in place after 0.50 s\n']);
});

test('draws progress at most ten times a second', () => {
  const { progress, written, clock } = recorded({ terminal: true });
  const transfer = progress.transfer('copying');
  for (let at = 0; at < 1000; at += 1) {
    clock.ms += 1;
    transfer.update(at, 1000);
  }
  assert.equal(written.length, 10);
});

test('the shown transfer rate falls quickly when the transfer slows down', () => {
  const { progress, written, clock } = recorded({ terminal: true });
  const transfer = progress.transfer('pulling');
  let done = 0;
  for (let second = 0; second < 60; second += 1) {
    clock.ms += 1000;
    done += second < 30 ? 10 * MIB : MIB;
    transfer.update(done, 1000 * MIB);
  }
  assert.match(written.at(-1) ?? '', /, 1\.0MiB\/s, 11 min 10 s left$/);
});

test('progress shows the amount alone while the total is not known', () => {
  const { progress, written, clock } = recorded({ terminal: true });
  const transfer = progress.transfer('saving');
  clock.ms += 2000;
  transfer.update(2 * MIB, 0);
  assert.deepEqual(written, [`${ERASE}saving: 2.0MiB, 1.0MiB/s`]);
});

test('prints steps and notes above the line of a transfer', () => {
  const { progress, written } = recorded({ terminal: true, colours: false });
  progress.transfer('importing').update(1, 2);
  progress.step('checked');
  assert.deepEqual(written.slice(1), [`${ERASE}✔   0.00 s  checked\nimporting: 1B of 2B (50 %)`]);
});

test('progress lines never exceed the width of the terminal', () => {
  const { progress, written } = recorded({ terminal: true, columns: 30 });
  progress.transfer('pulling registry.example/a/very/long/name').update(1, 2);
  assert.equal(written[0], `${ERASE}pulling registry.example/a/v…`);
});

test('removes the line of a failed transfer and reports the error', async () => {
  const { progress, written } = recorded({ terminal: true });
  const work = transferring(progress, 'pulling', async (onProgress) => {
    onProgress(1, 2);
    throw new Error('no route');
  });
  await assert.rejects(work, /no route/);
  assert.deepEqual(written, [`${ERASE}pulling: 1B of 2B (50 %)`, ERASE]);
});

test('shows the progress of items other than bytes without a transfer rate', async () => {
  const { progress, written } = recorded({ terminal: false });
  await transferring(progress, 'pushing', async (onProgress) => onProgress(812, 812), 'keys');
  assert.deepEqual(written, ['pushing: 812 keys in 0.0 s\n']);
});

test('prints no progress in quiet mode', async () => {
  const { progress, written } = recorded({ terminal: true, quiet: true });
  progress.step('a');
  progress.note('b');
  progress.summary('c');
  const work = async (onProgress: (done: number, total: number) => void): Promise<string> => {
    onProgress(1, 2);
    return 'result';
  };
  assert.equal(await transferring(progress, 'd', work), 'result');
  assert.deepEqual(written, []);
});

test('shows a counter on a terminal only, and removes its line at the end', async () => {
  for (const terminal of [true, false]) {
    const { progress, written } = recorded({ terminal });
    const result = await counting(progress, 'removal', 'pods', async (onProgress) => {
      onProgress(3, 12);
      return 'done';
    });
    assert.equal(result, 'done');
    assert.deepEqual(written, terminal ? [`${ERASE}removal: 3 pods of 12 pods (25 %)`, ERASE] : []);
  }
});
