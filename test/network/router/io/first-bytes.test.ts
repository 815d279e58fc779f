/** ClientHello and PROXY headers: complete, partial and broken. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { connect } from 'node:tls';
import { readHello } from '../../../../src/network/router/io/client-hello.ts';
import { readProxyHeader } from '../../../../src/network/router/io/proxy-header.ts';

async function helloOf(servername: string): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const options = servername === '' ? {} : { servername };
  const client = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options }).on('error', () => {});
  const [socket] = await once(server, 'connection');
  const [bytes] = await once(socket, 'data');
  client.destroy();
  socket.destroy();
  server.close();
  return bytes;
}

test('parses the server name of a ClientHello, and waits for more bytes while it is incomplete', async () => {
  const bytes = await helloOf('Shop.Test');
  for (let length = 0; length < bytes.length; length++)
    assert.equal(readHello(bytes.subarray(0, length)).kind, 'more', String(length));
  assert.deepEqual(readHello(bytes), { kind: 'name', name: 'shop.test' });
  assert.deepEqual(readHello(Buffer.concat([bytes, Buffer.from('more')])), { kind: 'name', name: 'shop.test' });
  assert.deepEqual(readHello(await helloOf('')), { kind: 'name', name: '' });
});

test('parsing a changed ClientHello never throws', async () => {
  const bytes = await helloOf('shop.test');
  for (let at = 0; at < bytes.length; at++) {
    for (const value of [0, 1, 127, 255]) {
      const changed = Buffer.from(bytes);
      changed[at] = value;
      assert.ok(['more', 'bad', 'name'].includes(readHello(changed).kind));
    }
  }
  assert.equal(readHello(Buffer.from('GET / HTTP/1.1\r\n\r\n')).kind, 'bad');
});

test('parses PROXY protocol headers of versions 1 and 2', () => {
  const one = 'PROXY TCP4 192.0.2.7 10.0.0.1 5000 443\r\n';
  const header = { kind: 'header', length: one.length, source: '192.0.2.7' };
  assert.deepEqual(readProxyHeader(Buffer.from(`${one}rest`)), header);
  assert.equal(readProxyHeader(Buffer.from(one.slice(0, 20))).kind, 'more');
  assert.equal(readProxyHeader(Buffer.from('PROXY TCP4 nowhere 10.0.0.1 5000 443\r\n')).kind, 'bad');
  assert.equal(readProxyHeader(Buffer.from('GET / HTTP/1.1\r\n')).kind, 'bad');
  const signature = '0d0a0d0a000d0a515549540a';
  const two = Buffer.from(`${signature}2111000cc00002070a000001138801bb`, 'hex');
  assert.deepEqual(readProxyHeader(two), { kind: 'header', length: 28, source: '192.0.2.7' });
  assert.equal(readProxyHeader(two.subarray(0, 20)).kind, 'more');
  assert.equal(readProxyHeader(Buffer.from(`${signature}3111000c`, 'hex')).kind, 'bad');
});
