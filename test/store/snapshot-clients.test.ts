/** Snapshots of several etcd clients at the same time. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { EtcdClient } from '../conformance/etcd/client.ts';
import { remove, startHere, temporaryDirectory } from './harness.ts';

const run = promisify(execFile);
const ETCDCTL = '/usr/bin/etcdctl';

test('several etcdctl clients save snapshots at the same time while the store has at most two copies', {
  skip: existsSync(ETCDCTL) ? false : 'etcdctl is not installed',
  timeout: 60_000,
}, async () => {
  const data = await temporaryDirectory();
  const saved = await temporaryDirectory();
  const { server, endpoint } = await startHere(data, undefined);
  const client = new EtcdClient(endpoint);
  await client.put({ key: 'a', value: 'b'.repeat(1_000_000) });
  let most = 0;
  let isDone = false;
  const watching = (async () => {
    while (!isDone) {
      const names = await readdir(data, { recursive: true });
      most = Math.max(most, names.filter((name) => name.endsWith('.tmp')).length);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  })();
  const save = (file: string): Promise<unknown> =>
    run(ETCDCTL, [`--endpoints=${endpoint}`, 'snapshot', 'save', file], { env: { ETCDCTL_API: '3' } });
  const files = Array.from({ length: 8 }, (_, index) => join(saved, `${index}.db`));
  await Promise.all(files.map(save));
  isDone = true;
  await watching;
  for (const file of files) assert.ok((await stat(file)).size > 1_000_000, file);
  assert.ok(most <= 2, `${most} copies`);
  client.close();
  await server.stop();
  await remove(data);
  await remove(saved);
});
