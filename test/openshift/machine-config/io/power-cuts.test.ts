import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Entry, Tree } from '../../../../src/openshift/machine-config/core/ignition/port.ts';
import { createHostFiles } from '../../../../src/openshift/machine-config/io/host-files.ts';
import { generator } from '../../../support/random.ts';
import { PowerCut, SimulatedDisk } from './simulated-disk.ts';

const file = (text: string, mode = 0o644): Entry => ({
  kind: 'file',
  bytes: new TextEncoder().encode(text),
  mode,
  user: 0,
  group: 0,
});
const noWatch = () => ({ close: () => {} });
const open = (disk: SimulatedDisk) => createHostFiles(disk, noWatch);
const OWNER = { mode: 0o640, uid: 7, gid: 7 };

/** A host with its own files, some of which the configs replace. */
async function newHost(): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk();
  for (const path of ['/etc', '/etc/own', '/var', '/var/lib'])
    await disk.makeDirectory(path, { mode: 0o755, uid: 0, gid: 0 });
  for (const name of ['motd', 'own/a', 'own/b'])
    await disk.write(`/etc/${name}`, new TextEncoder().encode(name), OWNER);
  await disk.symlink('/etc/link', '/etc/motd');
  for (const path of ['/', '/etc', '/etc/own', '/var', '/var/lib']) await disk.sync(path);
  return disk;
}

const TREES: readonly Tree[] = [
  new Map(),
  new Map<string, Entry>([
    ['/etc/motd', file('first', 0o600)],
    ['/etc/own/a', file('a1')],
    ['/etc/deep/er/file', file('deep')],
    ['/etc/link', { kind: 'link', target: '/dev/null' }],
    ['/etc/own/gone', { kind: 'absent' }],
  ]),
  new Map<string, Entry>([
    ['/etc/motd', file('second')],
    ['/etc/own/b', { kind: 'absent' }],
    ['/etc/other/link', { kind: 'link', target: '../motd' }],
    ['/etc/link', file('no link')],
  ]),
];

/** Files visible to a reader of the host. The daemon's own state and its flushed names are compared separately. */
const visible = (disk: SimulatedDisk): string =>
  JSON.stringify([...disk.snapshot()].filter(([path]) => !path.startsWith('/var/lib/origin')).sort());

test('after each of 200 power failures, the host has either all old or all new files once they were replayed', async () => {
  const random = generator(200);
  const outcomes = new Set<string>();
  let cuts = 0;
  let undone = 0;
  for (let round = 0; cuts < 200; round += 1) {
    const disk = await newHost();
    const files = open(disk);
    await files.open();
    const from = Math.floor(random() * 3);
    const to = (from + 1 + Math.floor(random() * 2)) % 3;
    await files.apply(TREES[from] ?? new Map(), `config ${from}`);
    const before = visible(disk);
    const twin = await newHost();
    const other = open(twin);
    await other.open();
    await other.apply(TREES[from] ?? new Map(), `config ${from}`);
    await other.apply(TREES[to] ?? new Map(), `config ${to}`);
    const after = visible(twin);
    disk.operations = 0;
    disk.cutAfter = Math.floor(random() * 45);
    // Some runs also get an I/O error first, which reverts the change.
    if (random() < 0.5) disk.failAfter = Math.floor(random() * disk.cutAfter);
    const cut = await files.apply(TREES[to] ?? new Map(), `config ${to}`).then(
      () => false,
      (error: unknown) => error instanceof PowerCut || (error instanceof Error && error.cause instanceof PowerCut),
    );
    disk.powerOn(random);
    // The power may fail again during the replay.
    for (let again = 0; again < 2; again += 1) {
      disk.cutAfter = Math.floor(random() * 12);
      await open(disk)
        .open()
        .catch(() => {});
      disk.powerOn(random);
    }
    const booted = open(disk);
    const note = await booted.open();
    const found = visible(disk);
    const expected = note === `config ${to}` ? after : before;
    assert.ok(note === `config ${to}` || note === `config ${from}`, `round ${round}: note ${JSON.stringify(note)}`);
    assert.equal(found, expected, `round ${round}: ${from} → ${to}, cut after ${disk.cutAfter}`);
    assert.deepEqual(await booted.differences(), []);
    if (cut) cuts += 1;
    if (cut && note === `config ${from}`) undone += 1;
    outcomes.add(String(note === `config ${to}`));
    // In every case all original files of the host can be restored.
    await booted.apply(new Map(), 'none');
    assert.equal(visible(disk), visible(await newHost()), `round ${round}: originals`);
  }
  assert.deepEqual([...outcomes].sort(), ['false', 'true']);
  assert.ok(undone > 20 && undone < 190, String(undone));
});

test('after each of 100 power failures, the boot loader file and all other files belong to one config, even on FAT', async () => {
  const random = generator(100);
  const line = (text: string): Entry => ({ ...file(text), shared: true }) as Entry;
  const trees: readonly Tree[] = ['quiet', 'nosmt'].map(
    (text) =>
      new Map([
        ['/boot/cmdline.txt', line(text)],
        ['/etc/motd', file(text)],
      ]),
  );
  const outcomes = new Set<string>();
  for (let cuts = 0; cuts < 100; ) {
    const disk = await newHost();
    disk.hardLinks = cuts % 2 === 0;
    await disk.makeDirectory('/boot', OWNER);
    await disk.write('/boot/cmdline.txt', new TextEncoder().encode('of the host'), OWNER);
    for (const path of ['/', '/boot']) await disk.sync(path);
    const files = open(disk);
    await files.open();
    await files.apply(trees[0] ?? new Map(), 'quiet');
    disk.operations = 0;
    disk.cutAfter = Math.floor(random() * 30);
    const cut = await files.apply(trees[1] ?? new Map(), 'nosmt').then(
      () => false,
      () => true,
    );
    disk.powerOn(random);
    const note = await open(disk).open();
    const found = disk.snapshot();
    for (const path of ['/boot/cmdline.txt', '/etc/motd'])
      assert.ok(found.get(path)?.endsWith(` ${String(note)}`), `${path}: ${found.get(path)}, note ${String(note)}`);
    if (cut) cuts += 1;
    outcomes.add(String(note));
  }
  assert.deepEqual([...outcomes].sort(), ['nosmt', 'quiet']);
});

test('after an I/O error at any step, a config is either not applied at all or applied completely', async () => {
  for (let step = 0; step < 60; step += 1) {
    const disk = await newHost();
    const files = open(disk);
    await files.open();
    await files.apply(TREES[1] ?? new Map(), 'one');
    const before = visible(disk);
    disk.operations = 0;
    disk.failAfter = step;
    const failed = await files.apply(TREES[2] ?? new Map(), 'two').then(
      () => false,
      () => true,
    );
    disk.powerOn(() => 1);
    const note = await open(disk).open();
    assert.equal(visible(disk) === before, note === 'one', `step ${step}`);
    assert.ok(failed || note === 'two', `step ${step}`);
  }
});

test('an I/O error during the recovery from a power failure leaves the files of one config', async () => {
  for (const keep of [0, 1])
    for (let cut = 30; cut < 60; cut += 1)
      for (let step = 0; step < 10; step += 1) {
        const disk = await newHost();
        const files = open(disk);
        await files.open();
        await files.apply(TREES[1] ?? new Map(), 'one');
        const before = visible(disk);
        disk.operations = 0;
        disk.cutAfter = cut;
        await files.apply(TREES[2] ?? new Map(), 'two').catch(() => {});
        disk.powerOn(() => keep);
        disk.failAfter = step;
        await open(disk)
          .open()
          .catch(() => {});
        disk.powerOn(() => keep);
        const note = await open(disk).open();
        assert.equal(visible(disk) === before, note === 'one', `cut after ${cut}, error at ${step}`);
        assert.ok(![...disk.snapshot().keys()].some((path) => path.includes('.hyperedge-')), `cut after ${cut}`);
      }
});

test('reports a change that can be neither completed nor undone, and undoes it when the disk works again', async () => {
  const disk = await newHost();
  const files = open(disk);
  await files.open();
  await files.apply(TREES[1] ?? new Map(), 'one');
  const before = visible(disk);
  const rename = disk.rename.bind(disk);
  const broken = async (from: string, to: string): Promise<void> => {
    if (to === '/etc/own/b' || to === '/etc/link') throw Object.assign(new Error('EIO'), { code: 'EIO' });
    await rename(from, to);
  };
  disk.rename = broken;
  await assert.rejects(files.apply(TREES[2] ?? new Map(), 'two'));
  await assert.rejects(open(disk).open());
  await assert.rejects(files.apply(TREES[2] ?? new Map(), 'two'));
  await assert.rejects(files.note('three'));
  disk.rename = rename;
  await files.note('four');
  assert.equal(visible(disk), before);
  assert.equal(await open(disk).open(), 'four');
  await files.apply(new Map(), 'none');
  assert.equal(visible(disk), visible(await newHost()));
});

test('a full disk while new files are staged changes no host file and leaves no staged files', async () => {
  for (let space = 0; space < 3_000; space += 150) {
    const disk = await newHost();
    const files = open(disk);
    await files.open();
    await files.apply(TREES[1] ?? new Map(), 'one');
    const before = disk.snapshot();
    disk.space = space;
    const outcome = await files.apply(new Map([['/etc/motd', file('x'.repeat(1_000))]]), 'two').then(
      () => 'applied',
      (error: unknown) => (error instanceof Error ? error.message : ''),
    );
    if (outcome === 'applied') continue;
    assert.match(outcome, /^\/.*: no space left on device/);
    assert.deepEqual(disk.snapshot(), before, `space ${space}`);
  }
});
