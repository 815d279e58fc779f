import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import { ConsoleLinks } from '../../../../src/openshift/oauth/login/console-links.ts';

const USER = { name: 'kube:admin', uid: 'u' };

function links() {
  const time = { nowMs: 1_000 };
  const random = (): string => randomBytes(32).toString('base64url');
  return { time, links: new ConsoleLinks(random, () => time.nowMs) };
}

describe('one-time login links', () => {
  it('a one-time login link can be used once', () => {
    const { links: all } = links();
    const secret = all.issue(USER);
    assert.deepEqual(all.redeem(secret), USER);
    assert.equal(all.redeem(secret), undefined);
  });

  it('a one-time login link expires after 60 s', () => {
    const { links: all, time } = links();
    const [early, late] = [all.issue(USER), all.issue(USER)];
    time.nowMs += 59_999;
    assert.deepEqual(all.redeem(early), USER);
    time.nowMs += 1;
    assert.equal(all.redeem(late), undefined);
  });

  it('a wrong secret is rejected and does not invalidate a one-time login link', () => {
    const { links: all } = links();
    const secret = all.issue(USER);
    for (const other of ['', 'x', `${secret}x`, secret.toUpperCase(), randomBytes(32).toString('base64url')])
      assert.equal(all.redeem(other), undefined);
    assert.deepEqual(all.redeem(secret), USER);
  });

  it('a new one-time login link beyond the limit invalidates the oldest one', () => {
    const { links: all } = links();
    const secrets = Array.from({ length: 17 }, () => all.issue(USER));
    assert.equal(all.redeem(secrets[0] ?? ''), undefined);
    assert.deepEqual(all.redeem(secrets[1] ?? ''), USER);
    assert.deepEqual(all.redeem(secrets[16] ?? ''), USER);
  });
});
