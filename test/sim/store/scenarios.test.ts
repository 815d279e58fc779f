/** What the simulation has found once, told step by step. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PermissionType, writePermission } from '../../../src/api/etcd/auth.ts';
import { decodeHeader, writePutRequest, writeRangeRequest } from '../../../src/api/etcd/kv.ts';
import { decodeWatchResponse, type WatchResponse, writeWatchCreate } from '../../../src/api/etcd/watch.ts';
import { Reader, Writer } from '../../../src/api/etcd/wire.ts';
import { EntryKind } from '../../../src/components/etcd/port.ts';
import { RpcCode } from '../../../src/io/grpc/port.ts';
import { clusterOf } from './damage.ts';
import type { Member } from './member.ts';
import type { Answer } from './rpc.ts';
import { BOUNDS, ELECTED_MS, Scene } from './scene.ts';

/** One of two is removed, and the other loses its power when it has committed that and has not written down that it has. */
async function removedAndForgotten(scene: Scene): Promise<void> {
  const [stays, goes] = scene.members as [Member, Member];
  await scene.pass(ELECTED_MS);
  const { lastIndex } = stays.disk.image;
  const id = BigInt(`0x${goes.id}`);
  // Whoever is to go hands leadership over first.
  const remove = (): void =>
    scene.send(
      stays,
      'Cluster/MemberRemove',
      (out) => out.big(1, id),
      ({ kind }) => {
        if (kind === 'failed') remove();
      },
    );
  remove();
  const { conf } = EntryKind;
  await scene.until(() => stays.disk.image.others.some(({ index, kind }) => index > lastIndex && kind === conf));
  stays.disk.stuckUntil = Number.POSITIVE_INFINITY;
  await scene.until(() => clusterOf(goes).wasRemoved(goes.id));
  stays.crash(true);
  assert.ok(clusterOf(stays).conf.voters.includes(goes.id), 'it has not written it down');
}

describe('a member of two that is removed', () => {
  it('stays until the other one has that on disk, so that this one can lead again', async () => {
    await using scene = new Scene(2);
    const [stays, goes] = scene.members as [Member, Member];
    await removedAndForgotten(scene);
    await scene.pass(20_000);
    assert.ok(goes.alive, 'it has ended');
    stays.start();
    await scene.pass(ELECTED_MS);
    assert.equal((await scene.put(stays, 'after')).kind, 'ok');
    await scene.until(() => goes.gone);
    assert.equal((await scene.put(stays, 'alone')).kind, 'ok');
  });

  it('helps the other one when it is started once more', async () => {
    await using scene = new Scene(2);
    const [stays, goes] = scene.members as [Member, Member];
    await removedAndForgotten(scene);
    goes.crash(false);
    stays.start();
    await scene.pass(ELECTED_MS);
    assert.equal((await scene.put(stays, 'without')).kind, 'unknown');
    goes.start();
    await scene.until(() => goes.gone);
    assert.equal((await scene.put(stays, 'alone')).kind, 'ok');
  });
});

describe('a member that is alone', () => {
  it('does not take others in behind writes that it has shown and cannot log yet', async () => {
    await using scene = new Scene(1);
    const [alone] = scene.members as [Member];
    await scene.pass(100);
    // So that revisions are set aside.
    assert.equal((await scene.put(alone, 'first', true)).kind, 'ok');
    await scene.pass(1_000);
    alone.disk.stuckUntil = Number.POSITIVE_INFINITY;
    for (let i = 0; i < 20; i += 1) {
      assert.equal((await scene.put(alone, `shown ${i} ${'x'.repeat(50)}`, true)).kind, 'ok');
      await scene.pass(100);
    }
    const add = (): Promise<Answer> => scene.ask(alone, 'Cluster/MemberAdd', (out) => out.string(1, 'http://n2:2380'));
    const refused = await add();
    assert.ok(refused.kind === 'failed' && refused.code === RpcCode.resourceExhausted, JSON.stringify(refused));
    assert.deepEqual(clusterOf(alone).conf.voters, [alone.id]);
  });

  it('that led others meanwhile uses up what it had set aside once, not for ever', async () => {
    await using scene = new Scene(1);
    const [alone] = scene.members as [Member];
    await scene.pass(100);
    assert.equal((await scene.put(alone, 'first', true)).kind, 'ok');
    await scene.pass(1_000);
    const other = scene.newcomer();
    const added = await scene.ask(alone, 'Cluster/MemberAdd', (out) => out.string(1, other.url));
    assert.equal(added.kind, 'ok');
    other.start();
    await scene.pass(ELECTED_MS);
    // Its removal reaches the other one and nobody hears that it has: leadership is lost, and won again together with the removal.
    scene.network.cut(other.name, alone.name);
    const id = BigInt(`0x${other.id}`);
    await scene.ask(alone, 'Cluster/MemberRemove', (out) => out.big(1, id));
    await scene.pass(ELECTED_MS);
    assert.ok(alone.disk.image.others.some(({ kind }) => kind === EntryKind.conf));
    assert.deepEqual(clusterOf(alone).conf.voters.length, 2);
    scene.network.heal();
    await scene.until(() => other.gone);
    const answer = await scene.put(alone, 'last');
    assert.ok(answer.kind === 'ok', JSON.stringify(answer));
    assert.ok(alone.disk.image.lastRevision < 5_000, `${alone.disk.image.lastRevision}`);
  });
});

describe('a member that is alone and has lost what it had shown before it was on disk', () => {
  it('gives none of those revisions out again, though it is stopped before it has come to lead', async () => {
    await using scene = new Scene(1);
    const [alone] = scene.members as [Member];
    const revisionOf = (answer: Answer): number => {
      assert.ok(answer.kind === 'ok', JSON.stringify(answer));
      const reader = new Reader(answer.body);
      assert.equal(reader.field(), 1);
      return decodeHeader(reader.bytes());
    };
    await scene.pass(100);
    for (let delayMs = 5; delayMs < 400; delayMs += 10) {
      assert.equal((await scene.put(alone, `before ${delayMs}`, true)).kind, 'ok');
      await scene.pass(1_000);
      alone.disk.stuckUntil = Number.POSITIVE_INFINITY;
      let shown = 0;
      for (let i = 0; i < 5; i += 1) shown = revisionOf(await scene.put(alone, `shown ${i}`, true));
      alone.crash(true);
      alone.disk.slowness = 50;
      alone.start();
      await scene.pass(delayMs);
      alone.stop();
      // It may take its time, or have to be killed.
      await scene.pass(2_000);
      alone.crash(false);
      alone.disk.slowness = 1;
      alone.start();
      await scene.pass(1_000);
      const next = revisionOf(await scene.put(alone, 'behind'));
      assert.ok(next > shown, `stopped after ${delayMs} ms: ${next} comes behind ${shown}`);
    }
  });
});

const limited = { user: 'limited' };
const key = 'k';

/** Three members of which the first leads, and a user that may do with `key` what it likes. */
async function guarded(): Promise<Scene> {
  const scene = new Scene(3);
  const [leader] = scene.members as [Member];
  await scene.pass(ELECTED_MS);
  for (const member of scene.members)
    await scene.ask(member, 'Maintenance/MoveLeader', (out) => out.big(1, BigInt(`0x${leader.id}`)));
  await scene.pass(ELECTED_MS);
  const both = (first: string, second: string) => (out: Writer) => out.string(1, first).string(2, second);
  const user = (name: string) => (out: Writer) => out.string(1, name).message(3, Buffer.of(8, 1));
  const permission = { type: PermissionType.readwrite, key, end: '' };
  for (const [path, write] of [
    ['UserAdd', user('root')],
    ['UserGrantRole', both('root', 'root')],
    ['RoleAdd', (out: Writer) => out.string(1, 'some')],
    ['UserAdd', user(limited.user)],
    ['UserGrantRole', both(limited.user, 'some')],
    ['RoleGrantPermission', (out: Writer) => writePermission(out.string(1, 'some'), 2, permission)],
    ['AuthEnable', (out: Writer) => out],
  ] as const)
    assert.equal((await scene.ask(leader, `Auth/${path}`, write)).kind, 'ok', path);
  await scene.pass(200);
  return scene;
}

const asked = {
  'KV/Put': (out: Writer) => writePutRequest(out, { key, value: Buffer.from('v') }),
  'KV/Range': (out: Writer) => writeRangeRequest(out, { key }),
};

describe('a follower that has not heard yet what auth has become', () => {
  for (const [path, write] of Object.entries(asked))
    it(`refuses what has been taken away elsewhere: ${path}`, async () => {
      await using scene = await guarded();
      const [leader, , follower] = scene.members as [Member, Member, Member];
      assert.equal((await scene.ask(follower, path, write, limited)).kind, 'ok');
      for (const { name } of scene.members) scene.network.cut(name, follower.name);
      const revoked = await scene.ask(leader, 'Auth/RoleRevokePermission', (out) =>
        out.string(1, 'some').latin1(2, key),
      );
      assert.equal(revoked.kind, 'ok');
      scene.network.heal();
      const answer = await scene.ask(follower, path, write, limited);
      assert.ok(answer.kind === 'failed' && answer.code === RpcCode.permissionDenied, JSON.stringify(answer));
    });
});

describe('a leader whose disk stands still while the others have been told what auth has become', () => {
  for (const through of ['itself', 'a follower that has not been told either'] as const)
    it(`does not decide by what it was, asked through ${through}`, async () => {
      await using scene = await guarded();
      const [leader, told, late] = scene.members as [Member, Member, Member];
      const asks = through === 'itself' ? leader : late;
      assert.equal((await scene.ask(asks, 'KV/Put', asked['KV/Put'], limited)).kind, 'ok');
      leader.disk.stuckUntil = scene.nowMs + 700;
      const { lastIndex } = late.disk.image;
      const revoke = (out: Writer): Writer => out.string(1, 'some').latin1(2, key);
      scene.send(leader, 'Auth/RoleRevokePermission', revoke, () => {});
      // Both others have it, and one has not heard that it is settled.
      await scene.until(() => late.disk.image.lastIndex > lastIndex);
      scene.network.cut(leader.name, late.name);
      await scene.pass(50);
      const there = await scene.ask(told, 'KV/Put', asked['KV/Put'], limited);
      assert.ok(there.kind === 'failed' && there.code === RpcCode.permissionDenied, JSON.stringify(there));
      scene.network.heal();
      const forbidden = (out: Writer): Writer => writePutRequest(out, { key, value: Buffer.from('forbidden') });
      const answer = await scene.ask(asks, 'KV/Put', forbidden, limited);
      assert.ok(answer.kind === 'failed' && answer.code === RpcCode.permissionDenied, JSON.stringify(answer));
      await scene.pass(ELECTED_MS);
      const left = await scene.ask(leader, 'KV/Range', asked['KV/Range']);
      assert.ok(left.kind === 'ok' && !Buffer.from(left.body).includes('forbidden'));
    });
});

describe('a watch of a key that nothing befalls', () => {
  it('goes on when its member takes in a snapshot behind a compaction: nothing of what is gone was about it', async () => {
    await using scene = new Scene(3, { bounds: { ...BOUNDS, keepEntries: 10 } });
    const [writer, , far] = scene.members as [Member, Member, Member];
    await scene.pass(ELECTED_MS);
    for (const member of scene.members)
      await scene.ask(member, 'Maintenance/MoveLeader', (out) => out.big(1, BigInt(`0x${writer.id}`)));
    await scene.pass(ELECTED_MS);
    const heard: WatchResponse[] = [];
    const watch = far.service?.stream('/etcdserverpb.Watch/Watch')?.({
      metadata: () => undefined,
      peerCommonName: () => 'root',
      send: (...parts) => {
        heard.push(decodeWatchResponse(Buffer.concat(parts)));
        return true;
      },
      end: (_code, text) => assert.fail(text),
    });
    watch?.message(writeWatchCreate(new Writer(64), { key: 'quiet' }).finish());
    for (let i = 0; i < 20; i += 1) assert.equal((await scene.put(writer, `before ${i}`)).kind, 'ok');
    await scene.pass(200);
    for (const { name } of scene.members) scene.network.cut(name, far.name);
    for (let i = 0; i < 50; i += 1) assert.equal((await scene.put(writer, `meanwhile ${i}`)).kind, 'ok');
    // What the watch has been told of, and a little more than its last event.
    assert.equal((await scene.ask(writer, 'KV/Compact', (out) => out.int(1, 15))).kind, 'ok');
    await scene.pass(2_000);
    scene.network.heal();
    await scene.until(() => scene.count('installed snapshot') > 0, 20_000);
    await scene.pass(500);
    const write = (out: Writer): Writer => writePutRequest(out, { key: 'quiet', value: Buffer.from('no more') });
    assert.equal((await scene.ask(writer, 'KV/Put', write)).kind, 'ok');
    await scene.pass(500);
    assert.deepEqual(
      heard.filter(({ created }) => !created).map(({ canceled, events }) => [canceled, events.length]),
      [[false, 1]],
    );
  });
});

describe('a survivor of a lost quorum that had begun to add a member', () => {
  it('goes on alone with what it has, and without the addition that nobody had settled', async () => {
    await using scene = new Scene(3);
    const [survivor, , asked] = scene.members as [Member, Member, Member];
    await scene.pass(ELECTED_MS);
    await scene.ask(asked, 'Maintenance/MoveLeader', (out) => out.big(1, BigInt(`0x${survivor.id}`)));
    await scene.pass(ELECTED_MS);
    assert.equal((await scene.put(survivor, 'before')).kind, 'ok');
    const { conf, noop } = EntryKind;
    const { lastIndex } = survivor.disk.image;
    for (const other of scene.members) scene.network.cut(survivor.name, other.name);
    scene.send(
      survivor,
      'Cluster/MemberAdd',
      (out) => out.string(1, 'http://never:2380'),
      () => {},
    );
    const added = () => survivor.disk.image.others.find(({ index }) => index > lastIndex);
    await scene.until(() => added()?.kind === conf);
    await scene.leaveTo(survivor);
    // What it had written is another entry now: nobody who has the first one is left, and the checkers compare it with nobody's.
    assert.equal(added()?.kind, noop);
    scene.network.heal();
    survivor.start();
    await scene.pass(ELECTED_MS);
    assert.deepEqual(clusterOf(survivor).conf.voters, [survivor.id]);
    assert.equal((await scene.put(survivor, 'alone')).kind, 'ok');
    const next = scene.newcomer();
    assert.equal((await scene.ask(survivor, 'Cluster/MemberAdd', (out) => out.string(1, next.url))).kind, 'ok');
    next.start();
    await scene.until(() => next.disk.image.lastRevision === survivor.disk.image.lastRevision);
    assert.equal((await scene.put(next, 'together')).kind, 'ok');
  });
});
