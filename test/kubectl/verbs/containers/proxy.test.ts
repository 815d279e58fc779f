/** `proxy` passes requests on with the credentials of the client, and refuses what kubectl refuses by default. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type RequestOptions, request, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, connect as tcpConnect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import type { Outcome } from '../../calls.ts';
import { runClient } from '../../run-client.ts';

interface Seen {
  readonly call: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

interface Answer {
  readonly code: number | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

let server: Server;
let directory: string;
let seen: Seen[] = [];

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'he-proxy-'));
  server = createServer((incoming, response) => {
    let body = '';
    incoming.setEncoding('utf8').on('data', (part: string) => {
      body += part;
    });
    incoming.on('end', () => {
      seen.push({ call: `${incoming.method} ${incoming.url}`, headers: incoming.headers, body });
      response.writeHead(201, { 'x-from': 'server' }).end('answered');
    });
  }).listen(0, '127.0.0.1');
  server.on('upgrade', (incoming: IncomingMessage, socket) => {
    seen.push({ call: `UPGRADE ${incoming.url}`, headers: incoming.headers, body: '' });
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    socket.on('error', () => socket.destroy()).pipe(socket);
  });
  await once(server, 'listening');
});

after(async () => {
  server.closeAllConnections();
  server.close();
  await rm(directory, { recursive: true, force: true });
});

beforeEach(() => {
  seen = [];
});

type Call = (path: string, options?: RequestOptions, body?: string) => Promise<Answer>;

/** Runs `proxy` with the flags until `use` is done. */
async function proxied(
  flags: readonly string[],
  use: (call: Call, port: number) => Promise<void>,
  path = '',
): Promise<Outcome> {
  const stop = new AbortController();
  const { port: upstream } = server.address() as AddressInfo;
  const place = flags.some((each) => each.startsWith('--unix-socket')) ? [] : ['--port=0'];
  let onOut: (text: string) => void = () => {};
  const started = new Promise<string>((resolve) => {
    onOut = resolve;
  });
  const connection = ['--kubeconfig', '/dev/null', '--server', `http://127.0.0.1:${upstream}${path}`];
  const ended = runClient([...connection, '--token', 'own-token', 'proxy', ...place, ...flags], '', {
    signal: stop.signal,
    onOut,
  });
  try {
    const line = await Promise.race([started, ended.then(() => '')]);
    const port = Number(/:(\d+)\n$/.exec(line)?.[1] ?? 0);
    if (line !== '')
      await use((target, options = {}, body = '') => send({ port, path: target, ...options }, body), port);
  } finally {
    stop.abort();
  }
  return ended;
}

function send(options: RequestOptions, body = ''): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const call = request({ host: '127.0.0.1', agent: false, ...options }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      response.on('end', () => resolve({ code: response.statusCode, headers: response.headers, body: text }));
    });
    call.once('error', reject);
    call.end(body);
  });
}

/** The first line of the answer to bytes that no client library sends. */
async function raw(port: number, text: string): Promise<string> {
  const socket = tcpConnect(port, '127.0.0.1', () => socket.write(text));
  let answer = '';
  socket.setTimeout(3_000, () => socket.destroy());
  socket.on('data', (chunk) => {
    answer += chunk.toString('latin1');
    if (answer.includes('\r\n')) socket.destroy();
  });
  await once(socket, 'close').catch(() => undefined);
  return answer.split('\r\n')[0] ?? '';
}

test('kubectl proxy forwards method, path, query, body and response, with the token of the client', async () => {
  const { code, stdout } = await proxied([], async (call) => {
    const answer = await call('/api/v1/pods?limit=1', { method: 'POST', headers: { 'x-of': 'client' } }, 'text');
    assert.deepEqual([answer.code, answer.body, answer.headers['x-from']], [201, 'answered', 'server']);
  });
  assert.equal(code, 0);
  assert.match(stdout, /^Starting to serve on 127\.0\.0\.1:\d+\n$/);
  assert.equal(seen.length, 1);
  assert.equal(seen[0]?.call, 'POST /api/v1/pods?limit=1');
  assert.equal(seen[0]?.body, 'text');
  assert.equal(seen[0]?.headers.authorization, 'Bearer own-token');
  assert.equal(seen[0]?.headers['x-of'], 'client');
  assert.equal(seen[0]?.headers.host, `127.0.0.1:${(server.address() as AddressInfo).port}`);
});

test('kubectl proxy accepts only host names of the local host, so that a web page cannot use DNS rebinding', async () => {
  await proxied([], async (call, port) => {
    const accepted = ['localhost', `localhost:${port}`, `127.0.0.1:${port}`, '[::1]', `[::1]:${port}`];
    for (const host of accepted) assert.equal((await call('/api', { headers: { host } })).code, 201, host);
    assert.equal(seen.length, accepted.length);
    const refused = ['attacker.example', `attacker.example:${port}`, 'localhost.attacker.example', '127.0.0.1.nip.io'];
    for (const host of [...refused, 'localhost:80:80', 'localhost@attacker.example', '127.0.0.11'])
      assert.equal((await call('/api', { headers: { host } })).code, 403, host);
    assert.match(await raw(port, 'GET /api HTTP/1.1\r\nHost:\r\n\r\n'), / 40[03] /);
    assert.match(await raw(port, 'GET /api HTTP/1.0\r\n\r\n'), / 403 /);
    assert.match(await raw(port, 'GET /api HTTP/1.1\r\nHost: localhost\r\nHost: attacker.example\r\n\r\n'), / 40[03] /);
    assert.doesNotMatch(
      await raw(port, 'GET http://attacker.example/api HTTP/1.1\r\nHost: localhost\r\n\r\n'),
      / 201 /,
    );
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
    assert.match(await raw(port, `GET /api HTTP/1.1\r\nHost: attacker.example\r\n${upgrade}`), / 403 /);
    assert.equal(seen.length, accepted.length);
  });
});

const POD = '/api/v1/namespaces/a/pods/b';

test('refuses exec and attach of pods in every spelling of the path', async () => {
  await proxied([], async (call, port) => {
    for (const path of [
      `${POD}/exec?command=sh`,
      `${POD}/attach`,
      `${POD}/%65xec`,
      `${POD}%2fexec`,
      '/%61pi/v1/namespaces/a/pods/b/exec',
      `${POD}/log/../exec`,
      '/version/../api/v1/namespaces/a/pods/b/exec',
      '/version/%2e%2e/api/v1/namespaces/a/pods/b/exec',
      '/version%2f..%2fapi/v1/namespaces/a/pods/b/exec',
      '//api/v1/namespaces/a/pods/b/exec',
      '/%2fapi/v1/namespaces/a/pods/b/exec',
      '/./api/v1/namespaces/a/pods/b/exec',
    ]) {
      assert.notEqual((await call(path, { method: 'POST' })).code, 201, path);
      const upgrade = 'Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
      assert.doesNotMatch(await raw(port, `GET ${path} HTTP/1.1\r\n${upgrade}`), / 101 /, path);
    }
    assert.deepEqual(seen, []);
    assert.deepEqual((await call(`${POD}/exec`)).body, 'Forbidden\n');
  });
});

test('redirects a path with redundant segments to its short form, as kubectl proxy does', async () => {
  await proxied([], async (call) => {
    const answer = await call('/api//v1/./pods/../nodes/?limit=1');
    assert.deepEqual([answer.code, answer.headers.location], [307, '/api/v1/nodes/?limit=1']);
    assert.equal((await call('/api/%zz')).code, 400);
    assert.deepEqual(seen, []);
    // An address inside of a path keeps its slashes.
    await call('/api/v1/namespaces/a/services/b/proxy/http%3A%2F%2Fc');
  });
  assert.equal(seen[0]?.call, 'GET /api/v1/namespaces/a/services/b/proxy/http%3A%2F%2Fc');
});

test('applies the path filter after removal of --api-prefix', async () => {
  await proxied(['--api-prefix=/custom/'], async (call) => {
    assert.equal((await call('/custom/api/v1')).code, 201);
    assert.equal((await call(`/custom${POD}/exec`)).code, 403);
    assert.equal((await call('/api/v1')).code, 404);
    assert.deepEqual(
      seen.map(({ call: each }) => each),
      ['GET /api/v1'],
    );
  });
  seen = [];
  await proxied(['--api-prefix=/api'], async (call) => {
    assert.equal((await call('/api/v1')).code, 201);
    assert.equal(seen[0]?.call, 'GET /api/v1');
  });
});

test("accepts patterns of filter flags in Go's regular expression syntax", async () => {
  await proxied(['--accept-hosts=^*$'], async (call) => {
    assert.equal((await call('/api', { headers: { host: 'any.example' } })).code, 201);
  });
  const flags = [
    '--accept-hosts=(?i)^LAB\\.example$',
    '--reject-methods=^POST$,^PUT$',
    '--accept-paths=^/api/v1/nodes$',
  ];
  await proxied([...flags, '--reject-paths='], async (call) => {
    seen = [];
    const headers = { host: 'lab.EXAMPLE:8001' };
    assert.equal((await call('/api/v1/nodes', { headers })).code, 201);
    assert.equal((await call('/api/v1/nodes', { headers, method: 'PUT' })).code, 403);
    assert.equal((await call('/api/v1/nodes/a', { headers })).code, 403);
    assert.equal((await call('/api/v1/nodes')).code, 403);
  });
  const { code, stderr } = await proxied(['--reject-paths=a(b'], () => assert.fail('it must not start'));
  assert.equal(code, 1);
  assert.match(stderr, /--reject-paths: error parsing regexp: /);
});

test('kubectl proxy accepts all requests with --disable-filter, and warns', async () => {
  const { stderr } = await proxied(['--disable-filter'], async (call) => {
    assert.equal((await call(`${POD}/exec`, { headers: { host: 'any.example' } })).code, 201);
  });
  assert.equal(stderr, 'Request filter disabled, your proxy is vulnerable to XSRF attacks, please be cautious\n');
});

test('kubectl proxy forwards WebSocket upgrades with its own credentials', async () => {
  await proxied([], async (_, port) => {
    const upgrade = 'Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
    assert.equal(await raw(port, `GET ${POD}/portforward HTTP/1.1\r\n${upgrade}`), 'HTTP/1.1 101 Switching Protocols');
    assert.equal(seen[0]?.call, `UPGRADE ${POD}/portforward`);
    assert.equal(seen[0]?.headers.authorization, 'Bearer own-token');
  });
});

test('a chunked body cannot hide a second request from the path filter', async () => {
  const hidden = `GET ${POD}/exec HTTP/1.1\r\nHost: localhost\r\n\r\n`;
  const methods = ['GET', 'DELETE', 'OPTIONS', 'PATCH'];
  await proxied([], async (call) => {
    for (const method of methods) {
      const answer = await call('/api', { method, headers: { 'transfer-encoding': 'chunked' } }, hidden);
      assert.equal(answer.code, 201, method);
    }
  });
  assert.deepEqual(
    seen.map(({ call, body }) => [call, body]),
    methods.map((method) => [`${method} /api`, hidden]),
  );
});

test('forwards an upgrade without a body, so that a refused upgrade cannot consume the next request', async () => {
  await proxied([], async (call, port) => {
    const upgrade = 'Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n';
    for (const framing of ['Content-Length: 500', 'Transfer-Encoding: chunked'])
      await raw(port, `GET ${POD}/portforward HTTP/1.1\r\n${upgrade}${framing}\r\n\r\n`);
    assert.equal((await call('/api')).code, 201);
  });
  for (const { headers } of seen)
    assert.deepEqual([headers['content-length'], headers['transfer-encoding']], [undefined, undefined]);
});

test('puts the path of the server before each path with --append-server-path', async () => {
  await proxied(['--append-server-path'], async (call) => void (await call('/api')), '/base');
  await proxied([], async (call) => void (await call('/api')), '/base');
  assert.deepEqual(
    seen.map(({ call }) => call),
    ['GET /base/api', 'GET /api'],
  );
});

test('serves files below the directory of --www only', async () => {
  const www = join(directory, 'www');
  await mkdir(join(www, 'sub'), { recursive: true });
  await writeFile(join(www, 'page.html'), '<p>');
  await writeFile(join(www, 'sub/index.html'), 'index');
  await writeFile(join(directory, 'secret'), 'secret');
  await symlink('../secret', join(www, 'link'));
  await mkdir(join(directory, 'www-other'));
  await writeFile(join(directory, 'www-other/file'), 'other');
  await proxied([`--www=${www}`, '--www-prefix=/files/'], async (call) => {
    const page = await call('/files/page.html');
    assert.deepEqual([page.code, page.body, page.headers['content-type']], [200, '<p>', 'text/html; charset=utf-8']);
    assert.equal((await call('/files/sub/')).body, 'index');
    for (const path of [
      '../secret',
      '%2e%2e/secret',
      '..%2fsecret',
      'link',
      '../www-other/file',
      'page.html%00',
      'none',
    ])
      assert.notEqual((await call(`/files/${path}`)).code, 200, path);
    assert.deepEqual(
      seen.map(({ call: each }) => each),
      [],
    );
    assert.equal((await call('/files/page.html', { headers: { host: 'attacker.example' } })).code, 403);
  });
});

test('listens on a socket that only its user can open, and replaces a stale socket', async () => {
  const path = join(directory, 'socket');
  const stale = createTcpServer().listen(path);
  await once(stale, 'listening');
  const previous = process.umask(0);
  try {
    const { code, stdout } = await proxied([`--unix-socket=${path}`], async () => {
      assert.equal((await stat(path)).mode & 0o077, 0);
      assert.equal((await send({ socketPath: path, path: '/api' })).code, 201);
    });
    assert.deepEqual([code, stdout], [0, `Starting to serve on ${path}\n`]);
    assert.equal(process.umask(0), 0);
  } finally {
    process.umask(previous);
    stale.close();
  }
  await writeFile(join(directory, 'file'), 'kept');
  const { code, stderr } = await proxied([`--unix-socket=${join(directory, 'file')}`], () => assert.fail('started'));
  assert.equal(code, 1);
  assert.match(stderr, /EADDRINUSE|not a socket/);
  assert.equal((await stat(join(directory, 'file'))).size, 4);
});

test('kubectl proxy names the invalid flag', async () => {
  const never = (): Promise<void> => assert.fail('it must not start');
  const both = await proxied([`--unix-socket=${directory}/x`, '--port=1'], never);
  assert.match(both.stderr, /cannot set --unix-socket and --port at the same time/);
  const file = await proxied(['--www=/etc/hostname'], never);
  assert.match(file.stderr, /--www: \/etc\/hostname is not a directory/);
  const { port } = server.address() as AddressInfo;
  const used = await runClient(['--kubeconfig', '/dev/null', '--server', 'http://x', 'proxy', `--port=${port}`]);
  assert.equal(used.code, 1);
  assert.match(used.stderr, new RegExp(`listen 127\\.0\\.0\\.1:${port}: .*EADDRINUSE`));
});
