/** Members whose host has recorded a cluster and whose data is missing, as on a disk that is not mounted. */
import assert from 'node:assert/strict';
import { mkdir, rm } from 'node:fs/promises';
import { afterEach, beforeEach, it } from 'node:test';
import { EtcdClient } from '../../conformance/etcd/client.ts';
import { type ClusterMember, cluster } from '../cluster-harness.ts';
import { remove, temporaryDirectory } from '../harness.ts';

let directory = '';
let members: ClusterMember[] = [];
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(async () => {
  await Promise.all(members.map((each) => each.stop()));
  await remove(directory);
});

const former = ({ directory: dataDirectory }: ClusterMember) => ({ formerCluster: { id: 'ab12', dataDirectory } });

async function lose({ directory: data }: ClusterMember): Promise<void> {
  await rm(data, { recursive: true });
  await mkdir(data);
}

it('a single member does not bootstrap a second cluster when its data is missing', async () => {
  members = await cluster(directory, 1);
  const [one] = members as [ClusterMember];
  await one.start();
  await one.stop();
  await lose(one);
  const missing = one.start(false, former(one));
  await assert.rejects(missing, {
    code: 'store-missing',
    message: /cluster ab12 is missing; .*hyperedge snapshot restore FILE/,
  });
  // The data is available again.
  await lose(one);
  await one.start();
});

it('a single member of a former cluster starts with its existing data', async () => {
  members = await cluster(directory, 1);
  const [one] = members as [ClusterMember];
  await one.start();
  await one.stop();
  await one.start(false, former(one));
});

it('three members do not bootstrap a second cluster when the data of all members is missing', {
  timeout: 60_000,
}, async () => {
  members = await cluster(directory, 3);
  for (const each of members) await assert.rejects(each.start(false, former(each)), { code: 'store-missing' });
});

it('restores the missing data of one of three members from the other members', { timeout: 60_000 }, async () => {
  members = await cluster(directory, 3);
  await Promise.all(members.map((each) => each.start()));
  const [one, two] = members as [ClusterMember, ClusterMember];
  const client = new EtcdClient(two.endpoint);
  await client.put({ key: 'a', value: '1' });
  client.close();
  await one.stop();
  await lose(one);
  await one.start(false, former(one));
  const again = new EtcdClient(one.endpoint);
  try {
    assert.equal(Number((await again.range({ key: 'a' })).count), 1);
  } finally {
    again.close();
  }
});
