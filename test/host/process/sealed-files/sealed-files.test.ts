import assert from 'node:assert/strict';
import { copyFile, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { toNodeName } from '../../../../src/base/brand.ts';
import type { SealedFiles } from '../../../../src/client/informers/sealed-files-port.ts';
import { createSealedFiles } from '../../../../src/host/process/sealed-files/sealed-files.ts';

let root: string;
let files: SealedFiles;
const open = (node = 'edge-1'): SealedFiles =>
  createSealedFiles({
    directory: join(root, 'state'),
    keyFile: join(root, 'keys/state.key'),
    nodeName: toNodeName(node),
  });
const text = (bytes: Uint8Array | undefined): string | undefined =>
  bytes === undefined ? undefined : Buffer.from(bytes).toString();
const SECRET = 'password=correct-horse '.repeat(50);

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'sealed-'));
  files = open();
});
afterEach(() => rm(root, { recursive: true, force: true }));

test('written content is readable for the next process with the key, and for no process without the key', async () => {
  assert.equal(await files.read('pods'), undefined);
  assert.equal(await files.write('pods', Buffer.from(SECRET)), true);
  assert.equal(text(await open().read('pods')), SECRET);
  const onDisk = await readFile(join(root, 'state/pods'), 'latin1');
  assert.doesNotMatch(onDisk, /password|horse/);
  for (const [path, mode] of [
    ['state', 0o700],
    ['state/pods', 0o600],
    ['keys/state.key', 0o600],
  ] as const)
    assert.equal((await stat(join(root, path))).mode & 0o777, mode, path);
  assert.deepEqual(await readdir(join(root, 'state')), ['pods']);
  await rm(join(root, 'keys/state.key'));
  await assert.rejects(open().read('pods'), /state\/pods: the key .*keys\/state\.key is missing/);
});

test('a sealed file is not rewritten if its content is unchanged', async () => {
  await files.write('pods', Buffer.from('one'));
  const before = await stat(join(root, 'state/pods'));
  assert.equal(await files.write('pods', Buffer.from('one')), false);
  const again = open();
  await again.read('pods');
  assert.equal(await again.write('pods', Buffer.from('one')), false);
  assert.equal((await stat(join(root, 'state/pods'))).ino, before.ino);
  assert.equal(await again.write('pods', Buffer.from('two')), true);
  assert.equal(text(await open().read('pods')), 'two');
});

test('rejects a sealed file with changed bytes, a truncation, another name, another node or another key', async () => {
  await files.write('pods', Buffer.from(SECRET));
  const path = join(root, 'state/pods');
  const good = await readFile(path);
  for (const at of [0, 30, 45, 60, good.length - 1]) {
    const bad = Buffer.from(good);
    bad[at] = (bad[at] ?? 0) ^ 1;
    await writeFile(path, bad);
    await assert.rejects(open().read('pods'), /state\/pods: (the file is damaged|not a sealed file)/, `byte ${at}`);
  }
  await writeFile(path, good);
  await truncate(path, good.length - 1);
  await assert.rejects(open().read('pods'), /damaged/);
  await truncate(path, 3);
  await assert.rejects(open().read('pods'), /not a sealed file of this version/);
  await writeFile(path, good);
  await copyFile(path, join(root, 'state/tokens'));
  await assert.rejects(open().read('tokens'), /the file is damaged or was sealed on another host/);
  await assert.rejects(open('edge-2').read('pods'), /the file is damaged or was sealed on another host/);
  await writeFile(join(root, 'keys/state.key'), `${Buffer.alloc(32, 7).toString('base64')}\n`);
  await assert.rejects(open().read('pods'), /the file is damaged or was sealed on another host/);
});

test('files that are written for the first time at the same time share one key', async () => {
  const names = ['pods', 'tokens', 'services', 'node'];
  await Promise.all(names.map((name) => files.write(name, Buffer.from(name))));
  for (const name of names) assert.equal(text(await open().read(name)), name);
});

test('the next write replaces a lost or damaged key of sealed files', async () => {
  await files.write('pods', Buffer.from('one'));
  await writeFile(join(root, 'keys/state.key'), 'not a key\n');
  assert.equal(await files.write('pods', Buffer.from('two')), true);
  assert.equal(text(await open().read('pods')), 'two');
});

test('rejects names of sealed files outside of their directory', async () => {
  for (const name of ['../x', 'a/b', '', '.', 'A'])
    await assert.rejects(files.write(name, Buffer.from('x')), /is not a name/);
});
