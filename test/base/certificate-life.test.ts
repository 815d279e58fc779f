import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renewalDueMs, whyRenew } from '../../src/base/certificate-life.ts';

const DAY = 24 * 3600 * 1000;
const LIFE = 730 * DAY;
const NOW = Date.UTC(2026, 10, 20);

test('a certificate is renewed at 70 to 80 percent of its life, spread by its serial number', () => {
  const dates = (serial: string) => ({ notBeforeMs: NOW, notAfterMs: NOW + 100 * DAY, serial });
  const due = ['ab0000', 'ab4000', 'ab8000', 'abffff'].map((serial) => (renewalDueMs(dates(serial), LIFE) - NOW) / DAY);
  assert.deepEqual(due.map(Math.round), [70, 73, 75, 80]);
  for (const serial of ['ab0000', 'abffff']) {
    assert.equal(whyRenew(dates(serial), LIFE, NOW + 69 * DAY), undefined);
    assert.equal(whyRenew(dates(serial), LIFE, NOW + 81 * DAY), 'about to expire');
  }
});

test('a certificate that is valid since 1970 has its lifetime before its end', () => {
  const dates = { notBeforeMs: 0, notAfterMs: NOW + LIFE, serial: '00' };
  assert.equal(renewalDueMs(dates, LIFE), NOW + 0.7 * LIFE);
  assert.equal(whyRenew(dates, LIFE, NOW), undefined);
  assert.equal(whyRenew(dates, LIFE, NOW + 0.71 * LIFE), 'about to expire');
  assert.equal(whyRenew(dates, LIFE, NOW + 3 * LIFE), 'expired');
});

test('what a clock in 2040 has issued is renewed once the clock is right', () => {
  const then = Date.UTC(2040, 0, 1);
  const own = { notBeforeMs: 0, notAfterMs: then + LIFE, serial: '00' };
  assert.equal(whyRenew(own, LIFE, then), undefined);
  assert.equal(whyRenew(own, LIFE, NOW), 'valid beyond its lifetime');
  assert.equal(whyRenew({ ...own, notBeforeMs: then }, LIFE, NOW), 'not valid yet');
  // An administrator's certificate may live as long as it wants.
  assert.equal(whyRenew({ ...own, notBeforeMs: NOW - DAY }, LIFE, NOW), undefined);
});

test('a difference of some hours between clocks renews nothing', () => {
  const own = { notBeforeMs: 0, notAfterMs: NOW + 5 * 3_600_000 + LIFE, serial: '00' };
  assert.equal(whyRenew(own, LIFE, NOW), undefined);
});
