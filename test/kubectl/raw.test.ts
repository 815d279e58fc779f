/** `create --raw` sends a file unchanged, as kubectl does. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { runClient } from './run-client.ts';

let server: Server;
let directory: string;
let received: string[] = [];

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'he-raw-'));
  server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    received.push(`${request.method} ${request.url} ${request.headers['content-type']} ${body}`);
    response.end('the response\n');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});

after(async () => {
  server.closeAllConnections();
  server.close();
  await rm(directory, { recursive: true, force: true });
});

const create = (args: readonly string[], input = '') => {
  received = [];
  const { port } = server.address() as AddressInfo;
  const connection = ['--kubeconfig', '/dev/null', '--server', `http://127.0.0.1:${port}`];
  return runClient(['create', ...connection, '--raw', '/x?a=b', ...args], input);
};

test('sends an empty file and prints the response unchanged', async () => {
  assert.deepEqual(await create(['-f', '/dev/null']), { code: 0, stdout: 'the response\n', stderr: '' });
  assert.deepEqual(received, ['POST /x?a=b application/json ']);
});

test('sends the bytes of a file and of standard input', async () => {
  const file = join(directory, 'body');
  await writeFile(file, '{"kind":  "Pod"}\n---\nnot an object');
  assert.equal((await create(['-f', file])).code, 0);
  assert.deepEqual(received, ['POST /x?a=b application/json {"kind":  "Pod"}\n---\nnot an object']);
  assert.equal((await create(['-f', '-'], 'text')).code, 0);
  assert.deepEqual(received, ['POST /x?a=b application/json text']);
});

test('rejects several files, URLs and a missing file', async () => {
  for (const [args, message] of [
    [['-f', 'a', '-f', 'b'], 'error: --raw can only use a single local file or stdin\n'],
    [['-k', '.'], 'error: --raw can only use a single local file or stdin\n'],
    [['-f', 'https://lab.example/a'], 'error: --raw cannot read from a url\n'],
    [[], 'error: must specify one of -f and -k\n'],
  ] as const) {
    const { code, stderr } = await create(args);
    assert.equal(code, 1);
    assert.equal(stderr, message);
  }
  assert.deepEqual(received, []);
});
