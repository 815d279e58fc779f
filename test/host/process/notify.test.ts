import assert from 'node:assert/strict';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { silentLog } from '../../../src/base/log.ts';
import { keepWatchdog } from '../../../src/host/process/notify.ts';

let directory = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'notify-'));
  const program = join(directory, 'systemd-notify');
  await writeFile(program, `#!/bin/sh\necho "$NOTIFY_SOCKET $*" >> ${directory}/calls\n`);
  await chmod(program, 0o755);
});
after(() => rm(directory, { recursive: true }));

const calls = async (): Promise<string[]> =>
  (await readFile(join(directory, 'calls'), 'utf8').catch(() => '')).split('\n').filter((line) => line !== '');
const environment = () => ({ PATH: `${directory}:/bin`, NOTIFY_SOCKET: '/run/n', WATCHDOG_USEC: '300000' });

test('notifies the watchdog at a third of the watchdog interval until stopped', async () => {
  const watchdog = keepWatchdog({ ...environment(), WATCHDOG_PID: String(process.pid) }, silentLog);
  // The timer alone does not keep a process running.
  while ((await calls()).length < 3) await sleep(20);
  watchdog.stop();
  await sleep(200);
  const count = (await calls()).length;
  assert.deepEqual([...new Set(await calls())], ['/run/n WATCHDOG=1']);
  await sleep(300);
  assert.equal((await calls()).length, count);
});

test('does not notify the watchdog while file operations do not finish', async () => {
  await rm(join(directory, 'calls'));
  const blocked = Promise.withResolvers<void>();
  const watchdog = keepWatchdog(environment(), silentLog, () => blocked.promise);
  await sleep(500);
  assert.deepEqual(await calls(), []);
  blocked.resolve();
  while ((await calls()).length < 2) await sleep(20);
  watchdog.stop();
});

test('does not notify systemd without a watchdog, or for the watchdog of another process', async () => {
  await rm(join(directory, 'calls'));
  keepWatchdog({ ...environment(), WATCHDOG_PID: '1' }, silentLog);
  keepWatchdog({ ...environment(), WATCHDOG_USEC: undefined }, silentLog);
  keepWatchdog({ ...environment(), NOTIFY_SOCKET: undefined }, silentLog);
  await sleep(200);
  assert.deepEqual(await calls(), []);
});
