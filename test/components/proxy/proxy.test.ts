import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const execute = promisify(execFile);
const scenario = fileURLToPath(new URL('scenario.ts', import.meta.url));
const root = process.getuid?.() === 0 ? false : 'needs root for a network namespace of its own';

for (const mode of ['nftables', 'userspace']) {
  test(`services are forwarded by ${mode}`, { skip: root, timeout: 60_000 }, async () => {
    // A namespace that ends with its only process: nothing to clean up, whatever happens.
    const { stdout } = await execute('unshare', ['--net', process.execPath, scenario, mode]);
    assert.deepEqual(JSON.parse(stdout), {
      stale: '10.128.0.3',
      beforeTheApi: 'host',
      own: ['host', 'host', 'host'],
      beside: '10.128.0.2',
      ownOfClusterIp: '10.128.0.2',
      cluster: ['10.128.0.2', '10.128.0.3'],
      nodePort: ['10.128.0.2', '10.128.0.3'],
      udp: ['10.128.0.2 q', '10.128.0.3 q'],
      sticky: 1,
      empty: mode === 'nftables' ? 'ECONNREFUSED' : 'ECONNRESET',
      afterChange: ['10.128.0.3'],
      emptyFilled: '10.128.0.2',
      tables: '',
      left: '',
    });
  });
}
