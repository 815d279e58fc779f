import assert from 'node:assert/strict';
import { lstat, mkdir, mkdtemp, readdir, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { shellFiles } from '../../../build/shell-files.ts';
import { placeFiles, removeFiles } from '../../../src/host/install/layout.ts';

let root = '';
let source = '';
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'layout-'));
  source = join(root, 'download');
  await writeFile(source, 'first');
});
after(() => rm(root, { recursive: true }));

const at = (path: string): string => join(root, path);

test('installs files and links, keeps other software, and changes nothing in a second run', async () => {
  await mkdir(at('usr/local/bin'), { recursive: true });
  await writeFile(at('usr/local/bin/etcd'), 'real');
  await symlink('/opt/kubelet', at('usr/local/bin/kubelet'));
  const placed = await placeFiles(root, source);
  assert.deepEqual([...placed.foreign].sort(), [at('usr/local/bin/etcd'), at('usr/local/bin/kubelet')]);
  assert.ok(placed.changed.includes(at('usr/local/bin/hyperedge')));
  assert.equal(await readFile(placed.executable, 'utf8'), 'first');
  assert.equal((await lstat(placed.executable)).mode & 0o777, 0o755);
  assert.equal(await readlink(at('usr/local/bin/master-restart')), 'hyperedge');
  assert.equal(await readFile(at('usr/local/bin/etcd'), 'utf8'), 'real');
  assert.match(await readFile(at('etc/systemd/system/hyperedge.service'), 'utf8'), /^Type=notify$/m);
  assert.equal(
    await readlink(at('etc/systemd/system/multi-user.target.wants/hyperedge.service')),
    '/etc/systemd/system/hyperedge.service',
  );
  for (const directory of ['etc/origin/bootstrap.yaml.d', 'etc/origin/manifests'])
    assert.ok((await lstat(at(directory))).isDirectory(), directory);
  assert.deepEqual((await placeFiles(root, source)).changed, []);
});

test('an update replaces the installed executable by a new inode', async () => {
  const before = (await lstat(at('usr/local/bin/hyperedge'))).ino;
  await writeFile(source, 'other');
  assert.deepEqual((await placeFiles(root, source)).changed, [at('usr/local/bin/hyperedge')]);
  assert.notEqual((await lstat(at('usr/local/bin/hyperedge'))).ino, before);
});

test('removes all installed files and keeps other software', async () => {
  await removeFiles(root);
  const files = await readdir(root, { recursive: true, withFileTypes: true });
  const left = files.filter((entry) => !entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name));
  assert.deepEqual(left.sort(), [source, at('usr/local/bin/etcd'), at('usr/local/bin/kubelet')].sort());
  assert.deepEqual(await removeFiles(root), []);
});

test('installs completion and man pages unless a package provides them, and removes its own files', async () => {
  const host = join(root, 'host');
  const files = new Map(Object.entries(shellFiles('1.2.3')));
  const below = async (): Promise<string[]> => {
    const found = await readdir(join(host, 'usr/local/share'), { recursive: true, withFileTypes: true }).catch(
      () => [],
    );
    return found.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  };
  const placed = await placeFiles(host, source, files);
  const share = join(host, 'usr/local/share');
  const page = join(share, 'man/man1/hyperedge-install.1');
  assert.ok(placed.changed.includes(page));
  assert.match(await readFile(page, 'utf8'), /^\.TH HYPEREDGE-INSTALL 1 "" "hyperedge 1\.2\.3"/);
  assert.match(await readFile(join(share, 'bash-completion/completions/hyperedge'), 'utf8'), /^complete -F/m);
  assert.match(await readFile(join(share, 'zsh/site-functions/_hyperedge'), 'utf8'), /^#compdef hyperedge/);
  assert.match(await readFile(join(share, 'fish/vendor_completions.d/hyperedge.fish'), 'utf8'), /complete /);
  assert.equal((await below()).length, files.size);
  await writeFile(page, 'of an earlier release');
  assert.deepEqual((await placeFiles(host, source, files)).changed, [page]);

  const foreign = join(share, 'man/man1/other.1');
  await writeFile(foreign, '');
  await removeFiles(host);
  assert.deepEqual(await below(), [foreign]);
  assert.deepEqual(await readdir(share), ['man'], 'directories that are empty are removed');

  await mkdir(join(host, 'usr/share/bash-completion/completions'), { recursive: true });
  await writeFile(join(host, 'usr/share/bash-completion/completions/hyperedge'), '');
  await placeFiles(host, source, files);
  assert.deepEqual(await below(), [foreign]);
});
