import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { watchPath } from '../../../../src/kubelet/io/host-facts/index.ts';
import type { OperandFiles } from '../../../../src/openshift/revisions/index.ts';
import { createOperandFiles, keptFiles, keptState } from '../../../../src/openshift/revisions/io/index.ts';

let root: string;
let files: OperandFiles;
const at = (...path: string[]): string => join(root, ...path);
const text = (...path: string[]): Promise<string> => readFile(at(...path), 'utf8');

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'he-revisions-'));
});
after(() => rm(root, { recursive: true, force: true }));

beforeEach(async () => {
  await rm(root, { recursive: true, force: true });
  await mkdir(at('live/named'), { recursive: true });
  await writeFile(at('live/config.yaml'), 'a: 1\n', { mode: 0o600 });
  await writeFile(at('live/server.crt'), 'certificate');
  await writeFile(at('live/other'), 'does not count');
  await writeFile(at('live/theirs.yaml'), 'of another component');
  await writeFile(at('live/named/x.crt'), 'named');
  await writeFile(at('pod.yaml'), 'pod 1');
  files = ofRelease('1');
});

function ofRelease(release: string): OperandFiles {
  return createOperandFiles({
    operand: 'thing',
    resources: at('resources'),
    active: at('resources/active'),
    directories: [{ live: at('live'), name: 'live', owns: (file) => file !== 'theirs.yaml' }],
    manifest: at('pod.yaml'),
    release,
    executable: {
      own: (manifest) => Buffer.from(manifest.toString().replace(/program-\d/, `program-${release}`)),
      neutral: (manifest) => Buffer.from(manifest.toString().replace(/program-\d/, 'program')),
    },
    classify: (present) =>
      new Map(
        [...present.keys()].flatMap((name): [string, 'restart' | 'reload'][] =>
          name === 'live/config.yaml' ? [[name, 'restart']] : name === 'live/server.crt' ? [[name, 'reload']] : [],
        ),
      ),
    watchPath,
    overlaid: (name, content, overlay) => (name === 'live/config.yaml' ? `${content}${overlay}` : content),
  });
}

test('an unreadable state is not the state of a host without revisions', async () => {
  await mkdir(at('resources'), { recursive: true });
  const { revisions } = await files.readState();
  assert.deepEqual(revisions, []);
  await files.writeState({ current: 3, revisions: [] });
  const file = at('resources', (await readdir(at('resources'))).find((name) => name.endsWith('state.json')) ?? '');
  await rm(file);
  // A read of the first page of this file fails with EIO, as on a damaged disk.
  await symlink('/proc/self/mem', file);
  await assert.rejects(files.readState(), /EIO/);
});

test('does not apply a manifest written by another release', async () => {
  const next = ofRelease('2');
  await writeFile(at('pod.yaml'), 'command: program-2 --new-flag');
  await next.keep(1, '');
  await writeFile(at('pod.yaml'), 'command: program-1');
  await files.apply(1);
  assert.equal(await text('pod.yaml'), 'command: program-1');
});

test('the digest of a revision does not depend on the executable that a manifest names', async () => {
  await writeFile(at('pod.yaml'), 'command: program-1 --verbose');
  const { digest } = await files.keep(1, '');
  await writeFile(at('pod.yaml'), 'command: program-2 --verbose');
  assert.equal((await files.inputs()).digest, digest);
  // The same release with an executable of another name.
  await writeFile(at('pod.yaml'), 'command: program-9 --broken');
  await files.apply(1);
  assert.equal(await text('pod.yaml'), 'command: program-1 --verbose');
});

test('the restart digest covers files that are read at start, but not certificates and unrelated files', async () => {
  const first = await files.inputs();
  assert.deepEqual([...first.files.keys()], ['live/config.yaml', 'live/server.crt', 'pod.yaml']);
  await writeFile(at('live/other'), 'changed');
  assert.deepEqual(await files.inputs(), first);
  await writeFile(at('live/server.crt'), 'renewed');
  const renewed = await files.inputs();
  assert.notEqual(renewed.digest, first.digest);
  assert.equal(renewed.restartDigest, first.restartDigest);
  await writeFile(at('live/config.yaml'), 'a: 2\n');
  assert.notEqual((await files.inputs()).restartDigest, first.restartDigest);
});

test('stores a revision with its settings, applies it, and returns to an older revision', async () => {
  await files.keep(1, '');
  await files.apply(1);
  await writeFile(at('live/config.yaml'), 'a: 2\n');
  await writeFile(at('live/new.yaml'), 'new');
  await writeFile(at('pod.yaml'), 'pod 2');
  await files.keep(2, 'b: 3\n');
  await files.apply(2);
  assert.equal(await text('resources/active/live/config.yaml'), 'a: 2\nb: 3\n');
  assert.equal(await text('resources/active/live/new.yaml'), 'new');
  assert.equal(await text('resources/active/live/named/x.crt'), 'named');
  assert.equal((await stat(at('resources/active/live/config.yaml'))).mode & 0o777, 0o600);
  assert.equal((await stat(at('resources/thing-pod-2'))).mode & 0o777, 0o700);
  // The administrators' files stay unchanged; the manifest is the one that the kubelet runs.
  await files.apply(1);
  assert.equal(await text('resources/active/live/config.yaml'), 'a: 1\n');
  assert.deepEqual((await readdir(at('resources/active/live'))).sort(), [
    'config.yaml',
    'named',
    'other',
    'server.crt',
  ]);
  assert.equal(await text('pod.yaml'), 'pod 1');
  assert.equal(await text('live/config.yaml'), 'a: 2\n');
});

test('stores files without applied settings, so that a rollback restores the original files', async () => {
  await files.keep(1, 'b: 3\n');
  const kept = await keptFiles(at('resources'), 'thing', 1);
  assert.equal(kept?.get('live/config.yaml')?.content.toString(), 'a: 1\n');
  assert.equal(kept?.has('live/theirs.yaml'), false);
  assert.equal(await keptFiles(at('resources'), 'thing', 2), undefined);
});

test('copies changed certificates to the running component at once, and other files only with a revision', async () => {
  await files.keep(1, '');
  await files.apply(1);
  await writeFile(at('live/config.yaml'), 'a: 2\n');
  await writeFile(at('live/server.crt'), 'renewed');
  await writeFile(at('live/other'), 'changed');
  await files.follow();
  assert.equal(await text('resources/active/live/config.yaml'), 'a: 1\n');
  assert.equal(await text('resources/active/live/server.crt'), 'renewed');
  assert.equal(await text('resources/active/live/other'), 'changed');
});

test('does not apply a revision directory without the files of a revision', async () => {
  await files.keep(1, '');
  await files.apply(1);
  await files.remove(1);
  await assert.rejects(files.apply(1), /thing-pod-1: has no files of live/);
  assert.equal(await text('resources/active/live/config.yaml'), 'a: 1\n');
});

test('treats an empty state file as a host without revisions', async () => {
  await files.writeState({ current: 3, revisions: [] });
  assert.equal((await keptState(at('resources'), 'thing')).current, 3);
  await writeFile(at('resources/thing-state.json'), '');
  assert.deepEqual(await files.readState(), { current: 0, revisions: [] });
});

test('ignores directory links that form a loop, sockets and large files', async () => {
  await symlink(at('live'), at('live/loop'));
  await writeFile(at('live/large'), Buffer.alloc(5 * 1024 * 1024));
  const kept = await files.keep(1, '');
  assert.equal(kept.files.size, 3);
  const names = [...((await keptFiles(at('resources'), 'thing', 1)) ?? new Map<string, unknown>()).keys()];
  assert.ok(names.every((name) => !name.endsWith('large')));
  assert.ok(names.length < 60, `${names.length} files`);
});
