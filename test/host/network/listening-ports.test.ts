import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { listeningPorts } from '../../../src/host/network/listening-ports.ts';

const row = (local: string, state: string, inode: number): string =>
  `   0: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 ${inode} 1 0 100`;
const HEAD = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode';

test('lists servers on all addresses and on single addresses; ignores loopback, clients and this process', async () => {
  const proc = await mkdtemp(join(tmpdir(), 'he-proc-'));
  try {
    await mkdir(join(proc, 'self/net'), { recursive: true });
    await mkdir(join(proc, 'self/fd'));
    await symlink('socket:[77]', join(proc, 'self/fd/3'));
    const table = (name: string, rows: string[]) =>
      writeFile(join(proc, 'self/net', name), [HEAD, ...rows, ''].join('\n'));
    await table('tcp', [
      row('00000000:0016', '0A', 1), // 0.0.0.0:22
      row('0500000A:1F90', '0A', 2), // 10.0.0.5:8080
      row('0100007F:0019', '0A', 3), // 127.0.0.1:25
      row('0500000A:0050', '01', 4), // a connection
      row('00000000:01BB', '0A', 77), // own process
    ]);
    await table('udp', [row('00000000:12B5', '07', 5), row('00000000:C350', '07', 6)]); // 4789, an ephemeral port
    await table('udp6', [row('00000000000000000000000001000000:0035', '07', 7)]); // [::1]:53
    const ports = listeningPorts(silentLog, proc);
    const expected = [
      { protocol: 'TCP', port: 22 },
      { protocol: 'TCP', port: 8080, address: '10.0.0.5' },
      { protocol: 'UDP', port: 4789 },
    ];
    assert.deepEqual(await ports.read(), expected);
    await rm(join(proc, 'self/net/tcp'));
    assert.deepEqual(await ports.read(), expected, 'unreadable: the last ones stay reserved');
  } finally {
    await rm(proc, { recursive: true });
  }
});

test('ignores a server of this process on a real kernel', async () => {
  const server = createServer().listen(0, '0.0.0.0');
  try {
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { readonly port: number };
    const found = await listeningPorts(silentLog).read();
    assert.equal(
      found.some((each) => each.port === port && each.protocol === 'TCP'),
      false,
    );
  } finally {
    server.close();
  }
});
