import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createHistoryFiles } from '../../../../src/kubelet/io/history/index.ts';

describe('files of the usage history', () => {
  let directory = '';
  const content = Uint8Array.from({ length: 3_000 }, (_, at) => (at * at) % 251);
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'he-history-'));
  });
  after(() => rm(directory, { recursive: true, force: true }));

  it('files of the usage history are listed, read, replaced and removed; other files stay unchanged', async () => {
    const below = join(directory, 'a/b');
    const files = createHistoryFiles(below);
    assert.deepEqual(await files.list(), []);
    await files.replace('12.history', Uint8Array.of(1));
    await files.replace('12.history', content);
    await writeFile(join(below, 'notes.txt'), 'mine');
    await writeFile(join(below, '13.history.tmp'), 'cut');
    assert.deepEqual(await files.list(), ['12.history']);
    assert.deepEqual(Uint8Array.from(await files.read('12.history')), content);
    assert.deepEqual((await readdir(below)).sort(), ['12.history', 'notes.txt']);
    assert.equal((await stat(join(below, '12.history'))).mode & 0o777, 0o600);
    await files.remove('12.history');
    assert.deepEqual(await files.list(), []);
  });

  it('files of the usage history are rejected when they are truncated, changed at any byte, or of a newer version', async () => {
    const files = createHistoryFiles(directory);
    await files.replace('7.history', content.subarray(0, 200));
    const path = join(directory, '7.history');
    const bytes = await readFile(path);
    for (let length = 0; length < bytes.length; length++) {
      await writeFile(path, bytes.subarray(0, length));
      await assert.rejects(files.read('7.history'), `cut after ${length}`);
    }
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 0x10;
      await writeFile(path, changed);
      await assert.rejects(files.read('7.history'), `changed at ${at}`);
    }
    await writeFile(path, bytes);
    assert.equal((await files.read('7.history')).length, 200);
  });

  it('files of the usage history are rejected if they are directories or too large, compressed or uncompressed', async () => {
    const files = createHistoryFiles(directory);
    await files.replace('8.history', new Uint8Array(5 * 1024 * 1024));
    assert.ok((await stat(join(directory, '8.history'))).size < 100_000, 'a small file with a large content');
    await assert.rejects(files.read('8.history'));
    await writeFile(join(directory, '9.history'), new Uint8Array(3 * 1024 * 1024));
    await assert.rejects(files.read('9.history'), /larger than a history file can be/);
    await mkdir(join(directory, '10.history'));
    await assert.rejects(files.read('10.history'));
    await files.remove('10.history');
    assert.ok(!(await readdir(directory)).includes('10.history'));
  });
});
