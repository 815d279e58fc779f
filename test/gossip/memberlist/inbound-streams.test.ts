import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { InboundStreams } from '../../../src/gossip/memberlist/inbound.ts';

function simulate(streams: number, bytes: number) {
  const evicted: string[] = [];
  const names = new Map<Socket, string>();
  const inbound = new InboundStreams({ streams, bytes }, (socket) => evicted.push(names.get(socket) ?? ''));
  const open = (name: string): Socket => {
    const socket = { remoteAddress: name.split('/')[0] } as Socket;
    names.set(socket, name);
    inbound.add(socket);
    return socket;
  };
  return { inbound, evicted, open };
}

test('a new stream evicts a silent stream of the same address, but no stream of another address', () => {
  const { evicted, open } = simulate(4, 100);
  for (const name of ['10.0.0.2/a', '10.0.0.1/a', '10.0.0.1/b', '10.0.0.1/c', '10.0.0.1/d', '10.0.0.3/a']) open(name);
  assert.deepEqual(evicted, ['10.0.0.1/a', '10.0.0.1/b']);
});

test('limits the bytes of all streams, and evicts a stream of the address that has sent most', () => {
  const { inbound, evicted, open } = simulate(10, 100);
  const honest = open('10.0.0.2/a');
  inbound.received(honest, 30);
  const flood = ['10.0.0.1/a', '10.0.0.1/b'].map(open);
  for (const socket of flood) inbound.received(socket, 30);
  assert.deepEqual(evicted, []);
  inbound.received(honest, 20);
  assert.deepEqual(evicted, ['10.0.0.1/a']);
  inbound.remove(flood[0] as Socket);
  inbound.remove(honest);
  inbound.received(open('10.0.0.3/a'), 60);
  assert.deepEqual(evicted, ['10.0.0.1/a']);
});
