/** The client reaches its server through proxies: those of the kubeconfig, and those of the variables. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Server as TcpServer } from 'node:net';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { parse } from 'yaml';
import { proxyOfEnvironment } from '../../../src/host/kubectl/proxies.ts';
import { startServer } from '../../apiserver/harness.ts';
import { runClient } from '../../kubectl/run-client.ts';

let server: Awaited<ReturnType<typeof startServer>>;
let proxy: Server;
let socks: TcpServer;
/** Targets of the requests that reached a proxy. */
let seen: string[] = [];
let login: string | undefined;

before(async () => {
  server = await startServer();
  process.env['KUBECACHEDIR'] = server.directory;
  proxy = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    response.end('{"forwarded":true}');
  });
  proxy.on('connect', (request, socket) => {
    seen.push(`CONNECT ${request.url}`);
    login = request.headers['proxy-authorization'];
    if (request.url?.startsWith('refused.')) return socket.end('HTTP/1.1 403 Filtered\r\n\r\n');
    const port = Number(request.url?.split(':').at(-1));
    const peer = connect(port, '127.0.0.1', () => socket.write('HTTP/1.1 200 OK\r\n\r\n'));
    for (const [from, to] of [
      [peer, socket],
      [socket, peer],
    ] as const)
      from.on('error', () => to.destroy()).pipe(to);
    return undefined;
  });
  socks = createTcpServer((socket) => {
    const steps = [
      (): void => void socket.write(Buffer.from([5, 0])),
      (request: Buffer): void => {
        const length = request[4] ?? 0;
        const host = request.subarray(5, 5 + length).toString();
        const port = request.readUInt16BE(5 + length);
        seen.push(`SOCKS ${host}:${port}`);
        const peer = connect(port, '127.0.0.1', () => {
          socket.write(Buffer.from([5, 0, 0, 1, 127, 0, 0, 1, 0, 0]));
          socket.pipe(peer).pipe(socket);
        });
        peer.on('error', () => socket.destroy());
      },
    ];
    const next = (chunk: Buffer): void => {
      const step = steps.shift();
      if (steps.length === 0) socket.off('data', next);
      step?.(chunk);
    };
    socket.on('data', next).on('error', () => {});
  });
  proxy.listen(0, '127.0.0.1');
  socks.listen(0, '127.0.0.1');
  await Promise.all([once(proxy, 'listening'), once(socks, 'listening')]);
});

after(async () => {
  for (const name of ['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY']) delete process.env[name];
  proxy.closeAllConnections();
  proxy.close();
  socks.close();
  await server.stop();
});

beforeEach(() => {
  seen = [];
  login = undefined;
});

const urlOf = (which: Server | TcpServer, scheme: string, user = ''): string =>
  `${scheme}://${user}127.0.0.1:${(which.address() as AddressInfo).port}`;

/** A kubeconfig whose server has a name that only the proxy can reach. */
async function kubeconfig(fields: object, host = 'api.behind-proxy.test'): Promise<{ path: string; port: string }> {
  const document = parse(await readFile(server.kubeconfig, 'utf8'));
  const { cluster } = document.clusters[0];
  const { port, hostname } = new URL(cluster.server);
  Object.assign(cluster, { server: `https://${host}:${port}`, 'tls-server-name': hostname, ...fields });
  const path = join(server.directory, 'proxied.json');
  await writeFile(path, JSON.stringify(document));
  return { path, port };
}

test('requests and upgrades go through the proxy of the kubeconfig', async () => {
  const { path, port } = await kubeconfig({ 'proxy-url': urlOf(proxy, 'http', 'user:pass%20word@') });
  const version = await runClient(['--kubeconfig', path, 'get', '--raw', '/version']);
  assert.equal(version.code, 0, version.stderr);
  assert.deepEqual(seen, [`CONNECT api.behind-proxy.test:${port}`]);
  assert.equal(login, `Basic ${Buffer.from('user:pass word').toString('base64')}`);
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec: { nodeName: 'absent', containers: [{ name: 'c', image: 'registry.example/c:1' }] },
  };
  for (const body of [{ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } }, pod]) {
    const created = await runClient(['--kubeconfig', path, 'create', '-f', '-'], JSON.stringify(body));
    assert.equal(created.code, 0, created.stderr);
  }
  seen = [];
  const exec = await runClient(['--kubeconfig', path, 'exec', 'p', '--', 'true']);
  assert.match(exec.stderr, /^Error from server/);
  // The proxy gets one connection for the requests and one for the upgrade.
  assert.deepEqual(seen, [`CONNECT api.behind-proxy.test:${port}`, `CONNECT api.behind-proxy.test:${port}`]);
});

test('a SOCKS proxy resolves the name of the server', async () => {
  const { path, port } = await kubeconfig({ 'proxy-url': urlOf(socks, 'socks5') });
  const { code, stderr } = await runClient(['--kubeconfig', path, 'get', '--raw', '/version']);
  assert.equal(code, 0, stderr);
  assert.deepEqual(seen, [`SOCKS api.behind-proxy.test:${port}`]);
});

test('the error names a proxy that refuses the tunnel', async () => {
  const { path } = await kubeconfig({ 'proxy-url': urlOf(proxy, 'http') }, 'refused.test');
  const { code, stderr } = await runClient(['--kubeconfig', path, 'get', '--raw', '/version']);
  assert.equal(code, 1);
  assert.match(stderr, /^Unable to connect to the server: .*proxyconnect tcp: Filtered\n$/);
});

test('the proxy variables select the proxy as in Go', () => {
  const of = (target: string, env: Record<string, string>): string | undefined =>
    proxyOfEnvironment(new URL(target), env)?.href;
  const https = { HTTPS_PROXY: 'http://p:1' };
  assert.equal(of('https://api.lab:6443', https), 'http://p:1/');
  assert.equal(of('http://api.lab', https), undefined);
  assert.equal(of('http://api.lab', { HTTP_PROXY: 'p:2' }), 'http://p:2/');
  assert.equal(
    of('https://api.lab', { https_proxy: 'http://lower:3', HTTPS_PROXY: 'http://upper:3' }),
    'http://upper:3/',
  );
  for (const host of ['localhost', '127.0.0.1', '127.8.0.1', '[::1]'])
    assert.equal(of(`https://${host}:1`, https), undefined);
  for (const list of ['api.lab', '.lab', 'lab', '*', 'other,api.lab:6443'])
    assert.equal(of('https://api.lab:6443', { ...https, NO_PROXY: list }), undefined, list);
  assert.equal(of('https://api.lab:6443', { ...https, NO_PROXY: 'api.lab:443' }), 'http://p:1/');
  assert.equal(of('https://10.1.2.3:6443', { ...https, NO_PROXY: '10.0.0.0/8' }), undefined);
  assert.throws(
    () => of('https://api.lab', { HTTPS_PROXY: 'ftp://p' }),
    /HTTPS_PROXY: "ftp:\/\/p" is not the URL of a proxy/,
  );
});

test('HTTPS_PROXY applies unless NO_PROXY lists the server, and HTTP_PROXY forwards plain requests', async () => {
  process.env['HTTPS_PROXY'] = urlOf(proxy, 'http');
  const { path, port } = await kubeconfig({});
  const { code, stderr } = await runClient(['--kubeconfig', path, 'get', '--raw', '/version']);
  assert.equal(code, 0, stderr);
  assert.deepEqual(seen, [`CONNECT api.behind-proxy.test:${port}`]);
  process.env['NO_PROXY'] = '.behind-proxy.test';
  seen = [];
  const direct = await runClient(['--kubeconfig', path, 'get', '--raw', '/version']);
  assert.match(direct.stderr, /ENOTFOUND|EAI_AGAIN/);
  assert.deepEqual(seen, []);
  process.env['HTTP_PROXY'] = urlOf(proxy, 'http');
  const plain = await kubeconfig({ server: 'http://plain.test:1' });
  const forwarded = await runClient(['--kubeconfig', plain.path, 'get', '--raw', '/version']);
  assert.equal(forwarded.stdout, '{"forwarded":true}', forwarded.stderr);
  assert.deepEqual(seen, ['GET http://plain.test:1/version']);
});
