/**
 * `hyperedge etcd` on a failing disk: a block device whose backing file rejects writes, so that each ends in an I/O
 * error.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, open, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { EtcdClient } from '../../conformance/etcd/client.ts';
import { MAIN } from '../../support/main-program.ts';
import { freePort } from '../../support/ports.ts';

const run = promisify(execFile);
const CLIENTS = 4;

/** Reason why the test cannot run. On ext4, an immutable file rejects writes also through open descriptors. */
async function whyNot(directory: string): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'loop devices need root';
  const path = join(directory, 'probe');
  const file = await open(path, 'w');
  try {
    await run('chattr', ['+i', path]);
    const refused = await file.write('x').then(
      () => false,
      () => true,
    );
    await run('chattr', ['-i', path]);
    return refused ? undefined : `the file system of ${directory} takes writes to immutable files that are open`;
  } catch (error) {
    return (error as Error).message;
  } finally {
    await file.close();
  }
}

/** An ext4 file system on a loop device. */
class Disk {
  readonly mount: string;
  readonly #image: string;

  constructor(directory: string, image: string) {
    this.mount = join(directory, 'mount');
    this.#image = image;
  }

  async make(): Promise<void> {
    await writeFile(this.#image, '');
    await truncate(this.#image, 64 << 20);
    await run('mkfs.ext4', ['-q', '-F', '-E', 'nodiscard', this.#image]);
    await mkdir(this.mount);
    await this.attach();
  }

  async attach(): Promise<void> {
    await run('mount', ['-o', 'loop', this.#image, this.mount]);
  }

  /** Detaches the device: data on it stays, data in memory is lost. */
  async detach(): Promise<void> {
    await run('umount', [this.mount]);
  }

  async fail(): Promise<void> {
    await run('chattr', ['+i', this.#image]);
  }

  async mend(): Promise<void> {
    await run('chattr', ['-i', this.#image]);
  }
}

interface Etcd {
  readonly child: ChildProcess;
  readonly client: EtcdClient;
  readonly stderr: () => string;
}

async function start(data: string): Promise<Etcd> {
  const url = `http://127.0.0.1:${await freePort()}`;
  const peer = `http://127.0.0.1:${await freePort()}`;
  const urls = [`--listen-client-urls=${url}`, `--advertise-client-urls=${url}`, `--listen-peer-urls=${peer}`];
  const of = [`--initial-advertise-peer-urls=${peer}`, `--initial-cluster=one=${peer}`];
  const child = spawn(process.execPath, [MAIN, 'etcd', '--name=one', `--data-dir=${data}`, ...urls, ...of], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  await new Promise<void>((resolve, reject) => {
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      stderr += chunk;
      if (stderr.includes('ready to serve client requests')) resolve();
    });
    child.once('close', (code) => reject(new Error(`ended with ${code}: ${stderr}`)));
  });
  return { child, client: new EtcdClient(url), stderr: () => stderr };
}

describe('a store on a failing disk', () => {
  let directory = '';
  let skip: string | undefined;
  let child: ChildProcess | undefined;
  let disk: Disk | undefined;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'hyperedge-disk-'));
    skip = await whyNot(directory);
  });
  afterEach(async () => {
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'close');
    }
    await disk?.mend().catch(() => {});
    await disk?.detach().catch(() => {});
  });
  after(() => rm(directory, { recursive: true, force: true }));

  it('exits on a disk error, and has all acknowledged data after the disk recovers', async (t) => {
    if (skip !== undefined) {
      t.skip(skip);
      return;
    }
    disk = new Disk(directory, join(directory, 'image'));
    await disk.make();
    const data = join(disk.mount, 'data');
    const first = await start(data);
    ({ child } = first);
    const ended = once(first.child, 'close') as Promise<[number | null]>;
    const acknowledged = new Map<string, string>();
    const enough = Promise.withResolvers<void>();
    const write = async (who: number): Promise<void> => {
      for (let i = 0; ; i += 1) {
        const [key, value] = [`${who}/${i % 50}`, `${i}/${'x'.repeat(100 + ((i * 37) % 3000))}`];
        try {
          await first.client.put({ key, value });
        } catch {
          // The outcome of this request is unknown.
          acknowledged.delete(key);
          return;
        }
        acknowledged.set(key, value);
        if (acknowledged.size >= CLIENTS * 25) enough.resolve();
      }
    };
    const writing = Promise.all(Array.from({ length: CLIENTS }, (_, who) => write(who)));
    await Promise.race([enough.promise, writing]);
    assert.ok(acknowledged.size >= CLIENTS * 25, first.stderr());
    await disk.fail();
    const [code] = await ended;
    await writing;
    first.client.close();
    assert.equal(code, 1, first.stderr());
    assert.doesNotMatch(first.stderr(), /did not stop in time/);
    assert.match(first.stderr(), /EIO|I\/O error|EROFS|read-only/i);
    await disk.detach();
    await disk.mend();
    await disk.attach();
    const again = await start(data);
    ({ child } = again);
    const { kvs = [] } = await again.client.range({ key: '0', range_end: '9' });
    const there = new Map(kvs.map(({ key = '', value }) => [String(key), String(value)]));
    assert.ok(acknowledged.size > 0);
    for (const [key, value] of acknowledged) assert.equal(there.get(key), value, key);
    await again.client.put({ key: 'after', value: 'it goes on' });
    again.client.close();
    again.child.kill('SIGTERM');
    await once(again.child, 'close');
  });
});
