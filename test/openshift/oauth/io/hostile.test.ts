/** LDAP servers that violate the protocol, and identity providers with endless responses. */
import assert from 'node:assert/strict';
import { createServer as createHttp } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { ldap } from '../../../../src/openshift/oauth/io/ldap.ts';
import { createWeb } from '../../../../src/openshift/oauth/io/web.ts';
import { generator } from '../../../support/random.ts';

const next = generator(20_2615);
const below = (most: number): number => Math.floor(next() * most);

/** A BER message with an operation; all lengths are in the short form. */
const message = (id: number, operation: number, content: number[]): Buffer =>
  Buffer.from([0x30, content.length + 5, 2, 1, id, operation, content.length, ...content]);
const bindResponse = (id: number, code: number): Buffer => message(id, 0x61, [0x0a, 1, code, 4, 0, 4, 0]);
const entry = (id: number): Buffer =>
  message(id, 0x64, [4, 4, 0x63, 0x6e, 0x3d, 0x61, 0x30, 11, 0x30, 9, 4, 3, 0x75, 0x69, 0x64, 0x31, 2, 4, 0]);
const done = (id: number): Buffer => message(id, 0x65, [0x0a, 1, 0, 4, 0, 4, 0]);

const login = (port: number): Promise<unknown> =>
  ldap.authenticate(
    {
      url: `ldap://127.0.0.1:${port}/dc=a?uid`,
      bindDn: 'cn=admin',
      bindPassword: 'x',
      insecure: true,
      attributes: ['mail'],
    } as never,
    'user',
    'password',
  );

test('an invalid LDAP response fails only the login for which it was sent', { timeout: 60_000 }, async () => {
  let answer: (socket: Socket, id: number, turn: number) => void = () => {};
  const server = createServer((socket) => {
    let turn = 0;
    socket.on('error', () => {});
    socket.on('data', (request: Buffer) => {
      turn += 1;
      answer(socket, request[4] ?? 1, turn);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const fixed: readonly Buffer[] = [
    Buffer.from([0x30, 0x84, 0xff, 0xff, 0xff, 0xff]),
    Buffer.from([0x30, 0x88, 1, 1, 1, 1, 1, 1, 1, 1]),
    Buffer.from([0x30, 0x80, 0, 0]),
    Buffer.from([0x1f, 0xff, 0xff, 0xff, 0xff]),
    Buffer.from([0x30, 0]),
    Buffer.concat(Array.from({ length: 5_000 }, () => Buffer.from([0x30, 2]))),
    bindResponse(99, 0),
    message(0, 0x78, [0x0a, 1, 52, 4, 0, 4, 0]),
    Buffer.from('HTTP/1.1 200 OK\r\n\r\n'),
  ];
  for (const bytes of fixed) {
    answer = (socket) => socket.end(bytes);
    await assert.rejects(login(port), Error, bytes.subarray(0, 16).toString('hex'));
  }
  // A string that is longer than its message, for which the library would read until memory is exhausted.
  const cut = (id: number): Buffer => {
    const bytes = bindResponse(id, 0);
    bytes[bytes.length - 1] = 0x5c;
    return bytes;
  };
  const began = process.cpuUsage();
  answer = (socket, id) => socket.write(cut(id));
  await assert.rejects(login(port), /invalid LDAP message/);
  const inside = (id: number): Buffer => message(id, 0x64, [4, 1, 0x61, 4, 4, 0x30, 0x7f, 4, 0x7f]);
  answer = (socket, id, turn) => socket.write(turn === 1 ? bindResponse(id, 0) : inside(id));
  await assert.rejects(login(port), /invalid LDAP message/);
  const spent = process.cpuUsage(began).user / 1000;
  assert.ok(spent < 300, `${spent} ms`);
  let failed = 0;
  for (let i = 0; i < 300; i += 1) {
    answer = (socket, id, turn) => {
      const bytes = turn === 2 ? Buffer.concat([entry(id), done(id)]) : bindResponse(id, turn === 3 ? 49 : 0);
      for (let n = below(4); n >= 0; n -= 1) bytes[below(bytes.length)] = below(256);
      socket.end(bytes);
    };
    const outcome = await login(port).catch((error: unknown) => {
      assert.ok(error instanceof Error);
      failed += 1;
      return undefined;
    });
    assert.equal(outcome, undefined);
  }
  assert.ok(failed > 100, `${failed} of 300 failed`);
  await new Promise<void>((resolve) => server.close(() => resolve()));
});

test('limits the size of a response of an identity provider and does not follow its redirects', {
  timeout: 10_000,
}, async () => {
  const server = createHttp((request, response) => {
    if (request.url === '/endless') {
      const more = (): void => {
        while (response.write(Buffer.alloc(1 << 16)));
        response.once('drain', more);
      };
      more();
    } else if (request.url === '/away') response.writeHead(302, { location: 'http://169.254.169.254/' }).end();
    else if (request.url === '/cut') {
      response.writeHead(200, { 'content-length': 10 }).write('x');
      setTimeout(() => response.destroy(), 10);
    } else response.socket?.end('HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const at = (path: string): Promise<{ readonly status: number }> =>
    createWeb({ noProxy: [] }).request(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`, {
      method: 'GET',
      headers: {},
      ca: undefined,
    });
  await assert.rejects(at('/endless'), /more than 1048576 bytes/);
  await assert.rejects(at('/cut'));
  await assert.rejects(at('/damaged'));
  assert.equal((await at('/away')).status, 302);
  server.closeAllConnections();
  await new Promise<void>((resolve) => server.close(() => resolve()));
});
