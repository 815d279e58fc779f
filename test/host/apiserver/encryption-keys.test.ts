/** Files with encryption keys after a power failure or on a full disk. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { type FileHandle, mkdir, mkdtemp, open, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { firstEncryptionFile } from '../../../src/apiserver/encryption/first-configuration.ts';
import { rotateKey } from '../../../src/host/apiserver/secrets-encrypt.ts';
import { writeIfMissing } from '../../../src/host/config/files.ts';
import { masterConfigOf } from '../../../src/host/config/generate.ts';
import { writeGenerated } from '../../../src/host/config/generated-file.ts';
import { loadSettings } from '../../../src/host/config/settings.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'he-keys-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

test('a rotated key is on disk before the command ends', async (context) => {
  const bootstrap = 'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nsecretsEncryption: {provider: secretbox}\n';
  await mkdir(join(root, 'etc/origin/master'), { recursive: true });
  await writeFile(join(root, 'etc/origin/bootstrap.yaml'), bootstrap);
  const settings = await loadSettings({ root });
  const { encryptionConfig, masterConfig } = settings.paths;
  assert.ok(settings.secretsEncryption !== undefined);
  const first = firstEncryptionFile(settings.secretsEncryption, 0, Buffer.alloc(32, 1).toString('base64'));
  await mkdir(dirname(encryptionConfig), { recursive: true });
  await writeFile(encryptionConfig, first, { mode: 0o600 });
  await writeGenerated(masterConfig, masterConfigOf(settings));
  const handle = await open(root);
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  const flushed: { readonly path: string; readonly content: string }[] = [];
  const { sync } = prototype;
  context.mock.method(prototype, 'sync', async function (this: FileHandle) {
    const path = await readlink(`/proc/self/fd/${this.fd}`);
    flushed.push({ path, content: await readFile(path, 'utf8').catch(() => '') });
    return sync.call(this);
  });
  const { file, key } = await rotateKey(root, false);
  assert.match(await readFile(file, 'utf8'), new RegExp(key));
  assert.ok(
    flushed.some(({ content }) => content.includes(key)),
    'the content is flushed',
  );
  assert.equal(flushed.at(-1)?.path, dirname(file));
});

test('a first key that does not fit on the disk is written by the next start', async () => {
  const file = join(root, 'encryption.yaml');
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', root]);
  try {
    const filler = join(root, 'filler');
    await assert.rejects(writeFile(filler, Buffer.alloc(1 << 20)), { code: 'ENOSPC' });
    await assert.rejects(writeIfMissing(file, 'key', 0o600), { code: 'unwritable' });
    await rm(filler);
    assert.equal(await writeIfMissing(file, 'key', 0o600), true);
    assert.equal(await readFile(file, 'utf8'), 'key');
    assert.equal(await writeIfMissing(file, 'another key', 0o600), false);
    assert.equal(await readFile(file, 'utf8'), 'key');
  } finally {
    execFileSync('umount', [root]);
  }
});
