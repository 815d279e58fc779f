/** Archives of a hostile container write nothing outside of the target of `cp`. */
import assert from 'node:assert/strict';
import { lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { type Header, pack } from 'tar-stream';
import { unpack } from '../../../src/host/kubectl/unpack.ts';

let root: string;

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'he-unpack-'));
});

after(() => rm(root, { recursive: true, force: true }));

async function* archive(
  entries: readonly (Partial<Header> & { readonly name: string; readonly text?: string })[],
): AsyncGenerator<Uint8Array> {
  const packed = pack();
  for (const { text, ...header } of entries) packed.entry(header as Header, text ?? '');
  packed.finalize();
  for await (const chunk of packed) yield chunk as Uint8Array;
}

let count = 0;
async function run(
  entries: Parameters<typeof archive>[0],
  member = 'wanted',
): Promise<{ readonly target: string; readonly skipped: string[] }> {
  count += 1;
  const target = join(root, `case-${count}`, 'target');
  await mkdir(join(root, `case-${count}`));
  const skipped: string[] = [];
  await unpack(archive(entries), {
    member,
    target,
    keepMode: true,
    onSkip: (type, name) => skipped.push(`${type} ${name}`),
  });
  return { target, skipped };
}

test('writes files and directories below the requested name', async () => {
  const { target } = await run([
    { name: 'wanted/', type: 'directory' },
    { name: 'wanted/inner/script', text: 'echo', mode: 0o4755 },
    { name: './wanted/plain', text: 'text' },
  ]);
  assert.equal(await readFile(join(target, 'inner/script'), 'utf8'), 'echo');
  assert.equal(await readFile(join(target, 'plain'), 'utf8'), 'text');
  // A set-uid bit in the archive is not applied to a file of the user.
  assert.equal((await stat(join(target, 'inner/script'))).mode & 0o7000, 0);
});

test('accepts a target with a trailing slash, and links that stay inside of the target', async () => {
  const target = join(root, 'case-slash');
  await mkdir(join(target, 'real'), { recursive: true });
  await symlink('real', join(target, 'link'));
  const options = { member: 'wanted', target: `${target}/./`, keepMode: false, onSkip: () => {} };
  await unpack(archive([{ name: 'wanted/link/new/x', text: 'x' }]), options);
  assert.equal(await readFile(join(target, 'real/new/x'), 'utf8'), 'x');
});

test('writes a single file to the target itself', async () => {
  const { target } = await run([{ name: 'wanted', text: 'content' }]);
  assert.equal(await readFile(target, 'utf8'), 'content');
});

test('refuses entries outside of the requested name', async () => {
  for (const name of [
    'other',
    '../wanted',
    'wanted/../../x',
    '/wanted',
    '/etc/passwd',
    'wanted2/file',
    'wanted/a/../../../b',
  ])
    await assert.rejects(run([{ name, text: 'x' }]), /sent a file outside of the requested one/, name);
  assert.deepEqual(
    (await readdir(root)).filter((name) => !name.startsWith('case-')),
    [],
  );
});

test('creates no links and no special files', async () => {
  const { target, skipped } = await run([
    { name: 'wanted/', type: 'directory' },
    { name: 'wanted/link', type: 'symlink', linkname: '/etc' },
    { name: 'wanted/hard', type: 'link', linkname: '/etc/passwd' },
    { name: 'wanted/fifo', type: 'fifo' },
    { name: 'wanted/link/file', text: 'below the name of the link' },
  ]);
  assert.deepEqual(skipped, ['symlink wanted/link', 'link wanted/hard', 'fifo wanted/fifo']);
  assert.equal((await lstat(join(target, 'link'))).isDirectory(), true);
});

test('follows no link of the local directory out of the target', async () => {
  const outside = join(root, 'outside');
  const target = join(root, 'linked');
  await mkdir(outside);
  await mkdir(target);
  await symlink(outside, join(target, 'away'));
  await symlink(join(outside, 'file'), join(target, 'file'));
  const options = { member: 'wanted', target, keepMode: false, onSkip: () => {} };
  await assert.rejects(unpack(archive([{ name: 'wanted/away/x', text: 'x' }]), options), /leads out of/);
  for (const name of ['wanted/away/new/x', 'wanted/away/new/deeper/x'])
    await assert.rejects(unpack(archive([{ name, text: 'x' }]), options), /leads out of/);
  const directory = archive([{ name: 'wanted/away/new/', type: 'directory' }]);
  await assert.rejects(unpack(directory, options), /leads out of/);
  await assert.rejects(unpack(archive([{ name: 'wanted/file', text: 'x' }]), options), /ELOOP|symbolic/);
  assert.deepEqual(await readdir(outside), []);
});

test('reports an archive that is damaged or ends early', async () => {
  const options = { member: 'wanted', target: join(root, 'damaged'), keepMode: false, onSkip: () => {} };
  const damaged = (async function* () {
    yield Buffer.alloc(1024, 0x41);
  })();
  await assert.rejects(unpack(damaged, options), /damaged: Invalid tar header/);
  const whole = await buffer(archive([{ name: 'wanted', text: 'y'.repeat(5_000) }]));
  const early = (async function* () {
    yield whole.subarray(0, 2_000);
  })();
  await assert.rejects(unpack(early, options), /Unexpected end of data/);
});
