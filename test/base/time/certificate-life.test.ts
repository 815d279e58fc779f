import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renewalDueMs, whyRenew } from '../../../src/base/time/certificate-life.ts';

const DAY = 24 * 3600 * 1000;
const LIFE = 730 * DAY;
const NOW = Date.UTC(2026, 10, 20);

test('renews a certificate at 70 to 80 percent of its lifetime, spread by serial number', () => {
  const dates = (serial: string) => ({ notBeforeMs: NOW, notAfterMs: NOW + 100 * DAY, serial });
  const due = ['ab0000', 'ab4000', 'ab8000', 'abffff'].map((serial) => (renewalDueMs(dates(serial), LIFE) - NOW) / DAY);
  assert.deepEqual(due.map(Math.round), [70, 73, 75, 80]);
  for (const serial of ['ab0000', 'abffff']) {
    assert.equal(whyRenew(dates(serial), LIFE, NOW + 69 * DAY), undefined);
    assert.equal(whyRenew(dates(serial), LIFE, NOW + 81 * DAY), 'about to expire');
  }
});

test('derives the renewal time from notAfter if notBefore is 1970', () => {
  const dates = { notBeforeMs: 0, notAfterMs: NOW + LIFE, serial: '00' };
  assert.equal(renewalDueMs(dates, LIFE), NOW + 0.7 * LIFE);
  assert.equal(whyRenew(dates, LIFE, NOW), undefined);
  assert.equal(whyRenew(dates, LIFE, NOW + 0.71 * LIFE), 'about to expire');
  assert.equal(whyRenew(dates, LIFE, NOW + 3 * LIFE), 'expired');
});

test('renews certificates that a host with its clock in 2040 has issued, after the clock is corrected', () => {
  const then = Date.UTC(2040, 0, 1);
  const own = { notBeforeMs: 0, notAfterMs: then + LIFE, serial: '00' };
  assert.equal(whyRenew(own, LIFE, then), undefined);
  assert.equal(whyRenew(own, LIFE, NOW), 'valid beyond its lifetime');
  assert.equal(whyRenew({ ...own, notBeforeMs: then }, LIFE, NOW), 'not valid yet');
  // Certificates from an administrator may have any lifetime.
  assert.equal(whyRenew({ ...own, notBeforeMs: NOW - DAY }, LIFE, NOW), undefined);
});

test('renews no certificate because of a clock difference of a few hours', () => {
  const own = { notBeforeMs: 0, notAfterMs: NOW + 5 * 3_600_000 + LIFE, serial: '00' };
  assert.equal(whyRenew(own, LIFE, NOW), undefined);
});
