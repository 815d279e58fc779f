/** Metrics of failures and slow operations match etcd's. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Log, silentLog } from '../../src/base/log.ts';
import { EtcdClient } from '../conformance/etcd/client.ts';
import { type ClusterMember, cluster } from './cluster-harness.ts';
import { remove, startHere, temporaryDirectory } from './harness.ts';

let directory = '';
before(async () => {
  directory = await temporaryDirectory();
});
after(() => remove(directory));

async function counter(endpoint: string, name: string): Promise<number> {
  const text = await (await fetch(`${endpoint}/metrics`)).text();
  const [, value] = new RegExp(`^etcd_server_${name} (\\S+)$`, 'm').exec(text) ?? [];
  assert.ok(value !== undefined, name);
  return Number(value);
}

const CLUSTER_NAMES = [
  'proposals_failed_total',
  'slow_read_indexes_total',
  'read_indexes_failed_total',
  'heartbeat_send_failures_total',
] as const;

test('counts and logs operations, including range requests, that take too long to apply', async () => {
  const output: string[] = [];
  const log: Log = { ...silentLog, named: () => log, warn: (message) => output.push(message) };
  const data = await temporaryDirectory();
  const limits = [
    [{ applyMs: -1, requestMs: -1 }, true],
    [{ applyMs: 60_000, requestMs: 60_000 }, false],
  ] as const;
  for (const [slow, counted] of limits) {
    output.length = 0;
    const { server, endpoint } = await startHere(data, undefined, { slow, log });
    const client = new EtcdClient(endpoint);
    const before = await counter(endpoint, 'slow_apply_total');
    await client.put({ key: 'a', value: 'b' });
    const between = await counter(endpoint, 'slow_apply_total');
    await client.range({ key: 'a' });
    const end = await counter(endpoint, 'slow_apply_total');
    assert.deepEqual([between > before, end > between], [counted, counted]);
    assert.equal(output.includes('apply request took too long'), counted);
    assert.equal(output.includes('request took long'), counted);
    client.close();
    await server.stop();
  }
  await remove(data);
});

test('counts late heartbeats, lost proposals and failed reads when a leader stalls and loses its quorum', {
  timeout: 60_000,
}, async () => {
  const members = await cluster(directory, 3);
  await Promise.all(members.map((each) => each.start()));
  const counters = async ({ endpoint }: ClusterMember): Promise<Record<(typeof CLUSTER_NAMES)[number], number>> => {
    const found = await Promise.all(CLUSTER_NAMES.map(async (name) => [name, await counter(endpoint, name)]));
    return Object.fromEntries(found);
  };
  const before = new Map(await Promise.all(members.map(async (each) => [each, await counters(each)] as const)));
  const lateAtSomebody = async (): Promise<ClusterMember | undefined> => {
    for (const each of members) {
      const { heartbeat_send_failures_total: late } = await counters(each);
      if (late > (before.get(each)?.heartbeat_send_failures_total ?? 0)) return each;
    }
    return undefined;
  };
  let leader: ClusterMember | undefined;
  while (leader === undefined) {
    // The event loop is blocked for less than an election timeout.
    for (const until = performance.now() + 250; performance.now() < until; );
    await new Promise((resolve) => setTimeout(resolve, 300));
    leader = await lateAtSomebody();
  }
  const client = new EtcdClient(leader.endpoint);
  await client.put({ key: 'a', value: 'b' });
  for (const each of members) if (each !== leader) await each.stop();
  const outcomes = await Promise.allSettled([client.put({ key: 'a', value: 'c' }), client.range({ key: 'a' })]);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  const end = await counters(leader);
  for (const name of CLUSTER_NAMES) assert.ok(end[name] > (before.get(leader)?.[name] ?? 0), `${name}: ${end[name]}`);
  assert.equal(end.slow_read_indexes_total, 1);
  client.close();
  await leader.stop();
});
