import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { EtcdClient } from '../../conformance/etcd/client.ts';
import { type Peer, startPeerEtcd } from '../../conformance/etcd/peer.ts';
import { DEBIAN_ETCD, isInstalled, type Running, remove, startHere, temporaryDirectory } from './harness.ts';

let directory = '';
let running: Running;
let client: EtcdClient;
before(async () => {
  directory = await temporaryDirectory();
  running = await startHere(directory, undefined);
  client = new EtcdClient(running.endpoint);
});
after(async () => {
  client.close();
  await running.server.stop();
  await remove(directory);
});

const get = async (path: string, endpoint = running.endpoint) => {
  const answer = await fetch(endpoint + path);
  return { status: answer.status, type: answer.headers.get('content-type'), body: await answer.text() };
};
const value = (metrics: string, series: string): number => {
  const line = metrics.split('\n').find((one) => one.startsWith(`${series} `));
  assert.ok(line, `no ${series}`);
  return Number(line.slice(series.length + 1));
};
const typesOf = (metrics: string): Map<string, string> =>
  new Map([...metrics.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map((match) => [match[1] as string, match[2] as string]));

describe('plain requests on the client port', () => {
  it('answers checks by name, verbose, with some left out', async () => {
    assert.deepEqual(await get('/health'), {
      status: 200,
      type: 'application/json',
      body: '{"health":"true","reason":""}',
    });
    assert.equal((await get('/health?serializable=true')).status, 200);
    assert.deepEqual((await get('/livez')).body, 'ok\n');
    assert.equal((await get('/livez?verbose')).body, '[+]serializable_read ok\nok\n');
    const ready = '[+]data_corruption ok\n[+]serializable_read ok\n[+]linearizable_read ok\n[+]non_learner ok\nok\n';
    assert.equal((await get('/readyz?verbose')).body, ready);
    assert.equal((await get('/readyz/linearizable_read?verbose')).body, '[+]linearizable_read ok\nok\n');
    assert.equal((await get('/readyz/nonsense')).status, 404);
    const excluded = await get('/readyz?verbose&exclude=linearizable_read');
    assert.match(excluded.body, /^\[\+\]linearizable_read excluded: ok$/m);
    assert.equal((await get('/nothing')).status, 404);
    assert.equal((await fetch(`${running.endpoint}/health`, { method: 'DELETE' })).status, 405);
    const version = JSON.parse((await get('/version')).body);
    assert.match(version.etcdserver, /^3\.5\.\d+$/);
  });

  it('counts what is done', async () => {
    const { body: before } = await get('/metrics');
    const { ID } = await client.grant(0n, 60);
    const watch = client.watch();
    watch.send({ create_request: { key: 'm', range_end: 'n' } });
    await watch.next();
    await client.put({ key: 'm1', value: 'x'.repeat(1000), lease: ID });
    await client.txn({ success: [{ request_put: { key: 'm2' } }, { request_delete_range: { key: 'm1' } }] });
    await watch.next();
    await watch.next();
    await client.range({ key: 'm2' });
    await assert.rejects(client.put({ key: '' }));
    await client.call('etcdserverpb.Lease/LeaseRevoke', { ID });
    watch.cancel();
    const { body: now, type } = await get('/metrics');
    assert.match(String(type), /^text\/plain; version=0\.0\.4/);
    const grew = (series: string): number => value(now, series) - value(before, series);
    assert.equal(grew('etcd_mvcc_put_total'), 2);
    assert.equal(grew('etcd_mvcc_delete_total'), 1);
    assert.equal(grew('etcd_mvcc_range_total'), 1);
    assert.equal(grew('etcd_mvcc_txn_total'), 1);
    assert.equal(grew('etcd_debugging_mvcc_events_total'), 3);
    assert.equal(grew('etcd_debugging_lease_granted_total'), 1);
    assert.equal(grew('etcd_debugging_lease_revoked_total'), 1);
    assert.ok(grew('etcd_disk_wal_fsync_duration_seconds_count') >= 2);
    assert.ok(grew('etcd_network_client_grpc_received_bytes_total') > 1000);
    assert.ok(grew('etcd_debugging_mvcc_total_put_size_in_bytes') > 1000);
    const put = 'grpc_method="Put",grpc_service="etcdserverpb.KV",grpc_type="unary"';
    assert.equal(grew(`grpc_server_started_total{${put}}`), 2);
    assert.equal(grew(`grpc_server_handled_total{grpc_code="OK",${put}}`), 1);
    assert.equal(value(now, `grpc_server_handled_total{grpc_code="InvalidArgument",${put}}`), 1);
    assert.equal(value(now, 'etcd_server_has_leader'), 1);
    assert.ok(value(now, 'process_resident_memory_bytes') > 1e7);
    assert.ok(value(now, 'process_open_fds') > 3);
    assert.ok(Math.abs(value(now, 'process_start_time_seconds') - Date.now() / 1000) < 3600);
    assert.ok(value(now, 'etcd_mvcc_db_total_size_in_bytes') >= value(now, 'etcd_mvcc_db_total_size_in_use_in_bytes'));
  });

  it("shows every metric under the name and type of Debian's etcd, and a histogram in the same buckets", async (t) => {
    if (!(await isInstalled(DEBIAN_ETCD))) {
      t.skip(`${DEBIAN_ETCD} is not installed`);
      return;
    }
    const data = await temporaryDirectory();
    let peer: Peer | undefined;
    try {
      peer = await startPeerEtcd(data);
      const theirs = (await get('/metrics', peer.endpoint)).body;
      const ours = (await get('/metrics')).body;
      const types = typesOf(theirs);
      for (const [name, type] of typesOf(ours)) {
        if (!name.startsWith('hyperedge_')) assert.equal(types.get(name), type, name);
      }
      const buckets = (text: string): string[] =>
        [...text.matchAll(/^etcd_disk_wal_fsync_duration_seconds_bucket\{le="(.*)"\}/gm)].map(
          (match) => match[1] as string,
        );
      assert.deepEqual(buckets(ours), buckets(theirs));
    } finally {
      await peer?.stop();
      await remove(data);
    }
  });
});
