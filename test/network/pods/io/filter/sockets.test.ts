import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listensOnPort } from '../../../../../src/network/pods/io/filter/sockets.ts';

const SERVICES = '172.30.0.0/16';
const HEAD = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n';
const line = (local: string, state: string): string =>
  `   0: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 1\n`;
const mapping = (protocol: 'TCP' | 'UDP', hostPort: number, hostIp = '') => ({
  protocol,
  hostPort,
  hostIp,
  containerPort: 80,
});

test('detects a listening socket on a host port for any address or the given one, but not on loopback', () => {
  const judged = (local: string, state: string, hostIp = ''): boolean =>
    listensOnPort(HEAD + line(local, state), mapping('TCP', 22, hostIp), [SERVICES]);
  assert.equal(judged('00000000:0016', '0A'), true);
  assert.equal(judged('00000000:0016', '0A', '10.0.0.5'), true);
  assert.equal(judged('0500000A:0016', '0A'), true);
  assert.equal(judged('0500000A:0016', '0A', '10.0.0.5'), true);
  assert.equal(judged('0500000A:0016', '0A', '10.0.0.6'), false);
  assert.equal(judged('00000000:0016', '01'), false);
  assert.equal(judged('00000000:0116', '0A'), false);
  assert.equal(judged('3500007F:0016', '0A'), false);
  assert.equal(judged('00000000000000000000000000000000:0016', '0A'), true);
  assert.equal(judged('0000000000000000FFFF00000500000A:0016', '0A', '10.0.0.5'), true);
  assert.equal(judged('00000000000000000000000001000000:0016', '0A'), false);
  assert.equal(listensOnPort(HEAD + line('00000000:0035', '07'), mapping('UDP', 53), [SERVICES]), true);
  assert.equal(listensOnPort(HEAD + line('00000000:0035', '0A'), mapping('UDP', 53), [SERVICES]), false);
  // Cluster DNS of the host on 172.30.0.10.
  assert.equal(listensOnPort(HEAD + line('0A001EAC:0035', '07'), mapping('UDP', 53), [SERVICES]), false);
  assert.equal(listensOnPort('', mapping('TCP', 22), [SERVICES]), false);
});
