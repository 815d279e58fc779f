import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dateText, microTimestamp, timeMs, timestamp } from '../../../src/base/time/timestamps.ts';
import { generator } from '../../support/random.ts';

const FIRST_MS = Date.parse('0000-01-01T00:00:00Z');
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z');

/** Oracle: the fields of the calendar, joined by hand. */
function day(ms: number): string {
  const at = new Date(ms);
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${String(at.getUTCFullYear()).padStart(4, '0')}-${two(at.getUTCMonth() + 1)}-${two(at.getUTCDate())}`;
}

function second(ms: number): string {
  const at = new Date(ms);
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${day(ms)}T${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())}`;
}

test('formats random times like an independent formatter of calendar fields', () => {
  const random = generator(20);
  for (let run = 0; run < 20_000; run++) {
    // Pairs of times in the same second, because the formatter caches the text of the last second.
    const ms = Math.floor(FIRST_MS + random() * (LAST_MS - FIRST_MS));
    for (const each of [ms, ms - (ms % 1000), ms]) {
      assert.equal(timestamp(each), `${second(each)}Z`);
      assert.equal(timestamp(each + random() * 0.9), `${second(each)}Z`);
    }
    const millis = String(new Date(ms).getUTCMilliseconds()).padStart(3, '0');
    assert.equal(microTimestamp(ms), `${second(ms)}.${millis}000Z`);
    assert.equal(dateText(ms), day(ms));
    assert.equal(timeMs(timestamp(ms)), Math.floor(ms / 1000) * 1000);
  }
});

test('keeps microseconds and truncates smaller fractions', () => {
  assert.equal(microTimestamp(1_700_000_000_123.25), '2023-11-14T22:13:20.123250Z');
  assert.equal(microTimestamp(1_700_000_000_000 + 123.9995), '2023-11-14T22:13:20.123999Z');
});

test('formats times after year 9999 as the last time that RFC 3339 can express', () => {
  assert.equal(timestamp(LAST_MS + 1), '9999-12-31T23:59:59Z');
  assert.equal(timestamp(Number.POSITIVE_INFINITY), '9999-12-31T23:59:59Z');
});

test('returns the fallback for absent and invalid times', () => {
  assert.equal(timeMs(undefined), 0);
  assert.equal(timeMs('soon', 7), 7);
  assert.equal(timeMs('1970-01-01T00:00:01Z', 7), 1000);
});
