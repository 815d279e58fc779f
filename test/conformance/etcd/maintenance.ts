import assert from 'node:assert/strict';
import { it } from 'node:test';
import { FUTURE, refused, revisionOf, type Subject } from './cluster.ts';

const MIB = 1 << 20;

export function maintenanceConformance(subject: () => Subject): void {
  it('every response header has cluster, member, revision and term', async () => {
    const { client } = subject();
    const put = await client.put({ key: subject().fresh(), value: 'v' });
    const list = await client.call('etcdserverpb.Cluster/MemberList', {});
    const ids = list.members.map((member) => member.ID);
    assert.equal(ids.length, subject().memberCount);
    const others = {
      put,
      range: await client.range({ key: 'a' }),
      delete: await client.delete({ key: 'no such key' }),
      txn: await client.txn({}),
      grant: await client.grant(0n, 60),
      leases: await client.call('etcdserverpb.Lease/LeaseLeases', {}),
      status: await client.call('etcdserverpb.Maintenance/Status', {}),
      hash: await client.call('etcdserverpb.Maintenance/Hash', {}),
    };
    const cluster = put.header?.cluster_id;
    assert.ok(cluster !== undefined && cluster !== 0n);
    for (const [call, { header }] of Object.entries(others)) {
      assert.equal(header?.cluster_id, cluster, call);
      assert.ok(ids.includes(header?.member_id ?? 0n), call);
      assert.ok((header?.raft_term ?? 0) > 0, call);
      assert.ok((header?.revision ?? 0) >= revisionOf(put), call);
    }
  });

  it('lists members, and reports the status of the called member', async () => {
    const { client } = subject();
    const { members } = await client.call('etcdserverpb.Cluster/MemberList', {});
    assert.ok(members.every((member) => member.name !== '' && member.clientURLs.length > 0 && !member.isLearner));
    const status = await client.call('etcdserverpb.Maintenance/Status', {});
    assert.match(status.version, /^3\.\d+\.\d+$/);
    assert.ok(members.some((member) => member.ID === status.leader));
    assert.ok(status.dbSize > 0 && status.dbSizeInUse > 0 && status.dbSizeInUse <= status.dbSize);
    assert.ok(status.raftIndex > 0 && status.raftTerm > 0 && status.raftAppliedIndex > 0);
    assert.deepEqual(status.errors, []);
  });

  it('returns the same hash at the same revision, and another hash after a write', async () => {
    const { client } = subject();
    const at = revisionOf(await client.put({ key: subject().fresh(), value: '1' }));
    const hash = (revision: number) => client.call('etcdserverpb.Maintenance/HashKV', { revision });
    const first = await hash(at);
    assert.ok(first.hash > 0);
    await client.put({ key: subject().fresh(), value: '2' });
    assert.equal((await hash(at)).hash, first.hash);
    assert.notEqual((await hash(0)).hash, first.hash);
    await refused(hash(at + 1000), 11, FUTURE);
  });

  it("accepts requests of 1.5 MiB and rejects larger requests with etcd's error", async () => {
    const key = subject().fresh();
    const { client } = subject();
    await client.put({ key, value: 'x'.repeat(1.5 * MIB - 1000) });
    const large = 'x'.repeat(1.5 * MIB + 1);
    await refused(client.put({ key, value: large }), 3, 'etcdserver: request is too large');
    const put = { request_put: { key, value: large } };
    await refused(client.txn({ success: [put] }), 3, 'etcdserver: request is too large');
    // The limit does not apply to a read-only transaction.
    const compare = [{ key, target: 3, result: 0, value: large }];
    assert.equal((await client.txn({ compare })).succeeded, false);
    await assert.rejects(client.put({ key, value: 'x'.repeat(2 * MIB) }), (error: Error & { code?: number }) => {
      assert.equal(error.code, 8);
      assert.match(error.message, /^grpc: received message larger than max \(\d+ vs\. 2097152\)$/);
      return true;
    });
    assert.equal((await client.range({ key })).kvs[0]?.value.length, 1.5 * MIB - 1000);
    await client.delete({ key });
  });

  it('a new store has no alarm, and disarming an alarm that is not set succeeds', async () => {
    const { client } = subject();
    assert.deepEqual((await client.call('etcdserverpb.Maintenance/Alarm', { action: 0 })).alarms, []);
    assert.deepEqual((await client.call('etcdserverpb.Maintenance/Alarm', { action: 2, alarm: 1 })).alarms, []);
  });

  it('defragments the store', async () => {
    await subject().client.call('etcdserverpb.Maintenance/Defragment', {});
  });

  it('rejects calls of unknown gRPC methods', async () => {
    const { client } = subject();
    await refused(
      client.call('etcdserverpb.KV/NoSuchMethod', {}),
      12,
      'unknown method NoSuchMethod for service etcdserverpb.KV',
    );
    await refused(
      client.call('etcdserverpb.NoSuchService/Range', {}),
      12,
      'unknown service etcdserverpb.NoSuchService',
    );
  });
}
