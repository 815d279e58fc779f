import assert from 'node:assert/strict';
import { it } from 'node:test';
import { endOf, keysOf, refused, revisionOf, type Subject } from './cluster.ts';

const NOT_FOUND = 'etcdserver: requested lease not found';

export function leaseConformance(subject: () => Subject): void {
  const timeToLive = (ID: bigint, keys = false) =>
    subject().client.call('etcdserverpb.Lease/LeaseTimeToLive', { ID, keys });
  const revoke = (ID: bigint) => subject().client.call('etcdserverpb.Lease/LeaseRevoke', { ID });
  let next = BigInt(process.pid) * 1_000_000n;
  const unused = (): bigint => {
    next += 1n;
    return next;
  };

  it('grants leases with a given or generated ID, and rejects duplicate IDs and excessive TTLs', async () => {
    const { client } = subject();
    const ID = unused();
    const granted = await client.grant(ID, 60);
    assert.deepEqual([granted.ID, granted.TTL, granted.error], [ID, 60, '']);
    await refused(client.grant(ID, 60), 9, 'etcdserver: lease already exists');
    const chosen = await client.grant(0n, 60);
    assert.ok(chosen.ID > 0n);
    assert.equal((await client.grant(unused(), 1)).TTL, 2);
    assert.equal((await client.grant(unused(), 0)).TTL, 2);
    assert.equal((await client.grant(unused(), -5)).TTL, 2);
    await refused(client.grant(unused(), 9_000_000_001), 11, 'etcdserver: too large lease TTL');
    await revoke(ID);
    await revoke(chosen.ID);
    await refused(revoke(ID), 5, NOT_FOUND);
  });

  it('returns the remaining time and attached keys, and -1 for an unknown lease', async () => {
    const { client } = subject();
    const prefix = subject().fresh();
    const ID = unused();
    await client.grant(ID, 100);
    await client.put({ key: `${prefix}b`, value: 'v', lease: ID });
    await client.put({ key: `${prefix}a`, value: 'v', lease: ID });
    const left = await timeToLive(ID);
    assert.deepEqual([left.ID, left.grantedTTL, left.keys], [ID, 100, []]);
    assert.ok(left.TTL >= 98 && left.TTL <= 100, String(left.TTL));
    assert.deepEqual((await timeToLive(ID, true)).keys.sort(), [`${prefix}a`, `${prefix}b`]);
    const missing = await timeToLive(unused(), true);
    assert.deepEqual([missing.ID, missing.TTL, missing.grantedTTL, missing.keys], [next, -1, 0, []]);
    assert.ok((missing.header?.cluster_id ?? 0n) !== 0n);
    await revoke(ID);
  });

  it('answers keep-alives of a stream in order, with TTL 0 for an unknown lease', async () => {
    const { client } = subject();
    const ID = unused();
    await client.grant(ID, 60);
    const stream = client.open('etcdserverpb.Lease/LeaseKeepAlive');
    const missing = unused();
    stream.send({ ID }).send({ ID: missing }).send({ ID });
    const answers = [await stream.next(), await stream.next(), await stream.next()];
    assert.deepEqual(
      answers.map(({ ID: id, TTL }) => [id, TTL]),
      [
        [ID, 60],
        [missing, 0],
        [ID, 60],
      ],
    );
    assert.ok((answers[1]?.header?.raft_term ?? 0) > 0);
    stream.end();
    assert.equal((await stream.ended()).code, 0);
    await revoke(ID);
  });

  it('lists leases in the order of their expiry', async () => {
    const { client } = subject();
    const [long, short, middle] = [unused(), unused(), unused()];
    await client.grant(long, 300);
    await client.grant(short, 100);
    await client.grant(middle, 200);
    const { leases } = await client.call('etcdserverpb.Lease/LeaseLeases', {});
    const mine = leases.map((lease) => lease.ID).filter((id) => [long, short, middle].includes(id));
    if (subject().memberCount === 1) assert.deepEqual(mine, [short, middle, long]);
    else assert.deepEqual(mine.sort(), [long, short, middle]);
    for (const id of [long, short, middle]) await revoke(id);
  });

  it('revoking a lease deletes all its keys in one revision, and creates no revision without keys', async () => {
    const { client } = subject();
    const prefix = subject().fresh();
    const ID = unused();
    await client.grant(ID, 60);
    for (const name of ['c', 'a', 'b']) await client.put({ key: prefix + name, value: name, lease: ID });
    const stays = await client.put({ key: `${prefix}stays`, value: 'v' });
    const watch = client.watch();
    watch.send({ create_request: { key: prefix, range_end: endOf(prefix), prev_kv: true } });
    await watch.next();
    const revoked = await revoke(ID);
    assert.equal(revisionOf(revoked), revisionOf(stays) + 1);
    const { events } = await watch.next();
    assert.deepEqual(
      events.map((event) => [event.type, event.kv?.key, event.kv?.mod_revision, event.prev_kv?.value]),
      ['a', 'b', 'c'].map((name) => [1, prefix + name, revisionOf(revoked), name]),
    );
    watch.cancel();
    assert.deepEqual(keysOf((await client.range({ key: prefix, range_end: endOf(prefix) })).kvs), [`${prefix}stays`]);
    const empty = await client.grant(0n, 60);
    assert.equal(revisionOf(await revoke(empty.ID)), revisionOf(revoked));
  });

  it('a key is attached only to the lease of its newest put', async () => {
    const { client } = subject();
    const key = subject().fresh();
    const [first, second] = [unused(), unused()];
    await client.grant(first, 60);
    await client.grant(second, 60);
    await client.put({ key, value: '1', lease: first });
    await client.put({ key, value: '2', lease: second });
    assert.deepEqual((await timeToLive(first, true)).keys, []);
    assert.deepEqual((await timeToLive(second, true)).keys, [key]);
    await revoke(first);
    assert.equal((await client.range({ key })).kvs[0]?.lease, second);
    await client.put({ key, value: '3' });
    assert.deepEqual((await timeToLive(second, true)).keys, []);
    await client.put({ key, value: '4', lease: second });
    await client.delete({ key });
    assert.deepEqual((await timeToLive(second, true)).keys, []);
    await revoke(second);
    // One transaction that attaches and detaches keys.
    const third = unused();
    await client.grant(third, 60);
    await client.txn({ success: [{ request_put: { key: `${key}a`, value: 'v', lease: third } }] });
    await client.txn({ success: [{ request_delete_range: { key: `${key}a` } }] });
    assert.deepEqual((await timeToLive(third, true)).keys, []);
    await revoke(third);
  });

  it('an expired lease deletes its keys in one revision; keep-alives and overwriting prevent the deletion', async () => {
    const { client } = subject();
    const prefix = subject().fresh();
    const [dying, kept] = [unused(), unused()];
    const began = performance.now();
    await client.grant(dying, 2);
    await client.grant(kept, 2);
    await client.put({ key: `${prefix}a`, value: 'v', lease: dying });
    await client.put({ key: `${prefix}b`, value: 'v', lease: dying });
    await client.put({ key: `${prefix}kept`, value: 'v', lease: kept });
    const alive = client.open('etcdserverpb.Lease/LeaseKeepAlive');
    const timer = setInterval(() => alive.send({ ID: kept }), 500);
    const watch = client.watch();
    watch.send({ create_request: { key: prefix, range_end: endOf(prefix) } });
    await watch.next();
    const { events } = await watch.next();
    const after = performance.now() - began;
    clearInterval(timer);
    assert.deepEqual(
      events.map((event) => [event.type, event.kv?.key]),
      [
        [1, `${prefix}a`],
        [1, `${prefix}b`],
      ],
    );
    assert.equal(events[0]?.kv?.mod_revision, events[1]?.kv?.mod_revision);
    assert.ok(after > 1900 && after < 6000, `${after} ms`);
    assert.equal((await timeToLive(dying)).TTL, -1);
    assert.equal((await client.range({ key: `${prefix}kept` })).count, 1);
    await refused(client.put({ key: prefix, value: 'v', lease: dying }), 5, NOT_FOUND);
    alive.cancel();
    watch.cancel();
    await revoke(kept);
  });
}
