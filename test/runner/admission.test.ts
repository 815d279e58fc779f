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

test('the test runner starts the first waiting file for which enough cores are free', () => {
  const waiting = [file('heavy', 1), file('light', 0.2)];
  assert.equal(next(waiting, [file('a', 1.5)]), 'heavy');
  assert.equal(next(waiting, [file('a', 2)]), 'light');
  assert.equal(next(waiting, [file('a', 2.5)]), undefined);
});

test('the test runner starts a file that needs more cores than the host has when no other file runs', () => {
  assert.equal(next([file('huge', 9)], []), 'huge');
});

test('the test runner does not start two files with the same lock at once', () => {
  const waiting = [file('one', 0.1, { locks: ['bridge'] }), file('two', 0.1)];
  assert.equal(next(waiting, [file('a', 0.1, { locks: ['bridge'] })]), 'two');
  assert.equal(next(waiting, [file('a', 0.1, { locks: ['disk'] })]), 'one');
});

test('on a busy host, the test runner starts a file only while fewer files than cores are running', () => {
  const running = [file('a', 0.1), file('b', 0.1)];
  assert.equal(next([file('x', 0.1)], running, 0.95), undefined);
  assert.equal(next([file('x', 0.1)], running.slice(1), 0.95), 'x');
});

test('the test runner limits the number of files that run at once', () => {
  const running = Array.from({ length: 8 }, (_, index) => file(`${index}`, 0));
  assert.equal(next([file('x', 0)], running), undefined);
});

test('the test runner starts a file that has waited for a minute before any other file', () => {
  const waiting = [file('heavy', 1.5, { waitsSinceMs: NOW_MS - 61_000 }), file('light', 0.2)];
  assert.equal(next(waiting, [file('a', 1.5)]), undefined);
  assert.equal(next(waiting, [file('a', 1)]), 'heavy');
});
