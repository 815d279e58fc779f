import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { Console } from '../../../src/apiserver/console/console.ts';

const PAGE = '<!doctype html><title>page</title>';
const SCRIPT = 'export {};';
const parts = [gzipSync(PAGE), gzipSync(SCRIPT)] as const;
const files = {
  manifest: {
    files: [
      { name: 'index.html', type: 'text/html; charset=utf-8', etag: 'e0', offset: 0, length: parts[0].length },
      {
        name: 'assets/index-AB.js',
        type: 'text/javascript; charset=utf-8',
        etag: 'e1',
        offset: parts[0].length,
        length: parts[1].length,
      },
    ],
  },
  contents: Buffer.concat(parts),
};

describe('files of the console', () => {
  let loads = 0;
  const served = new Console(() => {
    loads += 1;
    return files;
  });
  const absent = new Console(() => undefined);
  let server: Server;

  before(async () => {
    server = createServer((req, res) =>
      (req.headers['x-absent'] === undefined ? served : absent).answer(req.url ?? '', req, res),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  after(() => server.close());

  /** Sends the path unchanged, which `fetch` would normalize. */
  const get = (path: string, headers: Readonly<Record<string, string>> = {}, method = 'GET') =>
    new Promise<{ status: number; headers: Readonly<Record<string, unknown>>; body: Buffer }>((resolve, reject) => {
      const { port } = server.address() as AddressInfo;
      request({ host: '127.0.0.1', port, path, method, headers }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('end', () =>
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(chunks) }),
        );
      })
        .on('error', reject)
        .end();
    });

  it('loads the files of the console on the first request only', async () => {
    assert.equal(loads, 0);
    await get('/console/');
    await get('/console/');
    assert.equal(loads, 1);
  });

  it('serves the page for every view, with a policy that forbids inline code and frames', async () => {
    for (const path of ['/console/', '/console/nodes/a', '/console/pods/x/y.z', '/console/callback']) {
      const { status, headers, body } = await get(path, { 'accept-encoding': 'gzip' });
      assert.equal(status, 200);
      assert.equal(gunzipSync(body).toString(), PAGE);
      assert.equal(headers['cache-control'], 'no-cache');
      const policy = String(headers['content-security-policy']);
      for (const directive of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"])
        assert.ok(policy.includes(directive), policy);
      assert.doesNotMatch(policy, /unsafe|\*|https?:/);
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.equal(headers['referrer-policy'], 'no-referrer');
      assert.equal(headers['cross-origin-opener-policy'], 'same-origin');
    }
  });

  it('serves hashed files of the console as immutable, also uncompressed, and confirms their ETags', async () => {
    const plain = await get('/console/assets/index-AB.js');
    assert.equal(plain.body.toString(), SCRIPT);
    assert.equal(plain.headers['content-encoding'], undefined);
    assert.match(String(plain.headers['cache-control']), /immutable/);
    const refused = await get('/console/assets/index-AB.js', { 'accept-encoding': 'gzip;q=0' });
    assert.equal(refused.body.toString(), SCRIPT);
    const again = await get('/console/assets/index-AB.js', { 'if-none-match': 'W/"e1"' });
    assert.deepEqual([again.status, again.body.length], [304, 0]);
    const head = await get('/console/assets/index-AB.js', { 'accept-encoding': 'gzip' }, 'HEAD');
    assert.deepEqual([head.status, head.body.length], [200, 0]);
  });

  it('serves no file outside of the directory of the console', async () => {
    for (const path of [
      '/console/assets/../../etc/passwd',
      '/console/assets/..%2findex.html',
      '/console/assets/%2e%2e/index.html',
      '/console/assets/index-AB.js/',
      '/console/assets/index-AB.js%00',
      '/console/assets/',
      '/console/assets/__proto__',
      '/console/assets/constructor',
    ])
      assert.equal((await get(path)).status, 404, path);
  });

  it('redirects /console to the page of the console and rejects writes', async () => {
    const moved = await get('/console');
    assert.deepEqual([moved.status, moved.headers['location']], [308, '/console/']);
    const led = await get('/');
    assert.deepEqual([led.status, led.headers['location']], [302, '/console/']);
    assert.equal((await get('/console/', {}, 'POST')).status, 405);
  });

  it('returns 404 for the page of a disabled console', async () => {
    assert.equal((await get('/console/', { 'x-absent': '1' })).status, 404);
  });

  it('redirects browsers from the root path of the server to the console, but no other clients', async () => {
    const html = 'text/html,application/xhtml+xml';
    const get = (accept: string, method = 'GET') => ({ method, headers: { accept } }) as IncomingMessage;
    assert.equal(served.leadsTo('/', get(html)), true);
    assert.equal(served.leadsTo('/', get('application/json')), false);
    assert.equal(served.leadsTo('/', get('*/*')), false);
    assert.equal(served.leadsTo('/', get(html, 'POST')), false);
    assert.equal(served.leadsTo('/api', get(html)), false);
    assert.equal(absent.leadsTo('/', get(html)), false);
  });

  it('the console handles only paths below /console', () => {
    assert.deepEqual(
      ['/console', '/console/', '/console/a', '/consoles', '/', '/api'].map((path) => served.handles(path)),
      [true, true, true, false, false, false],
    );
  });
});
