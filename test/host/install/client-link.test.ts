import assert from 'node:assert/strict';
import { lstat, mkdir, mkdtemp, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { placeFiles } from '../../../src/host/install/layout.ts';

const LINK = 'usr/local/bin/kubectl';
let scratch: string;

before(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'client-link-'));
  await writeFile(join(scratch, 'download'), 'executable');
});
after(() => rm(scratch, { recursive: true }));

async function installed(name: string, ...present: string[]): Promise<string> {
  const root = join(scratch, name);
  for (const path of present) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), 'other');
  }
  await placeFiles(root, join(scratch, 'download'));
  return root;
}

test('creates the link kubectl on a host without kubectl', async () => {
  assert.equal(await readlink(join(await installed('bare'), LINK)), 'hyperedge');
});

test('creates no link to the client on a host with another kubectl', async () => {
  for (const [index, path] of ['usr/bin/kubectl', 'snap/bin/kubectl', 'opt/bin/kubectl'].entries())
    await assert.rejects(lstat(join(await installed(`other-${index}`, path), LINK)), /ENOENT/, path);
  assert.equal((await lstat(join(await installed('own', LINK), LINK))).isFile(), true);
});
