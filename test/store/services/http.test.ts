import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { EtcdClient } from '../../conformance/etcd/client.ts';
import { type Running, remove, startHere, temporaryDirectory } from '../harness.ts';

let directory = '';
let running: Running;
let client: EtcdClient;
before(async () => {
  directory = await temporaryDirectory();
  running = await startHere(directory, undefined, { extensiveMetrics: true });
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

/**
 * Metrics of etcd 3.5 with `--metrics=extensive` that do not apply here: bbolt, the v2 store, the proxy, its log and
 * snapshot files, and Go's libraries.
 */
const NOT_HERE: readonly RegExp[] = [
  /^etcd_debugging_disk_backend_commit_/,
  /^etcd_debugging_(snap|store)_|^etcd_snap_|^etcd_server_snapshot_apply_in_progress_total$/,
  /^etcd_debugging_mvcc_pending_events_total$/,
  /^etcd_debugging_lease_ttl_total$/,
  /^etcd_disk_wal_write_|^etcd_mvcc_db_open_read_transactions$/,
  /^etcd_grpc_proxy_/,
  /^promhttp_|^process_network_/,
];
/** Names of etcd 3.4 that 3.5 no longer has. */
const OF_3_4: readonly string[] = [
  'etcd_debugging_mvcc_db_total_size_in_bytes',
  'etcd_debugging_mvcc_put_total',
  'etcd_debugging_mvcc_delete_total',
  'etcd_debugging_mvcc_txn_total',
];

describe('HTTP requests on the client port', () => {
  it('serves health checks by name, verbose and with exclusions on the client port', async () => {
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

  it('operations increment the counters of the metrics on the client port', async () => {
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
    const handled = (method: string) =>
      `grpc_server_handling_seconds_count{grpc_method="${method}",grpc_service="etcdserverpb.KV",grpc_type="unary"}`;
    assert.equal(grew(handled('Put')), 2);
    assert.equal(value(now, handled('Compact')), 0);
    const applied = (op: string, success = true): number =>
      value(now, `etcd_server_apply_duration_seconds_count{op="${op}",success="${success}",version="v3"}`);
    // Health checks also read from the store.
    assert.ok(applied('Range') >= 1);
    for (const op of ['Put', 'Txn']) assert.equal(applied(op), 1, op);
    assert.equal(value(now, 'etcd_server_has_leader'), 1);
    assert.ok(value(now, 'process_resident_memory_bytes') > 1e7);
    assert.ok(value(now, 'process_open_fds') > 3);
    assert.equal(grew('process_start_time_seconds'), 0, 'the start does not move');
    assert.ok(Math.abs(value(now, 'process_start_time_seconds') - Date.now() / 1000) < 3600);
    assert.ok(value(now, 'etcd_mvcc_db_total_size_in_bytes') >= value(now, 'etcd_mvcc_db_total_size_in_use_in_bytes'));
  });

  it('metrics have the names, types and buckets of etcd 3.5, except listed ones', async () => {
    const golden = await readFile(join(import.meta.dirname, 'etcd-3.5-metrics.golden'), 'utf8');
    const { body } = await get('/metrics');
    const types = typesOf(body);
    const missing: string[] = [];
    for (const line of golden.trim().split('\n')) {
      const [name = '', type, ...buckets] = line.split(' ');
      const found = types.get(name);
      types.delete(name);
      if (found === undefined) {
        missing.push(name);
        continue;
      }
      assert.equal(found, type, name);
      const ours = [...body.matchAll(new RegExp(`^${name}_bucket\\{(?:.*,)?le="(.*?)"\\}`, 'gm'))].map(([, le]) => le);
      assert.deepEqual([...new Set(ours)], buckets, name);
    }
    assert.deepEqual(
      missing.filter((name) => !NOT_HERE.some((known) => known.test(name))),
      [],
    );
    assert.deepEqual(
      [...types.keys()].filter((name) => !name.startsWith('hyperedge_') && !OF_3_4.includes(name)),
      [],
    );
  });

  it('metrics contain the duration of compactions and the number of removed revisions', async () => {
    const { body: before } = await get('/metrics');
    for (const text of ['1', '2', '3']) await client.put({ key: 'compacted', value: text });
    const { header } = await client.range({ key: 'compacted' });
    assert.ok(header);
    await client.call('etcdserverpb.KV/Compact', { revision: header.revision, physical: true });
    await assert.rejects(client.call('etcdserverpb.KV/Compact', { revision: header.revision }));
    await client.call('etcdserverpb.KV/DeleteRange', { key: 'compacted' });
    const { body: now } = await get('/metrics');
    const grew = (series: string): number => value(now, series) - value(before, series);
    assert.ok(grew('etcd_debugging_mvcc_db_compaction_keys_total') >= 2);
    assert.equal(grew('etcd_debugging_mvcc_db_compaction_total_duration_milliseconds_count'), 1);
    for (const name of ['index', 'db'])
      assert.ok(grew(`etcd_debugging_mvcc_${name}_compaction_pause_duration_milliseconds_count`) >= 1, name);
    const last = value(now, 'etcd_debugging_mvcc_db_compaction_last');
    assert.ok(Math.abs(last - Date.now() / 1000) < 600, `${last}`);
    assert.equal(
      value(now, 'etcd_server_apply_duration_seconds_count{op="DeleteRange",success="true",version="v3"}'),
      1,
    );
  });

  it('metrics count defragmentations, hashes, snapshots and client types', async () => {
    const { body: before } = await get('/metrics');
    await client.call('etcdserverpb.Maintenance/Defragment', {});
    const { hash } = await client.call('etcdserverpb.Maintenance/Hash', {});
    assert.notEqual(hash, 0);
    await client.call('etcdserverpb.Maintenance/HashKV', { revision: 0 });
    const { body: now } = await get('/metrics');
    for (const name of ['disk_backend_defrag', 'mvcc_hash', 'mvcc_hash_rev']) {
      const series = `etcd_${name}_duration_seconds_count`;
      assert.equal(value(now, series) - value(before, series), 1, series);
    }
    const scraped = (metrics: string) =>
      value(metrics, 'etcd_server_client_requests_total{client_api_version="unknown",type="unary"}');
    assert.equal(scraped(now) - scraped(before), 3);
    assert.equal(value(now, 'etcd_disk_defrag_inflight'), 0);
    assert.equal(value(now, 'etcd_debugging_auth_revision'), 1);
  });
});
