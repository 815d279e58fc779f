import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLog } from '../../../../../src/base/log.ts';
import { isLoss, watchAddresses } from '../../../../../src/network/pods/io/bridge/address-watch.ts';
import { eventually } from '../../../../e2e/harness.ts';

/** A fake `ip monitor`: prints its pid as a line about an address, and keeps running. */
async function monitor(directory: string): Promise<string> {
  const path = join(directory, 'ip');
  await writeFile(path, `#!/bin/sh\necho $$ >${directory}/pid\necho "2: eth0 inet 192.0.2.1/24"\nexec sleep 60\n`);
  await chmod(path, 0o755);
  return path;
}

const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

test('the address monitor ends when its parent process is killed', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'he-monitor-'));
  const ip = await monitor(directory);
  const module = join(import.meta.dirname, '../../../../../src/network/pods/io/bridge/address-watch.ts');
  const script = `const { watchAddresses } = await import(${JSON.stringify(module)});
    watchAddresses({ ip: ${JSON.stringify(ip)}, protocol: 178, log: {}, changed: () => console.log('changed') });`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    await once(child.stdout, 'data');
    const pid = Number(await readFile(join(directory, 'pid'), 'utf8'));
    assert.ok(alive(pid));
    child.kill('SIGKILL');
    await eventually('the monitor to end', 5_000, async () => (alive(pid) ? undefined : true));
  } finally {
    child.kill('SIGKILL');
    await rm(directory, { recursive: true });
  }
});

test('the address monitor runs on hosts without setpriv', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'he-monitor-'));
  const changed = Promise.withResolvers<void>();
  const stop = watchAddresses({
    ip: await monitor(directory),
    setpriv: join(directory, 'absent'),
    protocol: 178,
    log: silentLog,
    changed: changed.resolve,
  });
  try {
    await changed.promise;
  } finally {
    stop();
    await rm(directory, { recursive: true });
  }
});

test('the address monitor treats a deleted route and a link that is down as a loss of connectivity', () => {
  assert.equal(isLoss('Deleted 10.1.0.0/16 dev eth0 proto kernel'), true);
  assert.equal(isLoss('2: d0: <BROADCAST,MULTICAST> mtu 1500 qdisc noqueue state DOWN group default'), true);
  assert.equal(isLoss('2: d0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP'), false);
  assert.equal(isLoss('2: eth0    inet 192.0.2.1/24 scope global eth0'), false);
});
