/**
 * Sends the same random requests to an oracle, to this project's store and to Debian's etcd, and compares every
 * response field by field.
 */
import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { DEBIAN_ETCD, isInstalled, remove, startHere, temporaryDirectory } from '../store/harness.ts';
import { EtcdClient, StatusError } from './etcd/client.ts';
import { Oracle, Refusal } from './etcd/oracle.ts';
import { startPeerEtcd } from './etcd/peer.ts';
import { Choices, type Operation, operation } from './etcd/random.ts';

const OPERATIONS = 1200;
const SEEDS = [1, 2, 113];
/** Long enough that no lease expires during the test. */
const LEASE_SECONDS = 100_000;

const stops: Array<() => Promise<void>> = [];
after(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function ours(cacheBytes: number): Promise<EtcdClient> {
  const directory = await temporaryDirectory();
  const { endpoint, server } = await startHere(directory, undefined, { cacheBytes });
  const client = new EtcdClient(endpoint);
  stops.push(async () => {
    client.close();
    await server.stop();
    await remove(directory);
  });
  return client;
}

async function debian(): Promise<EtcdClient> {
  const directory = await temporaryDirectory();
  const peer = await startPeerEtcd(directory);
  const client = new EtcdClient(peer.endpoint);
  stops.push(async () => {
    client.close();
    await peer.stop();
    await remove(directory);
  });
  return client;
}

/** Reduces headers to the revision, the only part that is equal everywhere. */
function normalised(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(normalised);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return Object.fromEntries(
    fields.map(([name, field]) => [name, name === 'header' ? { revision: field.revision } : normalised(field)]),
  );
}

function withoutHeaders(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutHeaders);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).filter(([name, field]) => name !== 'header' && field !== undefined);
  return Object.fromEntries(fields.map(([name, field]) => [name, withoutHeaders(field)]));
}

async function send(client: EtcdClient, op: Operation): Promise<unknown> {
  switch (op.call) {
    case 'put':
      return client.put(op.request);
    case 'range':
      return client.range(op.request);
    case 'delete':
      return client.delete(op.request);
    case 'txn':
      return client.txn(op.request);
    case 'compact':
      return client.compact(op.revision);
    case 'grant':
      return client.grant(op.id, LEASE_SECONDS);
    case 'revoke':
      return client.call('etcdserverpb.Lease/LeaseRevoke', { ID: op.id });
    case 'timeToLive': {
      const answer = await client.call('etcdserverpb.Lease/LeaseTimeToLive', { ID: op.id, keys: true });
      return { ...answer, TTL: Math.sign(answer.TTL), keys: answer.keys.sort() };
    }
  }
}

function predict(oracle: Oracle, op: Operation): unknown {
  switch (op.call) {
    case 'put':
    case 'range':
    case 'delete':
    case 'txn':
      return oracle[op.call](op.request);
    case 'compact':
      oracle.compact(op.revision);
      return {};
    case 'grant':
      oracle.grant(op.id);
      return { ID: op.id, TTL: LEASE_SECONDS, error: '' };
    case 'revoke':
      oracle.revoke(op.id);
      return {};
    case 'timeToLive': {
      const keys = oracle.keysOf(op.id);
      const there = keys !== undefined;
      return { ID: op.id, TTL: there ? 1 : -1, grantedTTL: there ? LEASE_SECONDS : 0, keys: keys ?? [] };
    }
  }
}

async function settled(work: () => unknown): Promise<unknown> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof StatusError) return { refused: error.message, code: error.code };
    if (error instanceof Refusal) return { refused: error.message };
    throw error;
  }
}

async function history(client: EtcdClient, from: number, count: number): Promise<unknown> {
  const watch = client.watch();
  watch.send({ create_request: { key: '\0', range_end: '\0', start_revision: from, prev_kv: true } });
  await watch.next();
  const events: unknown[] = [];
  while (events.length < count) events.push(...(await watch.next()).events);
  watch.cancel();
  return normalised(events);
}

async function run(seed: number, stores: Readonly<Record<string, EtcdClient>>): Promise<void> {
  const choices = new Choices(seed);
  const oracle = new Oracle();
  let refused = 0;
  for (let i = 0; i < OPERATIONS; i += 1) {
    const op = operation(choices, oracle.revision);
    const reported = (): string =>
      `seed ${seed}, operation ${i}: ${JSON.stringify(op, (_, v) => (typeof v === 'bigint' ? `${v}n` : v))}`;
    const expected = withoutHeaders(await settled(() => predict(oracle, op)));
    const answers = await Promise.all(
      Object.values(stores).map(async (client) => normalised(await settled(() => send(client, op)))),
    );
    const [first, ...others] = answers;
    for (const other of others) assert.deepEqual(other, first, reported());
    const { code, ...bare } = withoutHeaders(first) as Record<string, unknown>;
    assert.deepEqual(bare, expected, reported());
    if (code !== undefined) refused += 1;
    else assert.equal((first as { header: { revision: number } }).header.revision, oracle.revision, reported());
  }
  assert.ok(refused > OPERATIONS / 50 && refused < OPERATIONS / 2, `${refused} refused`);
  assert.ok(oracle.revision > OPERATIONS / 5, `revision ${oracle.revision}`);
  // Versions of etcd before 3.4.36 lose a delete at the compaction revision itself, so the comparison starts after it.
  const events = oracle.events.filter((event) => event.kv.mod_revision > oracle.compacted);
  for (const [name, client] of Object.entries(stores)) {
    const heard = await history(client, oracle.compacted + 1, events.length);
    assert.deepEqual(heard, withoutHeaders(events), `seed ${seed}: watch of ${name}`);
  }
}

describe('random requests', () => {
  for (const seed of SEEDS) {
    it(`random requests get the same responses as from a reference implementation and Debian's etcd, seed ${seed}`, async () => {
      const stores: Record<string, EtcdClient> = { ours: await ours(64 << 20), 'ours, without memory': await ours(64) };
      if (await isInstalled(DEBIAN_ETCD)) stores['etcd'] = await debian();
      await run(seed, stores);
    });
  }
});
