import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Candidate, nextFile } from './admission.ts';

const LIMITS = { cores: 2, filesAtOnce: 8 };
const NOW_MS = 100_000;

interface File extends Candidate {
  readonly name: string;
}

const file = (name: string, cores: number, more: Partial<Candidate> = {}): File => ({
  name,
  cores,
  locks: [],
  waitsSinceMs: NOW_MS,
  ...more,
});
const next = (waiting: readonly File[], running: readonly File[], busy = 0): string | undefined =>
  nextFile(waiting, running, { busy, nowMs: NOW_MS }, LIMITS)?.name;

test('test runner starts the first file whose cores are free beside the running files', () => {
  const waiting = [file('heavy', 1), file('light', 0.2)];
  assert.equal(next(waiting, [file('a', 1.5)]), 'heavy');
  assert.equal(next(waiting, [file('a', 2)]), 'light');
  assert.equal(next(waiting, [file('a', 2.5)]), undefined);
});

test('test runner starts a file that needs any number of cores when no other runs', () => {
  assert.equal(next([file('huge', 9)], []), 'huge');
});

test('does not start a test file beside one with the same lock', () => {
  const waiting = [file('one', 0.1, { locks: ['bridge'] }), file('two', 0.1)];
  assert.equal(next(waiting, [file('a', 0.1, { locks: ['bridge'] })]), 'two');
  assert.equal(next(waiting, [file('a', 0.1, { locks: ['disk'] })]), 'one');
});

test('starts no test file on a busy host while every core has a running file', () => {
  const running = [file('a', 0.1), file('b', 0.1)];
  assert.equal(next([file('x', 0.1)], running, 0.95), undefined);
  assert.equal(next([file('x', 0.1)], running.slice(1), 0.95), 'x');
});

test('test runner starts at most the given number of files', () => {
  const running = Array.from({ length: 8 }, (_, index) => file(`${index}`, 0));
  assert.equal(next([file('x', 0)], running), undefined);
});

test('starts no other test file before one that has waited for a minute', () => {
  const waiting = [file('heavy', 1.5, { waitsSinceMs: NOW_MS - 61_000 }), file('light', 0.2)];
  assert.equal(next(waiting, [file('a', 1.5)]), undefined);
  assert.equal(next(waiting, [file('a', 1)]), 'heavy');
});
