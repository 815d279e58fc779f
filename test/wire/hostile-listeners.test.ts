/** Invalid input on every listener of the host process: it must neither end the process nor delay other clients. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { toNodeName } from '../../src/base/brand.ts';
import { silentLog as log } from '../../src/base/log.ts';
import type { ApiClient } from '../../src/client/types.ts';
import { serveAgent } from '../../src/gossip/agent/server.ts';
import { systemClock as clock } from '../../src/host/process/process.ts';
import { listenKubelet } from '../../src/kubelet/io/kubelet-listener.ts';
import { createStreamingServer } from '../../src/kubelet/io/streaming/server.ts';
import { Access } from '../../src/kubelet/server/access.ts';
import { KubeletServer, type KubeletServerOptions } from '../../src/kubelet/server/server.ts';
import { createHealthPorts } from '../../src/network/services/io/health-ports/health-ports.ts';
import { listenForConfigs } from '../../src/openshift/machine-config/io/server-listener/listener.ts';
import { createMachineConfigServer } from '../../src/openshift/machine-config/server/server.ts';
import { createRpcListener } from '../../src/wire/grpc/index.ts';
import { settingsFrame } from '../../src/wire/http2/http2-frames.ts';
import { createAuthority, type TestCertificate } from '../client/certificates.ts';
import { generator } from '../support/random.ts';

const next = generator(20_2613);
const random = (most: number): number => Math.floor(next() * most);

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const UPGRADE = 'Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n';
const WEBSOCKET =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';

/** Invalid inputs, each in the pieces in which a client writes it. */
const CASES: readonly (readonly Buffer[])[] = [
  ['\0'],
  ['GET / HTTP/2.0\r\nHost: x\r\n\r\n'],
  ['GET / HTTP/0.9\r\n\r\n'],
  ['GET / HTTP/1.1\r\n\r\n'],
  ['CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['GET /pods HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n', 'ab'],
  ['GET /pods HTTP/1.1\r\nHost: x\r\nExpect: nonsense\r\n\r\n'],
  ['POST /run/a/b/c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n'],
  [
    'POST /run/a/b/c HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n',
  ],
  [`GET /${'a'.repeat(100_000)} HTTP/1.1\r\n\r\n`],
  [`GET / HTTP/1.1\r\n${'x: y\r\n'.repeat(20_000)}\r\n`],
  [`GET /exec/a/b/c?command=x&output=1 HTTP/1.1\r\nHost: x\r\n${UPGRADE}\r\n`, 'garbage'],
  [`POST /exec/a/b/c?command=x&output=1 HTTP/1.1\r\nHost: x\r\n${UPGRADE}Content-Length: 9\r\n\r\n`],
  [`GET /exec/a/b/c?command=x&output=1 HTTP/1.1\r\nHost: x\r\n${WEBSOCKET}\r\n`, '\xff\xff\xff\xff'],
  [`GET /portForward/a/b HTTP/1.1\r\nHost: x\r\n${WEBSOCKET}\r\n`],
  [`GET /config/worker HTTP/1.1\r\nHost: x\r\nAccept: ${';q=0,*/*'.repeat(1500)}\r\n\r\n`],
  [
    `GET /config/worker HTTP/1.1\r\nHost: x\r\nAccept: application/vnd.coreos.ignition+json;version=${'9'.repeat(9000)}.0.0\r\n\r\n`,
  ],
  ['GET /config/..%2f..%2fetc HTTP/1.1\r\nHost: x\r\n\r\n', 'GET /config/%00 HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['GET http://elsewhere/pods HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['GET //elsewhere/pods HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['GET /logs/../../../etc/shadow HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['GET /logs/%2e%2e/%2e%2e/etc/shadow HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['GET /pods HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \r\n\r\n'],
  ['GET /pods HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(200)],
  [
    '{"id":1e999,"method":"members"}\n{"id":1,"method":"__proto__"}\n[]\nnull\n{"id":1,"method":"constructor","params":null}\n',
  ],
  [`{"id":1,"method":"members","params":${'['.repeat(20_000)}\n`],
  [`{"id":1,"method":"query","params":{"name":"a","payload":{"__proto__":{}}}}\n`.repeat(300)],
]
  .map((pieces): readonly Buffer[] => pieces.map((piece) => Buffer.from(piece, 'latin1')))
  .concat([
    [PREFACE],
    [Buffer.concat([PREFACE, settingsFrame([]), Buffer.from([0, 0, 1, 9, 4, 0, 0, 0, 1, 0x82])])],
    [Buffer.concat([PREFACE, settingsFrame([]), Buffer.alloc(9 * 5_000)])],
    [Buffer.from([0x16, 3, 1, 0xff, 0xff]), Buffer.alloc(70_000, 1)],
  ]);

interface Target {
  readonly name: string;
  readonly port?: number;
  readonly open: (as?: TestCertificate) => Socket;
  /** A valid request and its expected response. */
  readonly fine: readonly [request: string, answer: RegExp];
}

const TLS = { rejectUnauthorized: false, maxVersion: 'TLSv1.2' } as const;

/** TLS over a duplex stream, so that the connection below it can be reset. */
function overStream(below: Socket, as: TestCertificate): TLSSocket {
  const between = Duplex.from({ readable: below, writable: below });
  between.on('error', () => {});
  below.on('error', () => {});
  return connectTls({ socket: between, ...TLS, ...as });
}

describe('hostile clients of listeners', { timeout: 120_000 }, () => {
  const authority = createAuthority('own');
  const foreign = createAuthority('own');
  const serving = authority.issue('127.0.0.1', { server: true });
  const admin = authority.issue('admin');
  const impostor = foreign.issue('admin');
  const targets: Target[] = [];
  const closing: (() => Promise<unknown>)[] = [];
  let directory: string;
  const reviewed: string[] = [];
  /** Response of the API server to reviews, as a broken authorization webhook could cause it. */
  let review: unknown = {};
  const client = {
    request: async (_: string, path: string) => {
      reviewed.push(path);
      return review;
    },
  } as unknown as ApiClient;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'listeners-'));
    const access = new Access({ nodeName: toNodeName('n'), clock, log });
    access.connect(client);
    const kubelet = new KubeletServer({
      listen: listenKubelet,
      address: '127.0.0.1',
      port: 0,
      access,
      clock,
      log,
      certificate: async () => serving,
      clientCa: async () => authority.cert,
      pods: { workers: () => [], byName: () => undefined },
      streaming: createStreamingServer({ clock, log }),
      hostLogs: { logs: { names: async () => undefined, open: async () => undefined }, units: new Map() },
    } as unknown as KubeletServerOptions);
    const kubeletPort = await kubelet.start();
    closing.push(() => kubelet.stop());
    const overTls =
      (port: number) =>
      (as?: TestCertificate): TLSSocket =>
        connectTls({ host: '127.0.0.1', port, ...TLS, ...as });
    targets.push({
      name: 'kubelet',
      port: kubeletPort,
      open: overTls(kubeletPort),
      fine: ['GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', /^HTTP\/1\.1 401 /],
    });
    const configs = createMachineConfigServer({ client, podNetworks: ['10.9.0.0/16'], log });
    const mcs = await listenForConfigs({
      address: '127.0.0.1',
      port: 0,
      tls: { cert: serving.cert, key: serving.key },
      admits: configs.admits,
      handle: configs.handle,
    });
    closing.push(() => mcs.close());
    targets.push({
      name: 'machine config server',
      port: mcs.port,
      open: overTls(mcs.port),
      fine: ['GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', /^HTTP\/1\.1 200 /],
    });
    const rpc = createRpcListener({ host: '127.0.0.1', port: 0, tls: { ...serving, ca: authority.cert }, log });
    const { port } = await rpc.listen({
      hasService: () => true,
      unary: () => undefined,
      stream: () => undefined,
      http: async () => ({ status: 200, contentType: 'text/plain', body: 'fine' }),
    });
    closing.push(() => rpc.close(0));
    targets.push({
      name: 'gRPC',
      port,
      open: (as = admin) => overTls(port)(as),
      fine: ['GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', /fine$/],
    });
    const health = await createHealthPorts()
      .listen(0, () => ({ namespace: 'a', name: 'b', localEndpoints: 1 }))
      .catch(() => undefined);
    if (health !== undefined) closing.push(async () => health.close());
    const socket = join(directory, 'agent.sock');
    const agent = await serveAgent({
      socket,
      log,
      service: { open: () => ({ request: async () => ({}), closed: () => {} }) } as never,
    });
    closing.push(() => agent.stop());
    targets.push({ name: 'agent', open: () => connect(socket), fine: ['{"id":7,"method":"x"}\n', /"id":7/] });
  });
  after(async () => {
    for (const close of closing) await close();
    await rm(directory, { recursive: true });
  });

  /** Everything received until the server closes, or until `ms` have passed. */
  const talk = (socket: Socket, pieces: readonly Buffer[], ms: number, until?: RegExp): Promise<string> =>
    new Promise((resolve) => {
      let text = '';
      const timer = setTimeout(() => socket.destroy(), ms);
      socket.on('error', () => {});
      socket.on('data', (chunk: Buffer) => {
        if (text.length < 100_000) text += chunk.toString('latin1');
        if (until?.test(text) === true) socket.destroy();
      });
      socket.on('close', () => {
        clearTimeout(timer);
        resolve(text);
      });
      for (const piece of pieces) socket.write(piece);
    });

  const isFine = async ({ name, open, fine: [request, answer] }: Target): Promise<void> => {
    assert.match(await talk(open(), [Buffer.from(request)], 5_000, answer), answer, name);
  };

  it('listeners survive invalid requests from clients with no, a valid or a foreign certificate', async () => {
    for (const target of targets) {
      await Promise.all(CASES.map((pieces, i) => talk(target.open([undefined, admin, impostor][i % 3]), pieces, 150)));
      await isFine(target);
    }
  });

  it('listeners survive clients that disconnect at any moment', async () => {
    for (const target of targets) {
      for (let round = 0; round < 3; round += 1)
        await Promise.all(
          CASES.map(async (pieces) => {
            const { port } = target;
            const below = round === 1 && port !== undefined ? connect({ host: '127.0.0.1', port }) : undefined;
            const socket =
              below === undefined ? target.open(round === 0 ? undefined : admin) : overStream(below, admin);
            socket.on('error', () => {});
            for (const piece of pieces) socket.write(piece);
            await new Promise((resolve) => setTimeout(resolve, random(20)));
            if (below === undefined) socket.destroy();
            else below.resetAndDestroy();
          }),
        );
      await isFine(target);
    }
  });

  it('listeners survive requests with random damage', async () => {
    for (const target of targets) {
      for (let round = 0; round < 2; round += 1)
        await Promise.all(
          CASES.map((pieces) => {
            const bytes = Buffer.from(Buffer.concat(pieces));
            for (let n = random(6); n >= 0; n -= 1) bytes[random(bytes.length)] = random(256);
            return talk(target.open(admin), [bytes], 60);
          }),
        );
      await isFine(target);
    }
  });

  it('listeners disconnect a TLS client that renegotiates repeatedly', async () => {
    for (const target of targets.filter(({ name }) => name !== 'agent')) {
      const socket = target.open(admin) as TLSSocket;
      socket.on('error', () => {});
      await new Promise((resolve) => socket.once('secureConnect', resolve));
      let done = 0;
      while (!socket.destroyed && done < 20) {
        const outcome = await new Promise<boolean>((resolve) => {
          socket.once('close', () => resolve(false));
          if (socket.renegotiate({ rejectUnauthorized: false }, (error) => resolve(error === null)) === undefined)
            resolve(false);
          setTimeout(() => resolve(false), 300);
        });
        if (!outcome) break;
        done += 1;
      }
      assert.ok(done < 20, `${target.name}: ${done} renegotiations`);
      socket.destroy();
      await isFine(target);
    }
  });

  it('the kubelet denies a request if the token review returns an invalid response', async () => {
    const [kubelet] = targets;
    assert.ok(kubelet !== undefined);
    const request = [
      Buffer.from('GET /pods HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer abc\r\nConnection: close\r\n\r\n'),
    ];
    const answers: readonly unknown[] = [
      ...[null, {}, [], 'yes', 7],
      { status: { authenticated: 'true', user: { username: 'a' } } },
      { status: { authenticated: true } },
      { status: { authenticated: true, user: { username: 7 } } },
      { status: { authenticated: true, user: { username: '' } } },
      { status: { authenticated: true, user: null } },
      { status: { authenticated: true, user: { username: 'a', groups: 'system:masters' } } },
      { status: { authenticated: true, user: { username: 'a', groups: [7, null] } } },
      { status: { authenticated: true, user: { username: 'b', extra: { a: 'b' } } } },
      { status: { authenticated: true, user: { username: 'c', uid: {} }, allowed: 'true' } },
    ];
    for (const [i, answer] of answers.entries()) {
      review = answer;
      const text = await talk(
        kubelet.open(),
        request.map((bytes) => Buffer.from(bytes.toString().replace('abc', `token-${i}`))),
        2_000,
      );
      assert.match(text, /^HTTP\/1\.1 40[13] /, JSON.stringify(answer));
    }
    review = {};
  });
});
