import assert from 'node:assert/strict';
import { it } from 'node:test';
import { endOf, keysOf, refused, revisionOf, type Subject } from './cluster.ts';

export function sessionConformance(subject: () => Subject): void {
  const lease = async (): Promise<bigint> => (await subject().client.grant(0n, 60)).ID;
  const revoke = (ID: bigint) => subject().client.call('etcdserverpb.Lease/LeaseRevoke', { ID });
  const lock = (name: string, id: bigint) => subject().client.call('v3lockpb.Lock/Lock', { name, lease: id });
  const waiting = (name: string) => subject().client.range({ key: `${name}/`, range_end: endOf(`${name}/`) });
  const appears = async (name: string, count: number): Promise<void> => {
    for (let i = 0; i < 500 && (await waiting(name)).count !== count; i += 1) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.equal((await waiting(name)).count, count);
  };
  const pending = async (promise: Promise<unknown>): Promise<void> => {
    const first = await Promise.race([promise, new Promise((resolve) => setTimeout(() => resolve('waits'), 100))]);
    assert.equal(first, 'waits');
  };

  it('a lock key consists of name and lease, and the next waiter gets the lock after the key is deleted', async () => {
    const name = `${subject().fresh()}lock`;
    const [first, second] = [await lease(), await lease()];
    const held = await lock(name, first);
    assert.equal(held.key, `${name}/${first.toString(16)}`);
    const [kv] = (await subject().client.range({ key: held.key })).kvs;
    assert.deepEqual([kv?.lease, kv?.value], [first, '']);
    assert.ok(revisionOf(held) >= (kv?.create_revision ?? Number.POSITIVE_INFINITY));
    assert.equal((await lock(name, first)).key, held.key);
    const next = lock(name, second);
    await pending(next);
    const unlocked = await subject().client.call('v3lockpb.Lock/Unlock', { key: held.key });
    assert.ok(revisionOf(unlocked) > revisionOf(held));
    assert.equal((await next).key, `${name}/${second.toString(16)}`);
    await revoke(first);
    await revoke(second);
    assert.equal((await waiting(name)).count, 0);
  });

  it('grants locks in the order of arrival, and skips waiters whose lease has expired', async () => {
    const name = `${subject().fresh()}lock`;
    const leases = [await lease(), await lease(), await lease(), await lease()];
    const [first, second, third, fourth] = leases as [bigint, bigint, bigint, bigint];
    await lock(name, first);
    const order: bigint[] = [];
    const waits = [];
    for (const [i, id] of [second, third, fourth].entries()) {
      waits.push(
        lock(name, id).then(
          () => order.push(id),
          (error: Error) => assert.match(error.message, /session is expired/),
        ),
      );
      await appears(name, i + 2);
    }
    await revoke(third);
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.deepEqual(order, []);
    await revoke(first);
    await waits[0];
    await revoke(second);
    await Promise.all(waits);
    // Versions of etcd before 3.4.25 also give the lock to a waiter whose lease has ended.
    assert.deepEqual(
      order.filter((id) => id !== third),
      [second, fourth],
    );
    await revoke(fourth);
  });

  it('a cancelled lock call leaves the queue, and a lock call without a lease gets a new lease', async () => {
    const name = `${subject().fresh()}lock`;
    const { client } = subject();
    const held = await lock(name, 0n);
    const [kv] = (await client.range({ key: held.key })).kvs;
    assert.equal(held.key, `${name}/${kv?.lease.toString(16)}`);
    const id = await lease();
    const call = client.open('v3lockpb.Lock/Lock').send({ name, lease: id });
    call.end();
    await appears(name, 2);
    call.cancel();
    await appears(name, 1);
    await revoke(kv?.lease ?? 0n);
    await revoke(id);
    await refused(lock(name, 424_242n), 2, 'etcdserver: requested lease not found');
  });

  it('elects a leader that can proclaim values and resign', async () => {
    const name = `${subject().fresh()}election`;
    const { client } = subject();
    const [first, second] = [await lease(), await lease()];
    const campaign = (id: bigint, value: string) =>
      client.call('v3electionpb.Election/Campaign', { name, lease: id, value });
    await refused(client.call('v3electionpb.Election/Leader', { name }), 2, 'election: no leader');
    const won = await campaign(first, 'one');
    const { leader } = won;
    assert.deepEqual([leader?.name, leader?.key, leader?.lease], [name, `${name}/${first.toString(16)}`, first]);
    const present = await client.call('v3electionpb.Election/Leader', { name });
    assert.deepEqual([present.kv?.value, present.kv?.create_revision, present.kv?.lease], ['one', leader?.rev, first]);
    const next = campaign(second, 'two');
    await pending(next);
    assert.ok(leader);
    await client.call('v3electionpb.Election/Proclaim', { leader, value: 'one again' });
    assert.equal((await client.call('v3electionpb.Election/Leader', { name })).kv?.value, 'one again');
    // A second campaign with the same lease proclaims the new value.
    await campaign(first, 'one anew');
    assert.equal((await client.call('v3electionpb.Election/Leader', { name })).kv?.value, 'one anew');
    await client.call('v3electionpb.Election/Resign', { leader });
    assert.equal((await next).leader?.lease, second);
    assert.equal((await client.call('v3electionpb.Election/Leader', { name })).kv?.value, 'two');
    const stale = client.call('v3electionpb.Election/Proclaim', { leader, value: 'x' });
    await refused(stale, 2, 'election: not leader');
    await client.call('v3electionpb.Election/Resign', { leader });
    await refused(client.call('v3electionpb.Election/Resign', {}), 2, '"leader" field must be provided');
    await refused(client.call('v3electionpb.Election/Proclaim', {}), 2, '"leader" field must be provided');
    await revoke(first);
    await revoke(second);
  });

  it('a cancelled campaign removes its candidate from the election', async () => {
    const name = `${subject().fresh()}election`;
    const { client } = subject();
    const [first, second] = [await lease(), await lease()];
    await client.call('v3electionpb.Election/Campaign', { name, lease: first, value: '1' });
    const call = client.open('v3electionpb.Election/Campaign').send({ name, lease: second, value: '2' });
    call.end();
    await appears(name, 2);
    call.cancel();
    await appears(name, 1);
    assert.deepEqual(keysOf((await waiting(name)).kvs), [`${name}/${first.toString(16)}`]);
    await revoke(first);
    await revoke(second);
  });

  it('an observer receives the current leader, its proclamations, and the next leader', async () => {
    const name = `${subject().fresh()}election`;
    const { client } = subject();
    const [first, second] = [await lease(), await lease()];
    const observer = client.open('v3electionpb.Election/Observe').send({ name });
    observer.end();
    await new Promise((resolve) => setTimeout(resolve, 50));
    const { leader } = await client.call('v3electionpb.Election/Campaign', { name, lease: first, value: '1' });
    assert.equal((await observer.next()).kv?.value, '1');
    const late = client.open('v3electionpb.Election/Observe').send({ name });
    late.end();
    assert.equal((await late.next()).kv?.value, '1');
    const next = client.call('v3electionpb.Election/Campaign', { name, lease: second, value: '2' });
    await appears(name, 2);
    assert.ok(leader);
    await client.call('v3electionpb.Election/Proclaim', { leader, value: '1b' });
    assert.equal((await observer.next()).kv?.value, '1b');
    assert.equal((await late.next()).kv?.value, '1b');
    await revoke(first);
    await next;
    const seen = await observer.next();
    assert.deepEqual([seen.kv?.value, seen.kv?.lease], ['2', second]);
    assert.equal((await late.next()).kv?.value, '2');
    observer.cancel();
    late.cancel();
    await revoke(second);
  });
}
