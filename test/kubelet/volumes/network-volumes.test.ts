/** iSCSI sessions and loop devices shared by several volumes, with records on disk and an in-memory target. */
import assert from 'node:assert/strict';
import { mkdtemp, rename, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { ISCSIVolumeSource } from '../../../src/api/generated/core/v1.ts';
import { silentLog } from '../../../src/base/log.ts';
import { createKubeletFiles } from '../../../src/kubelet/io/files/index.ts';
import { createMounter } from '../../../src/kubelet/io/host-facts/index.ts';
import { createVolumeTools } from '../../../src/kubelet/io/volume-tools/volume-tools.ts';
import type { PodDirectories } from '../../../src/kubelet/pods/directories.ts';
import type { Mounter } from '../../../src/kubelet/port.ts';
import type { VolumeFiles } from '../../../src/kubelet/ports/files-port.ts';
import { type IscsiMount, type LoopMount, MountRecords } from '../../../src/kubelet/volumes/records.ts';
import type { VolumeRequest } from '../../../src/kubelet/volumes/request.ts';
import type { VolumeTools } from '../../../src/kubelet/volumes/tools-port.ts';
import { isDurable } from '../../../src/kubelet/volumes/types/index.ts';
import { IscsiVolumes } from '../../../src/kubelet/volumes/types/iscsi.ts';
import { LocalVolumes } from '../../../src/kubelet/volumes/types/local.ts';

const IQN = 'iqn.2001-04.com.example:disk';
const turn = (ms = 5): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

class Host {
  readonly log: string[] = [];
  /** Simulates the attach-detach controller. */
  attached = async (): Promise<void> => {};
  readonly mounted = new Map<string, string>();
  readonly sessions = new Set<string>();
  readonly loops = new Map<string, string>();
  readonly secrets = new Map<string, Record<string, string>>();
  readonly records: MountRecords;
  readonly iscsi: IscsiVolumes;
  readonly local: LocalVolumes;

  readonly root: string;

  constructor(root: string) {
    this.root = root;
    const real = createVolumeTools({ createdVolumes: '/nonexistent', log: silentLog });
    const directories = {
      pods: join(root, 'pods'),
      mountRecords: (uid: string) => join(root, 'pods', uid, 'mounts'),
      mountRecord: (uid: string, volume: string) => join(root, 'pods', uid, 'mounts', volume),
      volume: (uid: string, plugin: string, name: string) => join(root, 'pods', uid, plugin, name),
      iscsiStaging: (iqn: string, lun: number, key: string) => join(root, 'iscsi', `${iqn}-lun-${lun}-${key}`),
    } as unknown as PodDirectories;
    const tools = {
      read: real.read,
      removeFile: real.removeFile,
      removeEmptyDirectory: async () => {},
      iscsiLogin: async ({ iqn, lun, portals }) => {
        await turn();
        this.sessions.add(iqn);
        const [portal] = portals;
        return portal === '192.0.2.1' || portal === '192.0.2.1:3260' ? `/dev/${iqn}-${lun}` : `/dev/${portal}-${lun}`;
      },
      iscsiSessions: async () => [...this.sessions],
      iscsiLogout: async ({ iqn, portals }) => {
        await turn();
        this.log.push(`logout of ${portals.join(' ')}`);
        if (!portals.some((portal) => portal.startsWith('192.0.2.1'))) return;
        const users = [...this.mounted.values()].filter((device) => device.startsWith(`/dev/${iqn}-`));
        assert.deepEqual(users, [], 'logout below a mounted disk');
        this.sessions.delete(iqn);
      },
      formatAndMount: async (device, target) => {
        await turn();
        assert.ok(this.sessions.has(IQN), 'the disk is there');
        this.mounted.set(target, device);
      },
      unmount: async (target) => {
        await turn(20);
        this.mounted.delete(target);
        this.log.push(`unmount ${target.split('/').at(-1)}`);
      },
      makeImage: async () => {},
      attachLoop: async (file) => {
        await turn();
        const device = this.loops.get(file) ?? `/dev/loop${this.loops.size}`;
        this.loops.set(file, device);
        return device;
      },
      detachLoop: async (file) => {
        await turn(20);
        this.loops.delete(file);
      },
    } as Partial<VolumeTools> as VolumeTools;
    const mounts = { isMountPoint: async (target: string) => this.mounted.has(target) } as unknown as Mounter;
    const files = {
      makeDirectory: async () => true,
      kindOf: async () => 'File',
      bindSubPath: async (staging: string, _: string, path: string) => {
        const device = this.mounted.get(staging);
        assert.ok(device !== undefined && this.sessions.has(IQN), 'the disk is mounted and there');
        this.mounted.set(path, device);
      },
    } as unknown as VolumeFiles;
    this.records = new MountRecords(directories, createKubeletFiles(createMounter()).pods, tools, isDurable);
    const attachments = { report: async () => {}, waitInTree: () => this.attached(), forget: () => {} };
    const shared = { records: this.records, directories, files, foreign: files, mounts, tools };
    const secretOf = async (reference: { namespace?: string; name?: string } | undefined) => {
      const found = this.secrets.get(`${reference?.namespace}/${reference?.name}`);
      if (found === undefined) throw new Error('secret not found');
      return found;
    };
    const api = { context: { secretOf }, attachments, staging: { reportSoon: () => {} } };
    this.iscsi = new IscsiVolumes({ ...shared, ...api });
    this.local = new LocalVolumes({ ...shared, log: silentLog });
  }

  async setUp(
    uid: string,
    name: string,
    more: Partial<ISCSIVolumeSource> = {},
    namespace = 'default',
    persistent = false,
  ): Promise<void> {
    const iscsi = { iqn: IQN, lun: name.charCodeAt(0), targetPortal: '192.0.2.1', ...more };
    const volume = persistent ? { name } : { name, iscsi };
    await this.iscsi.setUp({
      pod: { metadata: { uid, namespace } },
      volume,
      ...(persistent ? { persistent: { metadata: { name: `pv-${name}` }, spec: { iscsi } } } : {}),
    } as VolumeRequest);
  }
  /** Device behind the path that the pod's containers get. */
  async deviceOf(uid: string): Promise<string | undefined> {
    const record = (await this.records.all()).find((each) => each.uid === uid);
    return record === undefined ? undefined : this.mounted.get(record.path);
  }
  async tearDown(uid: string): Promise<void> {
    for (const record of await this.records.all()) {
      if (record.uid === uid && record.kind === 'iscsi') await this.iscsi.tearDown(record as IscsiMount);
      if (record.uid === uid && record.kind === 'loop') await this.local.tearDown(record as LoopMount);
    }
  }
}

describe('iSCSI sessions', () => {
  let root: string;
  let host: Host;
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'he-iscsi-volumes-'));
  });
  beforeEach(async () => {
    host = new Host(await mkdtemp(join(root, 'host-')));
  });
  after(() => rm(root, { recursive: true, force: true }));

  it('iSCSI sessions end after the last disk of a pod was unmounted', async () => {
    await host.setUp('u', 'a');
    await host.setUp('u', 'b');
    await host.tearDown('u');
    assert.equal(host.log.filter((line) => line.startsWith('logout')).length, 1);
    assert.equal(host.log.at(-1), 'logout of 192.0.2.1');
    assert.equal(host.mounted.size, 0);
  });

  it('iSCSI sessions stay for a pod that starts while another pod ends', async () => {
    await host.setUp('old', 'a');
    const ending = host.tearDown('old');
    await turn(30);
    await host.setUp('new', 'a');
    await ending;
    assert.ok(host.sessions.has(IQN));
    assert.equal([...host.mounted.keys()].filter((path) => path.includes('/pods/new/')).length, 1);
    await host.tearDown('new');
    assert.deepEqual([...host.sessions], []);
  });

  it('iSCSI sessions begin after the disk was recorded for the node', async () => {
    host.attached = () => Promise.reject(new Error('timed out waiting for the condition'));
    await assert.rejects(host.setUp('u', 'a'), /timed out/);
    assert.deepEqual([host.sessions.size, host.mounted.size], [0, 0]);
    const [record] = await host.records.all();
    assert.equal(record?.kind === 'iscsi' ? record.unique : '', `kubernetes.io/iscsi/192.0.2.1:${IQN}:97`);
    host.attached = async () => {};
    await host.setUp('u', 'a');
    assert.equal(host.mounted.size, 2);
    await host.tearDown('u');
  });

  it('iSCSI sessions stay on portals that another volume uses', async () => {
    await host.setUp('one', 'a', { portals: ['192.0.2.2'] });
    await host.setUp('two', 'b', { targetPortal: '192.0.2.1:3260' });
    await host.tearDown('one');
    assert.equal(host.log.at(-1), 'logout of 192.0.2.2');
    assert.ok(host.sessions.has(IQN));
    await host.tearDown('two');
    assert.deepEqual([...host.sessions], []);
  });

  it('iSCSI sessions stay while the records of other pods cannot be read', async () => {
    await host.setUp('one', 'a');
    await host.setUp('two', 'b');
    const restarted = new Host(host.root);
    for (const [path, device] of host.mounted) restarted.mounted.set(path, device);
    restarted.sessions.add(IQN);
    const directory = join(host.root, 'pods/two/mounts');
    await rename(directory, `${directory}.aside`);
    await symlink('mounts', directory);
    await assert.rejects(restarted.tearDown('one'), /ELOOP/);
    await rm(directory);
    await rename(`${directory}.aside`, directory);
    await restarted.tearDown('one');
    assert.ok(restarted.sessions.has(IQN));
    await restarted.tearDown('two');
    assert.deepEqual([...restarted.sessions], []);
  });

  it('iSCSI sessions of another target with the same name do not give access to a mounted disk', async () => {
    await host.setUp('victim', 'a');
    for (const [uid, more] of [
      ['thief', { targetPortal: '198.51.100.9' }],
      ['second', { targetPortal: '198.51.100.9', portals: ['192.0.2.1'] }],
    ] as [string, Partial<ISCSIVolumeSource>][]) {
      await host.setUp(uid, 'a', more, 'other');
      assert.equal(await host.deviceOf(uid), '/dev/198.51.100.9-97', uid);
    }
    await host.tearDown('thief');
    assert.equal(await host.deviceOf('victim'), `/dev/${IQN}-97`);
  });

  it('iSCSI sessions with CHAP credentials are not shared with a pod that has other or no credentials', async () => {
    const password = (value: string) => ({
      'node.session.auth.username': 'disk',
      'node.session.auth.password': value,
    });
    host.secrets.set('shop/chap', password('right')).set('other/guess', password('wrong'));
    host.secrets.set('other/copy', password('right')).set('other/part', {
      ...password('right'),
      'node.session.auth.username': 'another',
    });
    const chap = (name: string) => ({ chapAuthSession: true, secretRef: { name } });
    await host.setUp('victim', 'a', chap('chap'), 'shop');
    for (const [uid, more] of [
      ['without', {}],
      ['wrong', chap('guess')],
      ['part', chap('part')],
      ['alias', { targetPortal: '192.0.2.1:3260' }],
      ['second', { targetPortal: '192.0.2.7', portals: ['192.0.2.1'] }],
    ] as [string, Partial<ISCSIVolumeSource>][]) {
      await assert.rejects(host.setUp(uid, 'a', more, 'other'), /in use on this node with other CHAP credentials/, uid);
      assert.equal(await host.deviceOf(uid), undefined, uid);
      await host.tearDown(uid);
    }
    await host.setUp('friend', 'a', chap('copy'), 'other');
    assert.equal(await host.deviceOf('friend'), `/dev/${IQN}-97`);
    host.secrets.delete('shop/chap');
    await assert.rejects(host.setUp('late', 'a', chap('copy'), 'other'), /other user not read: secret not found/);
  });

  it('iSCSI sessions of the host itself are not used by volumes of pod specs', async () => {
    host.sessions.add(IQN);
    for (const attempt of [1, 2])
      await assert.rejects(host.setUp('thief', 'a'), /the host has a session with target/, String(attempt));
    await assert.rejects(host.setUp('thief', 'b'), /the host has a session with target/);
    assert.equal(host.mounted.size, 0);
    await host.setUp('admin', 'a', {}, 'default', true);
    assert.equal(await host.deviceOf('admin'), `/dev/${IQN}-97`);
  });

  it('iSCSI sessions that a failed attempt has opened are used by the next attempt', async () => {
    await host.setUp('own', 'a');
    // The session exists, but the mount was lost.
    host.mounted.clear();
    await host.setUp('own', 'a');
    assert.equal(await host.deviceOf('own'), `/dev/${IQN}-97`);
  });

  it('iSCSI sessions keep a loop device for a pod that starts while another pod ends', async () => {
    const block = (uid: string, name: string) => ({
      pod: { metadata: { uid } },
      volume: { name },
      persistent: { metadata: { name: 'pv' }, spec: { volumeMode: 'Block', local: { path: '/disk' } } },
    });
    await host.local.setUp(block('old', 'a'));
    const ending = host.tearDown('old');
    await turn();
    await host.local.setUp(block('new', 'a'));
    await ending;
    assert.deepEqual([...host.loops.keys()], ['/disk']);
    await host.local.setUp(block('new', 'b'));
    const [a] = (await host.records.all()).filter(({ volume }) => volume === 'a');
    await host.local.tearDown(a as LoopMount);
    assert.deepEqual([...host.loops.keys()], ['/disk'], 'the pod has the file as another volume');
    await host.tearDown('new');
    assert.deepEqual([...host.loops.keys()], []);
  });
});
