/** File watches in a process whose inotify limits are exhausted. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createLog } from '../../../../src/base/log.ts';
import { raiseWatchLimits } from '../../../../src/kubelet/io/host-facts/index.ts';

const run = promisify(execFile);
const child = fileURLToPath(new URL('./watch.child.ts', import.meta.url));

/** Limits in a separate user namespace do not affect other processes of the machine. */
const inNamespace = (limit: string, directory: string): Promise<{ stdout: string }> =>
  run('unshare', [
    ...['--user', '--map-root-user', 'sh', '-c', `echo 0 >/proc/sys/user/${limit} && exec "$@"`, 'sh'],
    ...[process.execPath, child, directory],
  ]);

describe('watch of a directory', () => {
  for (const limit of ['max_inotify_instances', 'max_inotify_watches'])
    it(`polls when ${limit} is exhausted`, async () => {
      const directory = await mkdtemp(join(tmpdir(), 'watch-'));
      try {
        const { stdout } = await inNamespace(limit, directory);
        const seen = JSON.parse(stdout) as { inotify: string; names: string[]; file: number; exits: string[] };
        assert.match(seen.inotify, /EMFILE|ENOSPC/);
        assert.deepEqual(seen.names, ['created', 'created', 'created']);
        assert.ok(seen.file > 0, 'a watched file');
        assert.deepEqual(seen.exits, ['first', 'second', 'third']);
      } finally {
        await rm(directory, { recursive: true, force: true });
      }
    });
});

it('raises low limits of inotify and keeps higher limits', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'watch-limits-'));
  const lines: string[] = [];
  const log = createLog({ component: 'l', level: 2, sink: { write: (line) => lines.push(line) }, nowMs: Date.now });
  const value = (name: string): Promise<string> => readFile(join(directory, name), 'utf8');
  try {
    await writeFile(join(directory, 'max_user_instances'), '128\n');
    await writeFile(join(directory, 'max_user_watches'), '1000000\n');
    await raiseWatchLimits(log, directory);
    assert.equal(await value('max_user_instances'), '8192');
    assert.equal(await value('max_user_watches'), '1000000\n');
    assert.deepEqual(lines, []);
    await raiseWatchLimits(log, join(directory, 'absent'));
    assert.match(lines.join('\n'), /limit of inotify not raised .*fs\.inotify\.max_user_instances/);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
