import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { nextFree, parseRange, toText } from '../../../src/io/links/addresses.ts';

const execute = promisify(execFile);
const scenario = fileURLToPath(new URL('scenario.ts', import.meta.url));
const root = process.getuid?.() === 0 ? false : 'needs root for a network namespace of its own';

test('addresses are handed out next-fit, never the network, gateway or broadcast address', () => {
  const range = parseRange('10.1.2.9/29');
  assert.equal(toText(range.base), '10.1.2.8');
  const taken = new Set<number>();
  const got: string[] = [];
  let last = 0;
  for (;;) {
    const address = nextFree(range, last, (each) => taken.has(each));
    if (address === undefined) break;
    taken.add(address);
    last = address;
    got.push(toText(address));
  }
  assert.deepEqual(got, ['10.1.2.10', '10.1.2.11', '10.1.2.12', '10.1.2.13', '10.1.2.14']);
  taken.delete(range.base + 3);
  assert.equal(
    nextFree(range, last, (each) => taken.has(each)),
    range.base + 3,
  );
  for (const bad of ['10.1.2.3', '10.1.2.3/33', '10.1.2/24', '300.1.1.1/24', '::1/64', '10.1.2.3/2 4'])
    assert.throws(() => parseRange(bad), /not an IPv4/, bad);
});

test('pods on a bridge reach each other, the host and host ports; restarts and clean-up', {
  skip: root,
  timeout: 60_000,
}, async () => {
  const { stdout } = await execute('unshare', ['--net', process.execPath, scenario]);
  assert.deepEqual(JSON.parse(stdout), {
    early: 'the node has no pod CIDR yet; pods wait for it',
    ips: ['10.128.2.2', '10.128.2.3'],
    again: true,
    taken: 'host port 8080/TCP is taken by another pod',
    reserved: [
      'host port 9443/TCP is a port of this host itself',
      'host port 9443/TCP is a port of this host itself',
      'host port 7946/UDP is a port of this host itself',
    ],
    guarded: true,
    inUse: 'host port 8022/TCP is in use by a process of this host',
    rebuilt: [],
    serviceAddress: 'ECONNREFUSED',
    pings: [true, true, true],
    peer: true,
    hostPort: true,
    hostPortOnLoopback: '10.128.2.1',
    loopbackFromPod: 'timeout',
    hostPortFromPod: '10.128.2.1',
    hostPortFromItself: '10.128.2.1',
    remembered: true,
    kept: true,
    released: false,
    next: true,
    full: 3,
    left: [false, '', false],
  });
});
