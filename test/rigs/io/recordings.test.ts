/** Attacks on the recordings of a rig: names that leave the directory, links, other kinds of files, many entries. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod, link, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, test } from 'node:test';
import { createRigHost } from '../../../src/rigs/io/host.ts';
import type { RigHost } from '../../../src/rigs/rig-host-port.ts';
import { openAfterFailingStat } from '../../support/failing-stat.ts';

const FIRST = '2026-01-01T000000-000Z.log';
const PART = '2026-01-01T000000-000Z-0001.log';
let directory: string;
let host: RigHost;
let nowMs: number;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'recordings-'));
  nowMs = Date.parse('2026-01-01T00:00:00Z');
  host = createRigHost({ directory: join(directory, 'rigs'), commands: new Map(), nowMs: () => nowMs });
  await mkdir(join(directory, 'rigs/bench'), { recursive: true, mode: 0o700 });
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const at = (name: string): string => join(directory, 'rigs/bench', name);
const namesOf = async (rig = 'bench'): Promise<string[]> => (await host.recordings(rig)).map(({ name }) => name);
const missing = { code: 'not-found' };

test('lists recordings with their state, newest first, and sends only the part that was written before the request', async () => {
  const recording = await host.record('bench');
  await recording.write(Buffer.from('hello'));
  const open = await host.openRecording('bench', FIRST);
  await recording.write(Buffer.from(' more'));
  assert.deepEqual([open.bytes, await text(open.content)], [5, 'hello']);
  assert.deepEqual(await host.recordings('bench'), [
    { name: FIRST, start: '2026-01-01T00:00:00.000Z', bytes: 10, isOpen: true },
  ]);
  await recording.close();
  nowMs += 1_000;
  await (await host.record('bench')).close();
  await writeFile(at(PART), '');
  assert.deepEqual(
    (await host.recordings('bench')).map(({ name, isOpen }) => [name, isOpen]),
    [
      ['2026-01-01T000001-000Z.log', false],
      [PART, false],
      [FIRST, false],
    ],
  );
  const empty = await host.openRecording('bench', PART);
  assert.deepEqual([empty.bytes, await text(empty.content)], [0, '']);
});

test('closes the directory handle of a rig if the directory cannot be inspected', async () => {
  const refused = () => assert.rejects(host.recordings('bench'), /EIO/);
  assert.equal(await openAfterFailingStat(join(directory, 'rigs/bench'), refused), 0);
});

test('rejects names of recordings that lead outside of the directory of the rig', async () => {
  await writeFile(join(directory, 'secret'), 'secret');
  await mkdir(join(directory, 'rigs/other'), { mode: 0o700 });
  await writeFile(join(directory, 'rigs/other', FIRST), 'secret');
  const names = [
    `../other/${FIRST}`,
    '../../secret',
    '..',
    '.',
    '',
    `${FIRST}\0`,
    'x.log',
    '/etc/passwd',
    `./${FIRST}`,
  ];
  for (const name of names) await assert.rejects(host.openRecording('bench', name), missing, name);
  for (const rig of ['..', '.', '', '../rigs/other', 'other/', '/etc', 'a\0b', 'Other', 'x'.repeat(5_000)]) {
    await assert.rejects(host.openRecording(rig, FIRST), missing, rig);
    assert.deepEqual(await host.recordings(rig), [], rig);
  }
});

test('does not read recordings through links, or from pipes, directories or devices', async () => {
  await writeFile(join(directory, 'secret'), 'secret');
  await symlink(join(directory, 'secret'), at(FIRST));
  await mkdir(at('2026-01-02T000000-000Z.log'));
  execFileSync('mkfifo', [at('2026-01-03T000000-000Z.log')]);
  assert.deepEqual(await namesOf(), []);
  for (const day of ['01', '02', '03'])
    await assert.rejects(host.openRecording('bench', `2026-01-${day}T000000-000Z.log`), missing);
  await link(join(directory, 'secret'), at(PART));
  assert.deepEqual(await namesOf(), []);
  await assert.rejects(host.openRecording('bench', PART), missing);
  await symlink(join(directory, 'rigs/bench'), join(directory, 'rigs/alias'));
  await writeFile(at('2026-01-04T000000-000Z.log'), 'x');
  assert.deepEqual([await namesOf('alias'), await namesOf()], [[], ['2026-01-04T000000-000Z.log']]);
  await assert.rejects(host.openRecording('alias', '2026-01-04T000000-000Z.log'), missing);
});

test('rejects a recordings directory that other users of the host can open', async () => {
  await writeFile(at(FIRST), 'x');
  await chmod(join(directory, 'rigs/bench'), 0o755);
  await assert.rejects(host.recordings('bench'), /not private; set its mode to 0700/);
  await assert.rejects(host.openRecording('bench', FIRST), /not private/);
});

test('lists at most 100 recordings of a directory with many entries', async () => {
  for (let index = 0; index < 1_500; index += 1)
    await writeFile(at(`2026-01-01T000000-000Z-${String(index).padStart(4, '0')}.log`), '');
  assert.equal((await host.recordings('bench')).length, 100);
});
