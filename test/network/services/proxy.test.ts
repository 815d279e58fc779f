import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const execute = promisify(execFile);
const scenario = fileURLToPath(new URL('scenario.ts', import.meta.url));
const root = process.getuid?.() === 0 ? false : 'needs root for a network namespace of its own';

for (const mode of ['nftables', 'userspace']) {
  test(`forwards connections to service endpoints in mode ${mode}`, { skip: root, timeout: 60_000 }, async () => {
    const isNft = mode === 'nftables';
    const both = ['fd00:128::2', 'fd00:128::3'];
    const six = { cluster: both, nodePort: both, udp: both.map((each) => `${each} q`), sticky: 1 };
    // The namespace ends with its only process, so no clean-up is required.
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
      balanced: [
        '10.128.0.3',
        '200 1 {"service":{"namespace":"ns","name":"balanced"},"localEndpoints":1,"serviceProxyHealthy":true}',
      ],
      unbalanced:
        '503 0 {"service":{"namespace":"ns","name":"balanced"},"localEndpoints":0,"serviceProxyHealthy":true}',
      flows: ['10.128.0.2 q', '10.128.0.2 q', ...(isNft ? ['fd00:128::2 q'] : [])],
      flowsMoved: isNft ? ['10.128.0.3 q', '10.128.0.3 q', 'fd00:128::3 q'] : [],
      ...(isNft
        ? { six, itself: 'from 10.128.0.51', besideIdled: 'host', needed: ['idle', 'idle6', 'node-port', 'outside'] }
        : {}),
      // Clients keep their endpoints across a restart of the proxy.
      ...(isNft ? { restarted: { endpoints: 4, moved: [] } } : {}),
      // The host itself can connect to a node port although its policy is Local and the endpoint is on another node.
      ...(isNft ? { farNodePort: '10.128.0.3' } : {}),
      ...(isNft ? { woken: ['10.128.0.2', 'fd00:128::2', '10.128.0.3', '10.128.0.3'] } : {}),
      empty: mode === 'nftables' ? 'ECONNREFUSED' : 'ECONNRESET',
      afterChange: ['10.128.0.3'],
      emptyFilled: '10.128.0.2',
      tables: '',
      left: '',
    });
  });
}
