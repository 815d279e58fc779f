import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { expiryCondition, snapshotCondition } from '../../../src/host/run/maintenance-conditions.ts';

const DAY_MS = 24 * 3_600_000;
const NOW_MS = Date.parse('2026-11-26T12:00:00Z');

describe('conditions about maintenance', () => {
  it('conditions about maintenance name the next expiry, and need attention two weeks before the expiry', () => {
    const files = (days: number) => [
      { file: '/etc/origin/master/later.crt', notAfterMs: NOW_MS + 400 * DAY_MS },
      { file: '/etc/origin/master/next.crt', notAfterMs: NOW_MS + days * DAY_MS },
    ];
    assert.deepEqual(expiryCondition(files(100), NOW_MS), {
      type: 'CertificateExpiresSoon',
      status: 'False',
      reason: 'CertificatesAreValid',
      message: 'next expiry 2027-03-06T12:00:00Z: next.crt',
    });
    assert.equal(expiryCondition(files(13), NOW_MS)?.status, 'True');
    assert.equal(expiryCondition([], NOW_MS), undefined);
  });

  it('conditions about maintenance report a damaged certificate before any expiry', () => {
    const damaged = [
      { file: 'a.crt', notAfterMs: NOW_MS + DAY_MS },
      { file: 'b.crt', notAfterMs: undefined },
    ];
    assert.match(expiryCondition(damaged, NOW_MS)?.message ?? '', /^b\.crt is not readable/);
  });

  it('conditions about maintenance name the last snapshot, and need attention after two intervals without a snapshot', () => {
    const of = (hours: number | undefined, observedHours = 0) =>
      snapshotCondition(
        {
          every: '24h',
          elsewhere: undefined,
          newest: hours === undefined ? undefined : { takenMs: NOW_MS - hours * 3_600_000, bytes: 2 << 20 },
          observedMs: observedHours * 3_600_000,
        },
        NOW_MS,
      );
    assert.deepEqual(
      [of(24).status, of(24).message],
      ['False', 'last snapshot 2026-11-25T12:00:00Z, 2.0 MiB; every 24h'],
    );
    assert.equal(of(49).status, 'True');
    assert.deepEqual([of(undefined).status, of(undefined, 49).status], ['False', 'True']);
  });

  it('conditions about maintenance read no directory outside of the installation', () => {
    const facts = { every: '1h', elsewhere: '/mnt/backup', newest: undefined, observedMs: 10 * DAY_MS };
    assert.match(snapshotCondition(facts, NOW_MS).message, /into \/mnt\/backup/);
    assert.equal(snapshotCondition({ ...facts, every: undefined }, NOW_MS).reason, 'ScheduleIsOff');
  });
});
