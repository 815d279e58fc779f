import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Network, parseNetwork } from '../../../../src/base/addresses/networks.ts';
import { AddressBook } from '../../../../src/network/pods/io/bridge/addresses.ts';

const execute = promisify(execFile);
const scenario = fileURLToPath(new URL('scenario.ts', import.meta.url));
const root = process.getuid?.() === 0 ? false : 'needs root for a network namespace of its own';

function range(text: string): Network {
  const network = parseNetwork(text);
  assert.ok(network, text);
  return network;
}

test('assigns addresses next-fit, never the network, gateway or broadcast address', () => {
  const book = new AddressBook();
  const got: (string | undefined)[] = [];
  for (let index = 0; index < 6; index++) got.push(book.take(range('10.1.2.9/29'), `pod-${index}`));
  assert.deepEqual(got, ['10.1.2.10', '10.1.2.11', '10.1.2.12', '10.1.2.13', '10.1.2.14', undefined]);
  book.release('10.1.2.11');
  assert.equal(book.take(range('10.1.2.8/29'), 'pod'), '10.1.2.11');
  const released = new AddressBook();
  assert.equal(released.take(range('10.1.2.8/29'), 'pod'), '10.1.2.10');
  released.release('10.1.2.10');
  assert.equal(released.take(range('10.1.2.8/29'), 'pod'), '10.1.2.11');
});

test('assigns its former address to a replaced sandbox, and to another pod only if no other address is free', () => {
  const book = new AddressBook();
  const pods = range('10.1.2.8/29');
  assert.deepEqual([book.take(pods, 'a'), book.take(pods, 'b')], ['10.1.2.10', '10.1.2.11']);
  book.release('10.1.2.10', 'a');
  book.release('10.1.2.11', 'b');
  const others = ['c', 'd', 'e'].map((owner) => book.take(pods, owner));
  assert.deepEqual(others, ['10.1.2.12', '10.1.2.13', '10.1.2.14']);
  assert.equal(book.take(pods, 'b'), '10.1.2.11');
  assert.equal(book.take(pods, 'f'), '10.1.2.10');
  assert.equal(book.take(pods, 'a'), undefined);
  // A former address of another range is not assigned.
  book.release('10.1.2.11', 'b');
  assert.equal(book.take(range('10.9.0.0/24'), 'b'), '10.9.0.2');
});

test('assigns pod IPv6 addresses after that of the gateway, independently of IPv4', () => {
  const book = new AddressBook();
  book.hold('fd01:0:0:2::2');
  assert.equal(book.take(range('fd01:0:0:2::/64'), 'pod'), 'fd01:0:0:2::3');
  assert.equal(book.take(range('10.128.2.0/23'), 'pod'), '10.128.2.2');
  assert.equal(book.take(range('fd01:0:0:2::/64'), 'pod'), 'fd01:0:0:2::4');
});

test('pods on a bridge connect to each other, to the host and through host ports, also after a restart', {
  skip: root,
  timeout: 60_000,
}, async () => {
  const { stdout } = await execute('unshare', ['--net', process.execPath, scenario]);
  assert.deepEqual(JSON.parse(stdout), {
    early: 'the node has no pod CIDR yet; pods wait for it',
    ips: ['10.128.2.2', '10.128.2.3'],
    again: true,
    taken: 'host port 8080/TCP is in use by another pod',
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
    unreadable: ['pod network record unreadable; its addresses stay reserved and its host ports are closed', '3'],
    reservedForUnreadable: [2, 3, 0],
    keptRecords: [true, false],
    removedRecord: true,
    left: [false, '', false],
  });
});

test('UDP clients that never stop sending reach a replacement pod and a service created later', {
  skip: root,
  timeout: 60_000,
}, async () => {
  const flows = fileURLToPath(new URL('udp-flows.scenario.ts', import.meta.url));
  const { stdout } = await execute('unshare', ['--net', process.execPath, flows]);
  assert.deepEqual(JSON.parse(stdout), {
    before: 'none none none',
    'first pod': 'one one',
    'second pod': 'two two',
    'after a restart': 'two two',
    'third pod': 'three three',
    service: 'three',
  });
});
