import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Leases } from '../../../src/core/mvcc/leases.ts';

const ID = 7n;

function leases(checkpoint?: number): Leases {
  const subject = new Leases();
  subject.grant(ID, 10, 0).checkpoint = checkpoint;
  return subject;
}

test('what another member knows to be left is no more than what was written down', () => {
  const subject = leases(4);
  subject.setRemaining(ID, 9_000, 1_000);
  assert.equal(subject.get(ID)?.expiresAtMs, 5_000);
  subject.setRemaining(99n, 9_000, 1_000);
  assert.equal(subject.size, 1);
});

test('a lease that has been renewed is not cut short by who supposes the longest', () => {
  const subject = leases(4);
  subject.renew(ID, 1_000);
  // It started again meanwhile. That the renewal is behind what was written down is not written yet.
  subject.prolong(ID, 10_000, 1_500);
  assert.equal(subject.get(ID)?.expiresAtMs, 11_000);
  subject.prolong(99n, 10_000, 1_500);
  assert.equal(subject.size, 1);
});

test('a lease lives as long as the one who was told of its last renewal knows', () => {
  const subject = leases();
  subject.setRemaining(ID, 2_000, 1_000);
  subject.prolong(ID, 8_000, 1_000);
  assert.equal(subject.get(ID)?.expiresAtMs, 9_000);
  subject.prolong(ID, 1_000, 1_000);
  assert.equal(subject.get(ID)?.expiresAtMs, 9_000);
});
