import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ServiceCidr } from '../../../../src/api/kinds/network/servicecidrs/index.ts';
import { planServiceCidr } from '../../../../src/controllers/network/service-cidr/plan.ts';

const FINALIZER = 'networking.k8s.io/service-cidr-finalizer';
const DELETED = '2026-01-01T00:00:00Z';
const deletedMs = Date.parse(DELETED);
const range = (name: string, cidrs: string[], metadata: object = {}, ready?: 'True' | 'False'): ServiceCidr => ({
  metadata: { name, ...metadata },
  spec: { cidrs },
  status:
    ready === undefined
      ? {}
      : { conditions: [{ type: 'Ready', status: ready, reason: '', message: '', lastTransitionTime: DELETED }] },
});
const held = { finalizers: ['a', FINALIZER] };
const going = { ...held, deletionTimestamp: DELETED };
const plan = (each: ServiceCidr, others: ServiceCidr[], addresses: string[], nowMs = deletedMs + 10_000) =>
  planServiceCidr(each, [each, ...others], addresses, { nowMs, graceMs: 10_000 });

describe('ranges of service addresses', () => {
  it('a range of service addresses gets a finalizer, then the condition Ready, and no further update', () => {
    const first = plan(range('a', ['10.0.0.0/24'], { finalizers: ['a'] }), [], []);
    assert.ok(first.action === 'update');
    assert.deepEqual(first.object.metadata?.finalizers, ['a', FINALIZER]);
    const second = plan(range('a', ['10.0.0.0/24'], held), [], []);
    assert.ok(second.action === 'status');
    assert.deepEqual(second.object.status?.conditions, [
      {
        type: 'Ready',
        status: 'True',
        reason: '',
        message: 'Kubernetes Service CIDR is ready',
        lastTransitionTime: '2026-01-01T00:00:10Z',
      },
    ]);
    assert.deepEqual(plan(second.object, [], []), { action: 'keep' });
  });

  it('a range of service addresses stays while an allocated address is in no other range, and reports the reason', () => {
    const each = range('a', ['10.0.0.0/24', '2001:db8::/112'], going, 'True');
    const within = range('in', ['10.0.0.0/25'], {}, 'True');
    for (const [addresses, others] of [
      [['10.0.0.1'], []],
      [['2001:db8::1:1', '2001:db8::ffff'], []],
      [['10.0.0.1', '10.0.0.200'], [within]],
      [['10.0.0.1'], [range('in', ['10.0.0.0/8'], going)]],
    ] as const) {
      const blocked = plan(each, [...others], [...addresses]);
      assert.ok(blocked.action === 'status', JSON.stringify(addresses));
      assert.deepEqual(
        blocked.object.status?.conditions?.map(({ status, reason }) => [status, reason]),
        [['False', 'Terminating']],
      );
      assert.deepEqual(plan(blocked.object, [...others], [...addresses]), { action: 'keep' });
    }
  });

  it('a range of service addresses is deleted after a grace period if its addresses are unused or in another range', () => {
    const each = range('a', ['10.0.0.0/24'], going, 'False');
    const larger = range('b', ['10.0.0.0/16']);
    for (const [addresses, others] of [
      [['10.0.1.1', '11.0.0.1', '2001:db8::1'], []],
      [['10.0.0.1', '10.0.0.200'], [larger]],
      [['10.0.0.1'], [range('same', ['10.0.0.0/24'])]],
    ] as const) {
      assert.deepEqual(plan(each, [...others], [...addresses], deletedMs + 4_000), { action: 'wait', ms: 6_000 });
      const done = plan(each, [...others], [...addresses]);
      assert.ok(done.action === 'update');
      assert.deepEqual(done.object.metadata?.finalizers, ['a']);
    }
    const released = range('a', ['10.0.0.0/24'], { finalizers: ['a'], deletionTimestamp: DELETED });
    assert.deepEqual(plan(released, [], ['10.0.0.1']), { action: 'keep' });
  });
});
