/**
 * Aggregated servers with invalid or malicious responses. The main server must survive, and other clients must not be
 * affected.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:http2';
import { after, afterEach, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { slack } from '../../support/slack.ts';
import { FLUNDERS } from './flunder-server.ts';
import { type Extended, startExtended } from './setup.ts';

const PLAIN = 'content-type: text/plain\r\n';
/** Complete responses as raw bytes. */
const RAW: Readonly<Record<string, string>> = {
  'a status of 0': `HTTP/1.1 000 Zero\r\n${PLAIN}content-length: 2\r\n\r\nok`,
  'a status of 999': `HTTP/1.1 999 More\r\n${PLAIN}content-length: 2\r\n\r\nok`,
  'an unrequested protocol switch': 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nok',
  'endless early hints': `${'HTTP/1.1 103 Early\r\nlink: x\r\n\r\n'.repeat(2000)}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok`,
  'a body shorter than its length': `HTTP/1.1 200 OK\r\n${PLAIN}content-length: 100\r\n\r\nok`,
  'an invalid content length': `HTTP/1.1 200 OK\r\n${PLAIN}content-length: -5\r\n\r\nok`,
  'a content length with chunked encoding':
    'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
  'an invalid chunk size': 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nok\r\n',
  'a 204 response with a body': 'HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello',
  'connection headers': `HTTP/1.1 200 OK\r\nconnection: close, audit-id\r\nkeep-alive: x\r\nproxy-connection: x\r\nupgrade: h2c\r\nhttp2-settings: x\r\ncontent-length: 2\r\n\r\nok`,
  'header bytes beyond ASCII': 'HTTP/1.1 200 OK\r\nx-odd: \xff\xfe\r\ncontent-length: 2\r\n\r\nok',
  'oversized headers': `HTTP/1.1 200 OK\r\n${`x-a: ${'b'.repeat(1000)}\r\n`.repeat(200)}\r\n`,
  'a response that is not HTTP': 'SSH-2.0-OpenSSH\r\n\r\n',
  'two responses': 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nevil!',
};

describe('malicious aggregated servers', { concurrency: false, timeout: 120_000 }, () => {
  let extended: Extended;
  before(async () => {
    extended = await startExtended();
  });
  after(() => extended.stop());
  afterEach(() => {
    extended.flunders.mischief = () => false;
  });

  /** Status over HTTP/2. 0: the stream was reset. */
  const overHttp2 = (): Promise<number> =>
    new Promise((resolve) => {
      const { main } = extended;
      const session = connect(main.url, {
        ca: main.ca.certPem,
        cert: main.admin.certPem,
        key: main.admin.keyPem,
      });
      const end = (status: number): void => {
        session.destroy();
        resolve(status);
      };
      session.on('error', () => end(0));
      const stream = session.request({ ':path': FLUNDERS });
      let status = 0;
      stream.on('response', (headers) => {
        status = headers[':status'] ?? 0;
      });
      stream.on('error', () => end(0));
      stream.resume();
      stream.on('close', () => end(status));
    });

  for (const [name, raw] of Object.entries(RAW))
    it(`${name}: returns an error or closes the stream, over HTTP/1.1 and HTTP/2`, async () => {
      const { main, flunders } = extended;
      flunders.mischief = (request, response) => {
        if (!(request.url ?? '').startsWith(FLUNDERS)) return false;
        const { socket } = response;
        socket?.write(Buffer.from(raw, 'latin1'));
        setTimeout(() => socket?.end(), 50);
        return true;
      };
      const late = sleep(8_000 * slack(), 'late' as const, { ref: false });
      const first = await Promise.race([main.call('GET', FLUNDERS).catch(() => undefined), late]);
      assert.notEqual(first, 'late');
      if (typeof first === 'object') assert.ok(!first.text.includes('evil!'), first.text);
      assert.notEqual(await Promise.race([overHttp2(), late]), 'late');
      flunders.mischief = () => false;
      assert.equal((await main.call('GET', '/api/v1/namespaces/default/configmaps')).code, 200);
    });

  it('does not forward discovery documents with line breaks, prototype names or a million items', async () => {
    const { main, flunders } = extended;
    const documents: readonly string[] = [
      JSON.stringify({
        paths: { 'apis/wardle.example.com/v1alpha1': { serverRelativeURL: '/openapi/v3?hash=a%0d%0aset-cookie:x%22' } },
      }),
      '{"__proto__":{"paths":{}},"constructor":{"prototype":{"polluted":true}},"paths":{"__proto__":{"x":1}}}',
      `{"items":[${'{},'.repeat(200_000)}{}]}`,
      `${'['.repeat(60_000)}${']'.repeat(60_000)}`,
      'null',
      '"text"',
      '',
    ];
    for (const document of documents) {
      let requested = 0;
      flunders.mischief = (request, response) => {
        if ((request.url ?? '').startsWith(FLUNDERS)) return false;
        requested += 1;
        response.writeHead(200, { 'content-type': 'application/json;g=apidiscovery.k8s.io;v=v2', etag: '"\xe9"' });
        response.end(document);
        return true;
      };
      flunders.resources = [...flunders.resources];
      await main.call('PATCH', '/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.wardle.example.com', {
        body: { spec: { versionPriority: 10 + documents.indexOf(document) } },
        type: 'application/merge-patch+json',
      });
      await sleep(150);
      for (const path of ['/apis', '/openapi/v3', '/openapi/v2', '/openapi/v3/apis/wardle.example.com/v1alpha1']) {
        const answer = await main.call('GET', path);
        assert.ok(answer.code < 600, `${path}: ${answer.code}`);
        assert.equal(answer.headers['set-cookie'], undefined);
        if (path !== '/openapi/v3/apis/wardle.example.com/v1alpha1')
          assert.equal(answer.code, 200, `${document.slice(0, 60)} ${path}: ${answer.text.slice(0, 200)}`);
      }
      assert.ok(requested > 0, 'the server was not asked');
    }
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
  });
});
