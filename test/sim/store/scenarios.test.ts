/** Regression tests of bugs that the simulation has found, as explicit scenarios. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PermissionType, writePermission } from '../../../src/store/core/messages/auth.ts';
import { decodeHeader, writePutRequest, writeRangeRequest } from '../../../src/store/core/messages/kv.ts';
import { decodeWatchResponse, type WatchResponse, writeWatchCreate } from '../../../src/store/core/messages/watch.ts';
import { EntryKind } from '../../../src/store/disk/port.ts';
import { RpcCode } from '../../../src/wire/grpc/port.ts';
import { Reader, Writer } from '../../../src/wire/protobuf/protobuf.ts';
import { clusterOf } from './damage.ts';
import type { Member } from './member.ts';
import type { Answer } from './rpc.ts';
import { BOUNDS, ELECTED_MS, Scene } from './scene.ts';

/**
 * Removes one of two members. The other one loses power after it has committed the removal, but before the commit is
 * stored.
 */
async function removedAndForgotten(scene: Scene): Promise<void> {
  const [stays, goes] = scene.members as [Member, Member];
  await scene.pass(ELECTED_MS);
  const { lastIndex } = stays.disk.image;
  const id = BigInt(`0x${goes.id}`);
  // The member to be removed first transfers leadership.
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

describe('removal of one of two members', () => {
  it('a removed member keeps running until the remaining member has stored the removal', async () => {
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

  it('the removal of a member completes after the removed member was restarted', async () => {
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

describe('single member', () => {
  it('a single member adds no member while visible revisions are not in its log yet', async () => {
    await using scene = new Scene(1);
    const [alone] = scene.members as [Member];
    await scene.pass(100);
    // The store reserves revisions for this write.
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

  it('a member that became a single member again skips its reserved revisions only once', async () => {
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
    // The other member receives its removal, but the acknowledgement is lost: leadership is lost, and won again
    // together with the removal.
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

describe('single member that lost visible revisions before they were written', () => {
  it('does not reuse visible revisions that were lost before they were written, even if stopped during its start', async () => {
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
      // The regular stop may complete, or the process has to be killed.
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

/** Three members, the first of which is leader, and a user with full access to `key`. */
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

const queried = {
  'KV/Put': (out: Writer) => writePutRequest(out, { key, value: Buffer.from('v') }),
  'KV/Range': (out: Writer) => writeRangeRequest(out, { key }),
};

describe('follower with an outdated auth state', () => {
  for (const [path, write] of Object.entries(queried))
    it(`a follower rejects access that was revoked while it was partitioned: ${path}`, async () => {
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

describe('leader that has not applied a change of auth because its disk stalls', () => {
  for (const through of ['itself', 'a follower with the same auth state'] as const)
    it(`a leader with a stalled disk does not authorize requests by its outdated auth state, sent to ${through}`, async () => {
      await using scene = await guarded();
      const [leader, reported, late] = scene.members as [Member, Member, Member];
      const asks = through === 'itself' ? leader : late;
      assert.equal((await scene.ask(asks, 'KV/Put', queried['KV/Put'], limited)).kind, 'ok');
      leader.disk.stuckUntil = scene.nowMs + 700;
      const { lastIndex } = late.disk.image;
      const revoke = (out: Writer): Writer => out.string(1, 'some').latin1(2, key);
      scene.send(leader, 'Auth/RoleRevokePermission', revoke, () => {});
      // Both other members have the entry, but one does not know that it is committed.
      await scene.until(() => late.disk.image.lastIndex > lastIndex);
      scene.network.cut(leader.name, late.name);
      await scene.pass(50);
      const there = await scene.ask(reported, 'KV/Put', queried['KV/Put'], limited);
      assert.ok(there.kind === 'failed' && there.code === RpcCode.permissionDenied, JSON.stringify(there));
      scene.network.heal();
      const forbidden = (out: Writer): Writer => writePutRequest(out, { key, value: Buffer.from('forbidden') });
      const answer = await scene.ask(asks, 'KV/Put', forbidden, limited);
      assert.ok(answer.kind === 'failed' && answer.code === RpcCode.permissionDenied, JSON.stringify(answer));
      await scene.pass(ELECTED_MS);
      const left = await scene.ask(leader, 'KV/Range', queried['KV/Range']);
      assert.ok(left.kind === 'ok' && !Buffer.from(left.body).includes('forbidden'));
    });
});

describe('watch of an unchanged key', () => {
  it('a watch continues when its member installs a snapshot after a compaction without changes of the key', async () => {
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
      pause: () => {},
      resume: () => {},
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
    // Compacts the revisions that the watch has received, and slightly more.
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

describe('quorum loss during the addition of a member', () => {
  it('the survivor of a quorum loss continues alone and drops the uncommitted addition of a member', async () => {
    await using scene = new Scene(3);
    const [survivor, , queried] = scene.members as [Member, Member, Member];
    await scene.pass(ELECTED_MS);
    await scene.ask(queried, 'Maintenance/MoveLeader', (out) => out.big(1, BigInt(`0x${survivor.id}`)));
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
    // The written entry was replaced by another one. No member with the old entry is left, so the checkers do not
    // compare them.
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
