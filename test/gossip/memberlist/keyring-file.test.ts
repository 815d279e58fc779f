import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createKeyring, openKeyring } from '../../../src/gossip/memberlist/index.ts';

async function inDirectory(use: (path: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'he-keyring-'));
  try {
    await use(join(directory, 'keyring.json'));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
const key = (byte: number): Buffer => Buffer.alloc(32, byte);

test('creates a private keyring in serf’s format and stores its changes', () =>
  inDirectory(async (path) => {
    assert.equal(await openKeyring(path), undefined);
    await createKeyring(path);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    const opened = await openKeyring(path);
    assert.ok(opened !== undefined);
    await Promise.all([opened.store.install(key(1)), opened.store.install(key(2)), opened.store.use(key(2))]);
    const [old] = JSON.parse(await readFile(path, 'utf8')).slice(1);
    await opened.store.remove(Buffer.from(old, 'base64'));
    assert.deepEqual(JSON.parse(await readFile(path, 'utf8')), [key(2).toString('base64'), key(1).toString('base64')]);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    await assert.rejects(opened.store.remove(key(2)), { code: 'key-in-use' });
    await assert.rejects(opened.store.use(key(9)), { code: 'key-unknown' });
    assert.deepEqual((await openKeyring(path))?.store.keys(), opened.store.keys());
  }));

test('a change of the keyring that cannot be written is reverted', () =>
  inDirectory(async (path) => {
    await createKeyring(path);
    const opened = await openKeyring(path);
    assert.ok(opened !== undefined);
    await mkdir(`${path}.new`);
    await assert.rejects(opened.store.install(key(1)), { code: 'unwritable' });
    assert.equal(opened.store.keys().length, 1);
    assert.equal(opened.keyring.size, 1);
  }));

test('rejects an invalid or accessible keyring with the file and a fix', () =>
  inDirectory(async (path) => {
    const good = JSON.stringify([key(1).toString('base64')]);
    const wrong: readonly [string, number, RegExp][] = [
      [good, 0o644, /keyring\.json: private material that every user can read; run chmod 0600/],
      [good, 0o640, /its group can read; run chmod 0600/],
      ['nonsense', 0o600, /is not JSON; .*hyperedge gossip keygen/],
      ['{"a":1}', 0o600, /not a list of strings/],
      ['["*"]', 0o600, /entry 1 is not base64/],
      ['["AAAA"]', 0o600, /16, 24 or 32 bytes, not 3/],
      ['[]', 0o600, /1 to 8 keys, not 0/],
      [' '.repeat(20_000), 0o600, /too large/],
    ];
    for (const [text, mode, expected] of wrong) {
      await writeFile(path, text);
      await chmod(path, mode);
      await assert.rejects(openKeyring(path), (error: Error & { code?: string }) => {
        assert.match(error.message, expected);
        return error.code === 'bad-keyring';
      });
    }
  }));
