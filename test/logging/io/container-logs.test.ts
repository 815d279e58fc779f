import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFile, mkdir, mkdtemp, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { ContainerLogs, type ContainerLogsOptions } from '../../../src/logging/io/container-logs.ts';
import { openSpool } from '../../../src/logging/io/spool.ts';
import type { LogRecord } from '../../../src/logging/port.ts';

const line = (text: string): string => `2026-01-02T03:04:05.123456789Z stdout F ${text}\n`;

describe('container logs', () => {
  let root = '';
  let directory = '';
  let nowMs = 0;
  const warnings: unknown[] = [];
  const opened: ContainerLogs[] = [];
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'logs-'));
    directory = join(root, 'pods');
    await mkdir(directory);
    nowMs = 0;
    warnings.length = 0;
  });
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close();
    await rm(root, { recursive: true });
  });

  const log = { ...silentLog, warn: (message: string, fields?: object) => void warnings.push({ message, ...fields }) };
  function open(more: Partial<ContainerLogsOptions> = {}): ContainerLogs {
    const logs = new ContainerLogs({
      directory,
      bytesPerSecond: 1_000_000,
      offsets: {},
      sinceMs: 0,
      nowMs: () => 0,
      monotonicMs: () => nowMs,
      log,
      ...more,
    });
    opened.push(logs);
    return logs;
  }
  /** Records of one poll, ten seconds later. */
  async function poll(logs: ContainerLogs, seconds = 10): Promise<LogRecord[]> {
    nowMs += seconds * 1000;
    const found: LogRecord[] = [];
    await logs.poll(
      async (records) => void found.push(...records),
      () => true,
    );
    return found;
  }
  const texts = async (logs: ContainerLogs, seconds?: number): Promise<string[]> =>
    (await poll(logs, seconds)).map(({ text }) => text);
  async function container(pod: string, name = 'app'): Promise<string> {
    const path = join(directory, `shop_${pod}_uid-${pod}`, name);
    await mkdir(path, { recursive: true });
    return path;
  }

  it('reads container logs as they grow, with the names of the pod and the container', async () => {
    const path = await container('web');
    await writeFile(join(path, '0.log'), line('one'));
    const logs = open();
    const [record] = await poll(logs);
    assert.deepEqual(
      [record?.text, record?.namespace, record?.pod, record?.uid, record?.container],
      ['one', 'shop', 'web', 'uid-web', 'app'],
    );
    await appendFile(join(path, '0.log'), line('two') + line('three'));
    assert.deepEqual(await texts(logs), ['two', 'three']);
    assert.deepEqual(await texts(logs), []);
  });

  it('reads container logs once and in order across rotations and container restarts', async () => {
    const path = await container('web');
    await writeFile(join(path, '0.log'), line('1'));
    const logs = open();
    assert.deepEqual(await texts(logs), ['1']);
    await appendFile(join(path, '0.log'), line('2'));
    await rename(join(path, '0.log'), join(path, '0.log.20260102030405000'));
    await appendFile(join(path, '0.log.20260102030405000'), line('3'));
    await writeFile(join(path, '0.log'), line('4'));
    await writeFile(join(path, '1.log'), line('5'));
    assert.deepEqual(await texts(logs), ['2', '3', '4', '5']);
    await appendFile(join(path, '1.log'), line('6'));
    assert.deepEqual(await texts(logs), ['6']);
  });

  it('reads the container logs of a deleted pod to their end', async () => {
    const path = await container('web');
    await writeFile(join(path, '0.log'), line('1'));
    const logs = open();
    await poll(logs);
    await appendFile(join(path, '0.log'), line('last'));
    await rm(join(directory, 'shop_web_uid-web'), { recursive: true });
    assert.deepEqual(await texts(logs), ['last']);
    assert.deepEqual(await texts(logs), []);
  });

  it('reads a container log from its beginning after it was truncated', async () => {
    const path = await container('web');
    await writeFile(join(path, '0.log'), line('1') + line('2'));
    const logs = open();
    await poll(logs);
    await truncate(join(path, '0.log'));
    await appendFile(join(path, '0.log'), line('3'));
    assert.deepEqual(await texts(logs), ['3']);
  });

  it('a container with many logs does not delay the logs of other containers', async () => {
    const noisy = await container('a-noisy');
    const quiet = await container('quiet');
    await writeFile(join(noisy, '0.log'), line('x'.repeat(900)).repeat(5000));
    const logs = open({ bytesPerSecond: 10_000 });
    await poll(logs);
    await writeFile(join(quiet, '0.log'), line('quiet'));
    const records = await poll(logs, 5);
    assert.ok(records.some(({ text }) => text === 'quiet'));
    const bytes = records.filter(({ pod }) => pod === 'a-noisy').length * line('x'.repeat(900)).length;
    assert.ok(bytes <= 5 * 10_000 + 64 * 1024, `${bytes} bytes of the noisy container in five seconds`);
  });

  it('does not read container logs through symbolic links or from files that are not regular', async () => {
    const secret = join(root, 'secret');
    await writeFile(secret, line('secret'));
    const path = await container('web');
    await symlink(secret, join(path, '0.log'));
    execFileSync('mkfifo', [join(path, '1.log')]);
    const elsewhere = join(root, 'elsewhere');
    await mkdir(elsewhere);
    await writeFile(join(elsewhere, '0.log'), line('secret'));
    await symlink(elsewhere, join(directory, 'shop_web_uid-web', 'linked'));
    const logs = open();
    assert.deepEqual(await texts(logs), []);
    assert.deepEqual(await texts(logs), []);
    assert.equal(warnings.length, 3, JSON.stringify(warnings));
  });

  it('starts at the end of container logs that are older than the boot', async () => {
    const path = await container('web');
    await writeFile(join(path, '0.log'), line('old'));
    const logs = open({ sinceMs: Date.now() + 60_000 });
    assert.deepEqual(await texts(logs), []);
    await appendFile(join(path, '0.log'), line('new'));
    assert.deepEqual(await texts(logs), ['new']);
  });

  it('container logs are neither repeated nor lost when the host process restarts', async () => {
    const path = await container('web');
    await writeFile(join(path, '0.log'), line('1') + line('2'));
    const spoolDirectory = join(root, 'spool');
    const read = async (): Promise<void> => {
      const spool = await openSpool(spoolDirectory, 1_000_000);
      const logs = open({ offsets: spool.offsets });
      nowMs += 10_000;
      await logs.poll(
        async (records, offsets) => void (await spool.append(records, offsets)),
        () => true,
      );
      await logs.close();
    };
    await read();
    await appendFile(join(path, '0.log'), line('3'));
    await read();
    await read();
    const spool = await openSpool(spoolDirectory, 1_000_000);
    const found: string[] = [];
    for (let next = await spool.oldest(); next !== undefined; next = await spool.oldest()) {
      found.push(...next.records.map(({ text }) => text));
      await spool.remove(next.batch);
    }
    assert.deepEqual(found, ['1', '2', '3']);
  });
});

describe('buffer of log records', () => {
  let directory = '';
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'spool-'));
  });
  afterEach(() => rm(directory, { recursive: true }));
  const record = (text: string): LogRecord => ({
    time: '2026-01-02T03:04:05Z',
    text,
    severity: 'info',
    stream: 'stdout',
    namespace: '',
    pod: '',
    uid: '',
    container: '',
    component: '',
  });

  it('a full log buffer drops the oldest batches, except the batch that is being sent', async () => {
    const spool = await openSpool(directory, 40_960);
    await spool.append([record('first')], {});
    const sending = await spool.oldest();
    assert.equal(sending?.records[0]?.text, 'first');
    let dropped = 0;
    for (let index = 0; index < 20; index += 1) dropped += await spool.append([record('x'.repeat(1000))], {});
    assert.ok(spool.bytes <= 40_960, String(spool.bytes));
    assert.ok(dropped >= 10, String(dropped));
    assert.equal((await spool.oldest())?.records[0]?.text, 'first');
  });

  it('the log buffer skips batches whose files were deleted or damaged', async () => {
    const spool = await openSpool(directory, 40_960);
    await spool.append([record('damaged')], {});
    await spool.append([record('intact')], {});
    await writeFile(join(directory, '000000000001-1.json'), '{"records":');
    assert.equal((await spool.oldest())?.records[0]?.text, 'intact');
  });

  it('keeps the read positions of sent batches across a restart, and forgets the positions of deleted log files', async () => {
    const spool = await openSpool(directory, 40_960);
    await spool.append([record('a')], { one: 5, two: 6 });
    const next = await spool.oldest();
    if (next !== undefined) await spool.remove(next.batch);
    assert.deepEqual((await openSpool(directory, 40_960)).offsets, { one: 5, two: 6 });
    await spool.retainOffsets((file) => file === 'one');
    assert.deepEqual((await openSpool(directory, 40_960)).offsets, { one: 5 });
  });
});
