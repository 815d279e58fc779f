/**
 * Attacks on the proxy: request smuggling, forged headers, bypassing the route's rules by another protocol, and
 * crashing the host process.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2, createServer as createHttp2 } from 'node:http2';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { silentLog } from '../../../../src/base/log.ts';
import { Balancer, planRouting } from '../../../../src/network/router/core/index.ts';
import { createCertificateVerifier, proxyFactory } from '../../../../src/network/router/io/index.ts';
import type { Route } from '../../../../src/network/router/kinds/routes/types.ts';
import type { RoutingProxy } from '../../../../src/network/router/port.ts';
import { createAuthority, issue, lifetimeFrom } from '../../../../src/pki/index.ts';
import { freePort } from '../../../support/ports.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const HOST = 'Host: web.apps.test\r\n';
const POST = `POST / HTTP/1.1\r\n${HOST}`;
const CHUNKED = `${POST}Transfer-Encoding: chunked\r\n\r\n`;
const END = '0\r\n\r\n';

/** Requests that must never reach a server. */
const REFUSED: readonly string[] = [
  `${POST}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n${END}`,
  `${POST}Transfer-Encoding: xchunked\r\n\r\n${END}`,
  `${POST}Transfer-Encoding: chunked, identity\r\n\r\n${END}`,
  `${POST}Transfer-Encoding: \x0bchunked\r\n\r\n${END}`,
  `${POST}Transfer-Encoding:\r\n chunked\r\n\r\n${END}`,
  `${POST}Transfer-Encoding : chunked\r\n\r\n${END}`,
  `${POST}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n${END}`,
  ...['2, 2', '-2', '+2', '0x2', '2 2', '', '2\r\nContent-Length: 2'].map(
    (length) => `${POST}Content-Length: ${length}\r\n\r\nab`,
  ),
  ...[
    `2\nab\n0\n\n`,
    `2;a\nb\r\nab\r\n${END}`,
    `-2\r\nab\r\n${END}`,
    `2\r\nabXX${END}`,
    `f${'f'.repeat(16)}\r\nab`,
  ].map((body) => CHUNKED + body),
  `${CHUNKED}0\r\nHost: evil.test\r\nContent-Length: 10\r\n\r\n`,
  'GET / HTTP/1.1\r\n\r\n',
  `GET / HTTP/1.1\n${HOST}\n`,
  `GET / HTTP/1.1\r\n${HOST}Host: web.apps.test\r\n\r\n`,
  ...[
    'web.apps.test, evil.test',
    'web.apps.test evil.test',
    'web.apps.test@evil.test',
    'web.apps.test/x',
    'web:9999999',
  ].map((host) => `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`),
  ...['Foo : x', 'Foo: a\0b', 'Foo: a\rX: y', 'Foo: a\n b'].map((line) => `GET / HTTP/1.1\r\n${HOST}${line}\r\n\r\n`),
  ...['http://u@web.apps.test/', 'http://evil.test/', '//[::/', '*', '/a#b', '/\xff', 'a', '/a b'].map((target) =>
    `GET ${target} HTTP/1.1\r\n${HOST}\r\n`.replace('//[::/', 'http://[::/'),
  ),
  ...['HTTP/1.2', 'HTTP/2.0', 'HTTP/3.0', 'http/1.1', 'HTTP/1.1 x'].map((version) => `GET / ${version}\r\n${HOST}\r\n`),
  'GET /\r\n\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  `${POST}Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\nab`,
  `CONNECT web.apps.test:80 HTTP/1.1\r\n${HOST}\r\n`,
];

/** Response heads that cannot be sent to a client. */
const BAD_ANSWERS: readonly string[] = [
  'HTTP/1.1 000 x\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 099 x\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 999 x\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nok',
  'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde',
  'HTTP/1.1 200 OK\r\nX: a\x01b\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 200 OK\r\n:status: 500\r\nContent-Length: 2\r\n\r\nok',
  'nonsense\r\n\r\n',
];
/** Unusual response heads whose content must reach the client. */
const ODD_ANSWERS: readonly string[] = [
  'HTTP/1.1 200 O\x01K\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 200 \xe9\r\nX: \xe9\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 200 OK\r\nContent-Type: a\r\nContent-Type: b\r\nETag: a\r\nETag: b\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 200 OK\r\nHTTP2-Settings: x\r\nKeep-Alive: x\r\nProxy-Connection: x\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 200 OK\r\nConnection: content-length\r\nContent-Length: 2\r\n\r\nok',
];

describe('hostile peers', { timeout: 60_000, concurrency: false }, () => {
  let proxy: RoutingProxy;
  let ports: { http: number; https: number };
  let ca: Awaited<ReturnType<typeof createAuthority>>;
  let answer = OK;
  let seen = '';
  const closing: { close(): unknown }[] = [];

  const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port;
  const listen = async (server: Server): Promise<number> => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    closing.push(server);
    return portOf(server);
  };
  const route = (name: string): Route => ({
    metadata: { name, namespace: 'shop', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: {
      host: `${name}.apps.test`,
      wildcardPolicy: 'None',
      to: { kind: 'Service', name, weight: 100 },
      tls: { termination: 'edge', insecureEdgeTerminationPolicy: 'Allow' },
    },
  });
  const connectSecurely = () =>
    connectTls({
      port: ports.https,
      host: '127.0.0.1',
      servername: 'web.apps.test',
      ca: ca.certPem,
      ALPNProtocols: ['http/1.1'],
    });
  /** Everything received within `ms` or until the proxy closes. */
  const raw = (bytes: string, until: RegExp, ms = 3_000, secure = false): Promise<string> =>
    new Promise((resolve) => {
      const socket = secure ? connectSecurely() : connect(ports.http, '127.0.0.1');
      let text = '';
      const done = (): void => {
        clearTimeout(timer);
        socket.destroy();
        resolve(text);
      };
      const timer = setTimeout(done, ms);
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1');
        if (until.test(text)) done();
      });
      socket.on('error', () => {});
      socket.on('close', done);
      socket.write(Buffer.from(bytes, 'latin1'));
    });
  const session = (): ClientHttp2Session => {
    const lookup = (_name: string, _options: unknown, callback: (...args: unknown[]) => void): void =>
      callback(null, [{ address: '127.0.0.1', family: 4 }]);
    const made = connectHttp2(`https://web.apps.test:${ports.https}`, { ca: ca.certPem, lookup } as never);
    made.on('error', () => {});
    return made;
  };
  /** Status and content; undefined if the stream was reset. */
  const ask = (over: ClientHttp2Session, headers: Record<string, string | string[]>, body = '') =>
    new Promise<{ status: number | undefined; text: string }>((resolve) => {
      let status: number | undefined;
      let text = '';
      let stream: ReturnType<ClientHttp2Session['request']>;
      try {
        stream = over.request({ ':path': '/', ...headers }, { endStream: body === '' });
      } catch {
        return resolve({ status: undefined, text: '' });
      }
      stream.on('error', () => {});
      stream.on('response', (head) => {
        status = Number(head[':status']);
      });
      stream.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      stream.on('close', () => resolve({ status, text }));
      if (body !== '') stream.end(body);
    });
  const defects: unknown[] = [];
  const note = (error: unknown): void => void defects.push(error);
  const isAlive = async (): Promise<void> => {
    answer = OK;
    assert.deepEqual(defects, [], 'an error that nothing catches ends the host process');
    assert.match(await raw(`GET / HTTP/1.1\r\n${HOST}\r\n`, /ok$/), /^HTTP\/1\.1 200 /);
  };

  before(async () => {
    process.on('uncaughtException', note);
    ca = await createAuthority('test-ca', lifetimeFrom(Date.now(), 10));
    const pair = await issue(ca, {
      subject: { commonName: '*.apps.test' },
      usages: ['server'],
      names: { dns: ['*.apps.test'], ips: [] },
      validity: lifetimeFrom(Date.now(), 10),
    });
    ports = { http: await freePort(), https: await freePort() };
    proxy = proxyFactory(silentLog, '127.0.0.1').create(
      {
        httpPort: ports.http,
        httpsPort: ports.https,
        statsPort: undefined,
        proxyProtocol: false,
        accessLog: false,
        clusterCa: async () => ca.certPem,
      },
      new Balancer(() => 0.5),
      () => {},
    );
    proxy.useDefaultCertificate({ certificate: pair.certPem, key: pair.keyPem });
    const web = await listen(
      createServer((socket) => {
        socket.on('error', () => {});
        socket.on('data', (chunk) => {
          seen += chunk.toString('latin1');
          if (/\r\n\r\n/.test(seen)) socket.write(Buffer.from(answer, 'latin1'));
          if (/x-end: soon/i.test(seen)) setTimeout(() => socket.destroy(), 100);
        });
      }),
    );
    const http2 = createHttp2();
    http2.on('stream', (stream, headers) => {
      stream.on('error', () => {});
      stream.respond({ ':status': 200 });
      stream.end(JSON.stringify(headers));
    });
    const clear = await listen(http2 as unknown as Server);
    const { table } = planRouting({
      routes: [route('web'), route('clear')],
      ingresses: [],
      ingressClasses: [],
      httpRoutes: [],
      gateways: [],
      permits: () => false,
      service: () => undefined,
      slices: (key) => [
        {
          addressType: 'IPv4',
          metadata: {},
          ports: [
            key.endsWith('/clear')
              ? { port: clear, protocol: 'TCP', appProtocol: 'kubernetes.io/h2c' }
              : { port: web, protocol: 'TCP' },
          ],
          endpoints: [{ addresses: ['127.0.0.1'] }],
        },
      ],
      certificate: () => undefined,
      check: createCertificateVerifier(),
      ports,
      policy: { domain: 'apps.lab', wildcardRoutes: true },
    });
    await proxy.start();
    proxy.swap(table);
  });
  after(async () => {
    process.off('uncaughtException', note);
    await proxy.stop();
    for (const each of closing) each.close();
  });

  for (const secure of [false, true])
    test(`rejects requests that router and server could parse differently, ${secure ? 'with' : 'no'} TLS`, async () => {
      for (const bytes of REFUSED) {
        seen = '';
        const text = await raw(bytes, /^HTTP\/1\.1 \d+/, 3_000, secure);
        // An invalid body is detected after the head was forwarded, so the request must be left incomplete.
        const isWhole = /0\r\n\r\n$/.test(seen);
        assert.ok(text === '' || /^HTTP\/1\.1 4\d\d /.test(text), `${JSON.stringify(bytes)}: ${text}`);
        assert.ok(seen === '' || (bytes.startsWith(CHUNKED) && !isWhole), `${JSON.stringify(bytes)}: ${seen}`);
      }
      await isAlive();
    });

  test('responds to oversized headers with 431 on both ports, although the client still sends', async () => {
    for (const secure of [false, true])
      for (const length of [33_000, 70_000, 1_000_000]) {
        const request = `GET / HTTP/1.1\r\nHost: web.apps.test\r\nX-A: ${'a'.repeat(length)}\r\n\r\n`;
        assert.match(await raw(request, /\r\n\r\n/, 3_000, secure), /^HTTP\/1\.1 431 /, `${secure} ${length}`);
      }
  });

  test('sends lengths without leading zeros to the server', async () => {
    seen = '';
    await raw(`${POST}Content-Length: 002\r\n\r\nab`, /ok$/);
    assert.match(seen, /\r\nContent-Length: 2\r\n[\s\S]*\r\n\r\nab$/);
  });

  test('rejects methods in lower case, which the server would receive in upper case', async () => {
    seen = '';
    const over = session();
    assert.equal((await ask(over, { ':method': 'delete' })).status, 400);
    assert.equal(seen, '');
    over.destroy();
  });

  test('the router re-encodes chunked bodies and drops chunk extensions', async () => {
    seen = '';
    await raw(`${CHUNKED}2;a="b"\r\nab\r\n0\r\n\r\n`, /ok$/);
    assert.match(seen, /\r\n2\r\nab\r\n0\r\n\r\n$/);
  });

  test('clients cannot set or remove forwarding headers of the router in any spelling', async () => {
    seen = '';
    const lines = ['X_Forwarded_For: 192.0.2.1', 'X-Forwarded_Proto: https', 'Proxy: http://evil.test'];
    lines.push(
      'Content_Length: 9',
      'Transfer_Encoding: chunked',
      'Connection: x-forwarded-for, host, x-forwarded-proto',
    );
    await raw(`GET / HTTP/1.1\r\n${HOST}${lines.join('\r\n')}\r\n\r\n`, /ok$/);
    assert.doesNotMatch(seen, /_|evil|192\.0\.2\.1|https/);
    assert.match(seen, /^GET \/ HTTP\/1\.1\r\nHost: web\.apps\.test\r\nX-Forwarded-For: 127\.0\.0\.1\r\n/);
    assert.match(seen, /X-Forwarded-Proto: http\r\n/);
  });

  test('matches host names case-insensitively, with a port and with a trailing dot', async () => {
    for (const host of ['WEB.Apps.test', 'web.apps.test.', 'web.apps.test:8080', 'WEB.apps.test.:1'])
      assert.match(await raw(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`, /ok$/), /^HTTP\/1\.1 200 /, host);
    assert.match(await raw('GET / HTTP/1.1\r\nHost: web.apps.test..\r\n\r\n', /<\/html>/), /^HTTP\/1\.1 503 /);
  });

  test('treats an upgrade to h2c as a plain request; starts no upgrade before earlier responses are sent', async () => {
    for (const [upgrade, connection] of [
      ['h2c', 'Upgrade, HTTP2-Settings'],
      ['websocket, H2C', 'Upgrade'],
      ['HTTP/2.0', 'upgrade'],
    ]) {
      const headers = `Connection: ${connection}\r\nUpgrade: ${upgrade}\r\nHTTP2-Settings: AAMAAABk\r\n`;
      for (const secure of [false, true]) {
        seen = '';
        await raw(`GET / HTTP/1.1\r\n${HOST}${headers}\r\n`, /ok$/, 3_000, secure);
        assert.match(seen, /^GET \/ /);
        assert.doesNotMatch(seen, /upgrade|http2-settings/i, `${upgrade}, TLS: ${secure}`);
      }
    }
    seen = '';
    answer = '';
    const upgrade = `GET /second HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
    assert.equal(await raw(`GET /first HTTP/1.1\r\n${HOST}\r\n${upgrade}`, /./), '');
    assert.doesNotMatch(seen, /second/);
    await isAlive();
  });

  test('closes the connection after a rejected upgrade, even if the client does not close it', async () => {
    const upgrading = (host: string) => `GET / HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
    answer = OK;
    for (const host of [HOST, 'Host: none.apps.test\r\n']) {
      seen = '';
      const socket = connect({ port: ports.http, host: '127.0.0.1', allowHalfOpen: true });
      socket.on('error', () => {});
      socket.resume().write(upgrading(host));
      await once(socket, 'end');
      await sleep(1_500);
      const closed = new Promise((resolve) => socket.once('close', resolve));
      // The first write is answered with a reset, which the second one reports.
      socket.write('x');
      await sleep(100);
      socket.write('x');
      await Promise.race([closed, sleep(2_000).then(() => assert.fail(`${host}: the connection is still open`))]);
    }
    seen = '';
    answer = 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart';
    const began = performance.now();
    const text = await raw(upgrading(`${HOST}X-End: soon\r\n`), /$^/);
    assert.match(text, /\r\n\r\npart$/);
    assert.ok(performance.now() - began < 2_500, 'an incomplete response ends the connection');
  });

  test('forwards responses to HEAD and with status 204 whose server also sends content', async () => {
    const over = session();
    for (const [method, status] of [
      ['HEAD', 200],
      ['GET', 204],
    ] as const) {
      answer = `HTTP/1.1 ${status} x\r\nContent-Length: 5\r\n\r\nhello`;
      seen = '';
      const text = await raw(`${method} / HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`, /$^/);
      assert.match(text, new RegExp(`^HTTP/1.1 ${status} `));
      assert.doesNotMatch(text, /hello/);
      seen = '';
      assert.deepEqual(await ask(over, { ':method': method }), { status, text: '' });
    }
    over.destroy();
    await isAlive();
  });

  test('replaces response heads that cannot be forwarded with 502, and forwards unusual valid ones', async () => {
    const over = session();
    for (const [answers, status] of [
      [BAD_ANSWERS, 502],
      [ODD_ANSWERS, 200],
    ] as const)
      for (const each of answers) {
        answer = each;
        seen = '';
        const text = await raw(`GET / HTTP/1.1\r\n${HOST}\r\n`, /(?:ok|ok\r\n0\r\n\r\n|<\/html>\n)$/);
        assert.equal(text.slice(0, 13), `HTTP/1.1 ${status} `, JSON.stringify(each));
        seen = '';
        assert.equal((await ask(over, {})).status, status, `HTTP/2: ${JSON.stringify(each)}`);
      }
    over.destroy();
    await isAlive();
  });

  test('removes repeated and connection-specific headers from requests to an HTTP/2 server', async () => {
    const lines = [
      'Content-Type: a',
      'Content-Type: b',
      'If-Match: a',
      'If-Match: b',
      'HTTP2-Settings: AAA',
      'TE: gzip',
    ];
    const text = await raw(`GET / HTTP/1.1\r\nHost: clear.apps.test\r\n${lines.join('\r\n')}\r\n\r\n`, /}/);
    assert.match(text, /^HTTP\/1\.1 200 [\s\S]*"content-type":"a"/);
    assert.doesNotMatch(text, /settings|gzip/);
  });

  test('HTTP/2 pseudo-headers and lengths cannot smuggle a second HTTP/1.1 request', async () => {
    const over = session();
    const path = '/ HTTP/1.1\r\nHost: evil.test\r\n\r\nGET /x';
    const forged: readonly Record<string, string | string[]>[] = [
      { ':path': path },
      { ':path': 'http://evil.test/' },
      { ':path': '*' },
      { ':method': 'GET / HTTP/1.1\r\nX: y' },
      { ':method': 'CONNECT' },
      { ':authority': 'web.apps.test\r\nX: y' },
      { ':authority': 'u@web.apps.test' },
      { ':authority': 'web.apps.test', host: 'clear.apps.test' },
      { foo: 'a\r\nX: y' },
      { 'foo\r\nx': 'a' },
      { 'transfer-encoding': 'chunked' },
      { connection: 'close' },
    ];
    for (const headers of forged) {
      seen = '';
      // The client's library rejects some of them, so each gets its own session.
      const own = session();
      const { status } = await ask(own, headers);
      own.destroy();
      // The library drops a malformed field; the rest of the request may be served.
      const isField = Object.keys(headers).some((name) => name.startsWith('foo'));
      assert.ok(status === undefined || status >= 400 || isField, `${JSON.stringify(headers)}: ${status}`);
      assert.doesNotMatch(seen, isField ? /foo|x: ?y/i : /./, JSON.stringify(headers));
    }
    seen = '';
    const long = await ask(over, { ':method': 'POST', 'content-length': '2' }, 'ab\r\nGET /x HTTP/1.1\r\n');
    assert.doesNotMatch(seen, /GET \/x/, `status ${long.status}`);
    over.destroy();
    await isAlive();
  });

  test('closes a connection that sends too many requests without waiting for responses', async () => {
    const one = 'GET / HTTP/1.1\r\nHost: none.apps.test\r\n\r\n';
    const count = (text: string): number => text.match(/HTTP\/1\.1 503 /g)?.length ?? 0;
    const few = await raw(`${one.repeat(20)}${one.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')}`, /$^/);
    assert.equal(count(few), 21);
    assert.ok(count(await raw(one.repeat(1000), /$^/)) <= 64);
  });

  test('the router combines split cookie headers into one', async () => {
    seen = '';
    const over = session();
    await ask(over, { cookie: ['a=1', 'b=2'] });
    over.destroy();
    assert.equal(seen.match(/^cookie: .*$/gim)?.join('|'), 'Cookie: a=1; b=2');
  });

  test('a stream reset by an HTTP/2 client ends only that stream', async () => {
    const over = session();
    answer = '';
    for (const code of [0, 1, 2, 5, 8, 11]) {
      const stream = over.request({ ':path': '/', ':method': 'POST' });
      stream.on('error', () => {});
      stream.write('part of a body');
      await new Promise((resolve) => setTimeout(resolve, 50));
      stream.close(code);
    }
    const gone = session();
    gone.request({ ':path': '/' }).on('error', () => {});
    await new Promise((resolve) => setTimeout(resolve, 50));
    gone.destroy();
    await new Promise((resolve) => setTimeout(resolve, 100));
    answer = OK;
    seen = '';
    assert.equal((await ask(over, {})).status, 200);
    over.destroy();
    await isAlive();
  });
});
