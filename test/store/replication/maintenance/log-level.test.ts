/** Members of several builds, as during a rolling update: no member writes entries that another does not support. */
import assert from 'node:assert/strict';
import { mkdir, rm } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { LogLevel, NEWEST_LEVEL } from '../../../../src/store/replication/maintenance/log-level.ts';
import { encodeCommand } from '../../../../src/store/replication/peers/entry-codec.ts';
import { decodeMembers, encodeMembers } from '../../../../src/store/replication/peers/peer-protocol.ts';
import { EtcdClient } from '../../../conformance/etcd/client.ts';
import { type ClusterMember, cluster, levelReached } from '../../cluster-harness.ts';
import { remove, temporaryDirectory } from '../../harness.ts';

describe('cluster with one member of an older release', () => {
  let directory = '';
  let members: ClusterMember[] = [];
  const older = { logLevel: LogLevel.beginning };
  const at = async <T>({ endpoint }: ClusterMember, work: (client: EtcdClient) => Promise<T>): Promise<T> => {
    const client = new EtcdClient(endpoint);
    try {
      return await work(client);
    } finally {
      client.close();
    }
  };
  const token = (): Promise<string> =>
    at(members[0] as ClusterMember, async (client) => {
      const { token: given } = await client.call('etcdserverpb.Auth/Authenticate', { name: 'root', password: 'pw' });
      return given;
    });
  const heard = (shown: string): Promise<string[]> =>
    Promise.all(
      members.map((each) =>
        at(each, async (client) => {
          client.token = shown;
          return client.range({ key: 'a' }).then(
            () => 'known',
            (error: Error) => error.message,
          );
        }),
      ),
    );

  before(async () => {
    directory = await temporaryDirectory();
    members = await cluster(directory, 3);
    await Promise.all(members.map((each, i) => each.start(false, i === 2 ? older : {})));
    await at(members[0] as ClusterMember, async (client) => {
      await client.call('etcdserverpb.Auth/UserAdd', { name: 'root', second: 'pw' });
      await client.call('etcdserverpb.Auth/UserGrantRole', { name: 'root', second: 'root' });
      await client.call('etcdserverpb.Auth/AuthEnable', {});
    });
  });
  after(async () => {
    await Promise.all(members.map((each) => each.stop()));
    await remove(directory);
  });

  it('a token is valid only on its issuer while one member of an older release cannot read replicated tokens', async () => {
    const [here, ...elsewhere] = await heard(await token());
    assert.equal(here, 'known');
    for (const answer of elsewhere) assert.match(answer, /invalid auth token/);
  });

  it('tokens are valid on all members after the last member has been updated', async () => {
    const last = members[2] as ClusterMember;
    await last.stop();
    await last.start();
    await levelReached(members);
    assert.deepEqual(await heard(await token()), ['known', 'known', 'known']);
  });

  it('a member does not start with an older release after the level was raised, and logs the reason', async () => {
    const last = members[2] as ClusterMember;
    await last.stop();
    await assert.rejects(last.start(false, older), { code: 'too-old' });
    await last.start();
    assert.deepEqual(await heard(await token()), ['known', 'known', 'known']);
  });

  it('a member with an older release and without data does not join after the level was raised', async () => {
    const last = members[2] as ClusterMember;
    await last.stop();
    await rm(last.directory, { recursive: true });
    await mkdir(last.directory);
    const refused = Promise.withResolvers<Error>();
    last.start(false, { ...older, onFatal: refused.resolve }).catch(refused.resolve);
    assert.match((await refused.promise).message, /level 2, but this version supports levels up to 1/);
    await last.stop();
    await last.start();
    assert.deepEqual(await heard(await token()), ['known', 'known', 'known']);
    assert.deepEqual(
      members.map(({ fatal }) => fatal),
      [[], [], []],
    );
  });
});

it('refuses to open a store of a newer level', async () => {
  const directory = await temporaryDirectory();
  const [one] = (await cluster(directory, 1)) as [ClusterMember];
  await one.start(false, { logLevel: NEWEST_LEVEL + 1 });
  await one.stop();
  await assert.rejects(one.start(), /level 3, but this version supports levels up to 2/);
  await remove(directory);
});

it('decodes member tables of earlier releases, which contain no level', () => {
  const table = { clusterId: 1n, members: [], voters: [], written: true };
  assert.deepEqual(decodeMembers(encodeMembers(table)), table);
  assert.equal(decodeMembers(encodeMembers({ ...table, level: 7 })).level, 7);
  // The first bytes are kind and type, which earlier builds can decode.
  assert.deepEqual([...encodeCommand({ type: 'version', version: '2' })].slice(0, 3), [4, 8, 9]);
});
