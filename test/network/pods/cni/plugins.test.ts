import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const execute = promisify(execFile);
const scenario = fileURLToPath(new URL('scenario.ts', import.meta.url));
const missing = ['/usr/lib/cni/bridge', '/usr/sbin/iptables'].find((file) => !existsSync(file));
const skip =
  process.getuid?.() !== 0
    ? 'needs root for a network namespace of its own'
    : missing === undefined
      ? false
      : `needs ${missing}: apt-get install containernetworking-plugins iptables`;

test("connects two pods with Debian's plug-ins bridge, host-local and portmap", { skip, timeout: 60_000 }, async () => {
  const { stdout } = await execute('unshare', ['--net', '--mount', process.execPath, scenario]);
  assert.deepEqual(JSON.parse(stdout), {
    ips: [
      ['10.99.0.2', 'fd99::2'],
      ['10.99.0.3', 'fd99::3'],
    ],
    again: ['10.99.0.2', 'fd99::2'],
    answers: ['ok', 'ok', 'ok'],
    hostPort: 'ok',
    checked: 'ok',
    damaged: true,
    noPortmap:
      'host port 8081/TCP: CNI network "lab" has no plug-in with the capability portMappings; add portmap to its list',
    failed: 'CNI plug-in absent is not in /opt/cni/bin, /usr/lib/cni; install the plug-in there',
    early: 'the node has no pod CIDR yet; pods wait for it',
    half: true,
    cleaned: ['a.cni', 'b.cni'],
    retained: ['b.cni'],
    reused: ['10.99.0.5', 'fd99::4'],
    closed: 'ECONNREFUSED',
    left: [],
  });
});
