import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Leases } from '../../../../src/store/core/mvcc/leases.ts';

const ID = 7n;

function leases(checkpoint?: number): Leases {
  const subject = new Leases();
  subject.grant(ID, 10, 0).checkpoint = checkpoint;
  return subject;
}

test('the remaining time reported by another member cannot exceed the checkpointed time', () => {
  const subject = leases(4);
  subject.setRemaining(ID, 9_000, 1_000);
  assert.equal(subject.get(ID)?.expiresAtMs, 5_000);
  subject.setRemaining(99n, 9_000, 1_000);
  assert.equal(subject.size, 1);
});

test('the full TTL reported by another member extends a renewed lease', () => {
  const subject = leases(4);
  subject.renew(ID, 1_000);
  // The other member has restarted, and the checkpoint of the renewal is not written yet.
  subject.prolong(ID, 10_000, 1_500);
  assert.equal(subject.get(ID)?.expiresAtMs, 11_000);
  subject.prolong(99n, 10_000, 1_500);
  assert.equal(subject.size, 1);
});

test('the expiry reported by another member extends a lease but never shortens it', () => {
  const subject = leases();
  subject.setRemaining(ID, 2_000, 1_000);
  subject.prolong(ID, 8_000, 1_000);
  assert.equal(subject.get(ID)?.expiresAtMs, 9_000);
  subject.prolong(ID, 1_000, 1_000);
  assert.equal(subject.get(ID)?.expiresAtMs, 9_000);
});
