import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect as connectHttp2 } from 'node:http2';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { type Log, silentLog } from '../../../src/base/log.ts';
import { Channel } from '../../../src/wire/grpc/channel.ts';
import { combineListeners, createRpcListener, type RpcListenerOptions } from '../../../src/wire/grpc/index.ts';
import type { RpcService } from '../../../src/wire/grpc/port.ts';
import { Flag, FrameType, frame, PREFACE, settingsFrame } from '../../../src/wire/http2/http2-frames.ts';
import { systemClock } from '../../client/clocks.ts';
import { makeCertificates } from '../../store/harness.ts';

const service: RpcService = {
  hasService: () => false,
  unary: () => undefined,
  stream: () => undefined,
  http: async ({ path }) => ({ status: 200, contentType: 'text/plain', body: path }),
};

const listener = (options: Partial<RpcListenerOptions> = {}) =>
  createRpcListener({ host: '127.0.0.1', port: 0, log: silentLog, ...options });

/**
 * A client that writes frames and answers pings only if `answers`. Resolves with the milliseconds until it is
 * disconnected, at most `forMs`.
 */
function live(port: number, answers: boolean, forMs: number): Promise<number> {
  const began = performance.now();
  return new Promise((resolve, reject) => {
    let input = Buffer.alloc(0);
    const socket: Socket = connect(port, '127.0.0.1', () => socket.write(Buffer.concat([PREFACE, settingsFrame([])])));
    const timer = globalThis.setTimeout(() => socket.destroy(), forMs);
    socket.on('data', (chunk) => {
      input = Buffer.concat([input, chunk]);
      for (let length = input.readUIntBE(0, 3); input.length >= 9 + length; ) {
        const [type, flags] = [input[3], input[4] ?? 0];
        if (type === FrameType.ping && (flags & Flag.ack) === 0 && answers) {
          socket.write(frame(FrameType.ping, Flag.ack, 0, input.subarray(9, 9 + length)));
        }
        input = input.subarray(9 + length);
        if (input.length < 9) break;
        length = input.readUIntBE(0, 3);
      }
    });
    socket.on('error', reject);
    socket.on('close', () => {
      clearTimeout(timer);
      resolve(performance.now() - began);
    });
  });
}

test('disconnects a client that does not answer pings, and keeps a client that answers', async () => {
  const served = listener({ keepAlive: { intervalMs: 200, timeoutMs: 100 } });
  const { port } = await served.listen(service);
  try {
    const [silent, lively] = await Promise.all([live(port, false, 5000), live(port, true, 1500)]);
    assert.ok(silent >= 200 && silent < 3000, `${silent} ms`);
    assert.ok(lively >= 1450, `${lively} ms`);
  } finally {
    await served.close(0);
  }
});

test('keeps a client that answers pings even if the ping timeout spans several ping intervals', async () => {
  const cases = [
    { intervalMs: 100, timeoutMs: 100 },
    { intervalMs: 100, timeoutMs: 300 },
    { intervalMs: 50, timeoutMs: 101 },
  ];
  const lives = cases.map(async (keepAlive) => {
    const served = listener({ keepAlive });
    const { port } = await served.listen(service);
    const [silent, lively] = await Promise.all([live(port, false, 5000), live(port, true, 2500)]);
    await served.close(0);
    assert.ok(silent < 3000, `${JSON.stringify(keepAlive)}: ${silent} ms`);
    assert.ok(lively >= 2450, `${JSON.stringify(keepAlive)}: ${lively} ms`);
  });
  await Promise.all(lives);
});

test('a listener for HTTP only rejects gRPC connections and paths that are not configured', async () => {
  const served = listener({ grpc: false, httpPaths: new Set(['/metrics']) });
  const { port } = await served.listen(service);
  try {
    const ask = async (path: string): Promise<number> => (await fetch(`http://127.0.0.1:${port}${path}`)).status;
    assert.deepEqual([await ask('/metrics?x'), await ask('/health')], [200, 404]);
    assert.ok((await live(port, false, 3000)) < 2000);
  } finally {
    await served.close(0);
  }
});

/** Sends one request over HTTP/2 with Node's client. */
function ask2(
  url: string,
  { path, body = '', ...options }: { path: string; body?: string; ca?: string },
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const session = connectHttp2(url, options);
    session.on('error', reject);
    const request = session.request({ ':path': path, ':method': body === '' ? 'GET' : 'POST' });
    let status = 0;
    let text = '';
    request.setEncoding('utf8').on('error', reject);
    request.on('response', (headers) => {
      status = Number(headers[':status']);
    });
    request.on('data', (chunk: string) => {
      text += chunk;
    });
    request.on('end', () => {
      session.close();
      resolve({ status, text });
    });
    if (body !== '') request.end(body);
  });
}

test('serves HTTP requests over HTTP/2 with bodies of any length and the same rules as over HTTP/1.1', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'listener-'));
  const { server, ca } = await makeCertificates(directory);
  const requested = Promise.withResolvers<void>();
  const echo: RpcService = {
    ...service,
    http: async ({ path, body, closed }) => {
      if (path === '/echo') return { status: 200, contentType: 'text/plain', body: `${await body()}` };
      if (path === '/lines')
        return {
          status: 200,
          contentType: 'text/plain',
          body: '',
          follow: (out) => {
            closed(requested.resolve);
            for (let i = 0; i < 3; i += 1) out.write(`line ${i}\n`);
            out.end();
          },
        };
      return { status: 404, contentType: 'text/plain', body: '' };
    },
  };
  // The listener is like that of etcd's HTTP-only client addresses and metrics, with TLS, where clients select HTTP/2.
  const served = listener({ tls: server, grpc: false, httpPaths: new Set(['/echo', '/lines']) });
  const { port } = await served.listen(echo);
  const url = `https://localhost:${port}`;
  try {
    const long = 'x'.repeat(300_000);
    assert.deepEqual(await ask2(url, { path: '/echo?a', body: long, ca }), { status: 200, text: long });
    assert.deepEqual(await ask2(url, { path: '/lines', ca }), {
      status: 200,
      text: 'line 0\nline 1\nline 2\n',
    });
    await requested.promise;
    assert.deepEqual(await ask2(url, { path: '/metrics', ca }), {
      status: 404,
      text: '404 page not found\n',
    });
  } finally {
    await served.close(0);
    await rm(directory, { recursive: true });
  }
  const named = listener({ httpHosts: new Set(['known']) });
  const { port: clear } = await named.listen(echo);
  try {
    const { status } = await ask2(`http://127.0.0.1:${clear}`, { path: '/echo', body: 'x' });
    assert.equal(status, 421);
  } finally {
    await named.close(0);
  }
});

test('serves connections with and without TLS on one port', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'listener-'));
  const { server, ca } = await makeCertificates(directory);
  const served = listener({ tls: server, alsoInTheClear: true });
  const { port } = await served.listen(service);
  try {
    assert.equal((await fetch(`http://127.0.0.1:${port}/clear`)).status, 200);
    const { text } = await ask2(`https://localhost:${port}`, { path: '/tls', ca });
    assert.equal(text, '/tls');
    // A silent client only occupies a slot until it leaves or times out.
    const silent = connect(port, '127.0.0.1');
    await new Promise<void>((resolve) => silent.once('connect', () => resolve()));
    silent.destroy();
  } finally {
    await served.close(0);
    await rm(directory, { recursive: true });
  }
});

test('logs only the first, tenth and hundredth rejected connection of a client', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'listener-'));
  const { server, ca } = await makeCertificates(directory);
  const output: unknown[] = [];
  const log: Log = {
    ...silentLog,
    named: () => log,
    v: (level, message, fields) => level <= 2 && message === 'connection refused' && output.push(fields?.['times']),
  };
  const served = listener({ tls: { ...server, ca }, log });
  const { port } = await served.listen(service);
  try {
    for (let times = 0; times < 25; times += 1) {
      const socket = connectTls({ port, host: 'localhost', ca, ALPNProtocols: ['h2'] });
      await new Promise<void>((resolve) => {
        socket.on('error', () => {});
        socket.on('close', () => resolve());
      });
    }
    assert.deepEqual(output, [1, 10]);
  } finally {
    await served.close(0);
    await rm(directory, { recursive: true });
  }
});

test('the client increases its retry pause after the server rejects its certificate', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'listener-'));
  const { server, ca } = await makeCertificates(directory);
  let connections = 0;
  const front = createServer((socket) => {
    connections += 1;
    pipeline(socket, connect(port, '127.0.0.1'), socket, () => {});
  });
  const served = listener({ tls: { ...server, ca } });
  const { port } = await served.listen(service);
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  const endpoints = [`https://localhost:${(front.address() as { port: number }).port}`];
  try {
    // The server rejects a client without certificate, and the client rejects another authority.
    for (const materials of [{ ca }, {}]) {
      connections = 0;
      const channel = new Channel({ endpoints, ...materials, lastRetryMs: 100, log: silentLog, clock: systemClock });
      await assert.rejects(channel.unary('/echo', Buffer.alloc(0), 2000), /unavailable/);
      channel.close();
      assert.ok(connections >= 2 && connections <= 8, `${connections} connections`);
    }
  } finally {
    front.close();
    await served.close(0);
    await rm(directory, { recursive: true });
  }
});

test('opens either all configured listen addresses or none', async () => {
  const blocker = createServer();
  await new Promise<void>((resolve) => blocker.listen(0, '127.0.0.1', resolve));
  const used = (blocker.address() as { port: number }).port;
  const directory = await mkdtemp(join(tmpdir(), 'listener-'));
  const socket = join(directory, 's');
  try {
    const refused = combineListeners([listener({ path: socket }), listener({ port: used })]);
    await assert.rejects(
      refused.listen(service),
      new RegExp(`cannot listen on 127\\.0\\.0\\.1:${used}: the address is in use`),
    );
    const both = combineListeners([listener({ path: socket }), listener({ host: '::' })]);
    await both.listen(service);
    const [first, second] = both.addresses;
    assert.equal(first?.host, socket);
    for (const host of ['127.0.0.1', '[::1]'])
      assert.equal((await fetch(`http://${host}:${second?.port}/`)).status, 200);
    await both.close(0);
    await writeFile(socket, 'a file of somebody');
    await assert.rejects(listener({ path: socket }).listen(service), /address is in use/);
  } finally {
    blocker.close();
    await rm(directory, { recursive: true });
  }
});

test('accepts TLS clients while certificates change with every connection and other clients disconnect early', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'listener-'));
  const { ca, server, client } = await makeCertificates(directory);
  // A new object each time causes a new TLS context for each handshake.
  const source = { current: () => setTimeout(Math.random() * 10, undefined).then(() => ({ ...server, ca })) };
  const served = listener({ tls: source });
  const { port } = await served.listen(service);
  const leave = (reset: boolean): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.write(Buffer.from('16030100', 'hex'));
        void setTimeout(Math.random() * 10).then(() => (reset ? socket.resetAndDestroy() : socket.destroy()));
      });
      socket.on('error', () => {});
      socket.on('close', () => resolve());
    });
  const ask = (): Promise<string> =>
    new Promise((resolve, reject) => {
      let answer = '';
      const socket = connectTls({ host: '127.0.0.1', port, ca, ...client }, () =>
        socket.write('GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'),
      );
      socket.on('data', (chunk) => {
        answer += chunk;
      });
      socket.on('error', reject);
      socket.on('close', () => resolve(answer.slice(0, 15)));
    });
  try {
    const all = Array.from({ length: 200 }, (_, index) => (index % 10 === 0 ? ask() : leave(index % 2 === 0)));
    const answers = (await Promise.all(all)).filter((answer) => answer !== undefined);
    assert.deepEqual(answers, new Array(20).fill('HTTP/1.1 200 OK'));
  } finally {
    await served.close(0);
    await rm(directory, { recursive: true });
  }
});

test('connects to a Unix socket by absolute path and by relative name, such as unix://localhost:2380 of etcd', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'he-unix-'));
  const before = process.cwd();
  process.chdir(directory);
  const socket = 'localhost:2380';
  const echo: RpcService = {
    ...service,
    hasService: () => true,
    unary: () => (message, call) => call.reply(message),
  };
  const served = listener({ path: socket });
  try {
    await served.listen(echo);
    for (const endpoint of [`unix://${socket}`, `unix://${join(directory, socket)}`]) {
      const channel = new Channel({ endpoints: [endpoint], log: silentLog, clock: systemClock });
      assert.equal((await channel.unary('/a/b', Buffer.from('x'), 5000)).toString(), 'x', endpoint);
      channel.close();
    }
  } finally {
    await served.close(0);
    process.chdir(before);
    await rm(directory, { recursive: true, force: true });
  }
});

test('cancels a call whose signal is aborted and informs the server', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'he-cancel-'));
  const path = join(directory, 'socket');
  const received = Promise.withResolvers<void>();
  const informed = Promise.withResolvers<void>();
  const silent: RpcService = {
    ...service,
    hasService: () => true,
    unary: () => (_message, call) => {
      call.whenCancelled(() => informed.resolve());
      received.resolve();
    },
  };
  const served = listener({ path });
  const channel = new Channel({ endpoints: [`unix://${path}`], log: silentLog, clock: systemClock });
  try {
    await served.listen(silent);
    const cancel = new AbortController();
    const call = channel.unary('/a/b', Buffer.alloc(0), 20_000, { signal: cancel.signal });
    await received.promise;
    cancel.abort();
    await assert.rejects(call, /cancelled/);
    await informed.promise;
    await assert.rejects(channel.unary('/a/b', Buffer.alloc(0), 20_000, { signal: cancel.signal }), /cancelled/);
  } finally {
    channel.close();
    await served.close(0);
    await rm(directory, { recursive: true, force: true });
  }
});

test('uses TLS on a unixs socket, and verifies the socket name without its port, or localhost', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'he-unixs-'));
  const certificates = await makeCertificates(directory);
  const before = process.cwd();
  process.chdir(directory);
  const echo: RpcService = {
    ...service,
    hasService: () => true,
    unary: () => (message, call) => call.reply(message),
  };
  const { server, client, ca } = certificates;
  const served = ['localhost:2380', 'elsewhere:2380'].map((path) => listener({ path, tls: { ...server, ca } }));
  const ask = async (endpoint: string): Promise<string> => {
    const channel = new Channel({ endpoints: [endpoint], ca, ...client, log: silentLog, clock: systemClock });
    try {
      return (await channel.unary('/a/b', Buffer.from('x'), 1000)).toString();
    } finally {
      channel.close();
    }
  };
  try {
    for (const each of served) await each.listen(echo);
    assert.equal(await ask('unixs://localhost:2380'), 'x');
    assert.equal(await ask(`unixs://${join(directory, 'localhost:2380')}`), 'x');
    // The certificate is valid for localhost and 127.0.0.1.
    await assert.rejects(ask('unixs://elsewhere:2380'), /elsewhere/);
  } finally {
    for (const each of served) await each.close(0);
    process.chdir(before);
    await rm(directory, { recursive: true, force: true });
  }
});

test('closes an HTTP/1.1 connection whose request header is not complete in time', async () => {
  const served = listener({ limits: { authenticated: 2 } });
  const { port } = await served.listen(service);
  try {
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => socket.write('GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: '));
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk;
      });
      socket.on('error', reject);
      socket.on('close', () => resolve(text));
    });
    assert.match(answer, /^HTTP\/1\.1 408 /);
  } finally {
    await served.close(0);
  }
});

test('at the connection limit, closes the connection of an idle client instead of a busy one', async () => {
  const stuck: RpcService = { ...service, http: () => new Promise(() => {}) };
  const served = listener({ limits: { authenticated: 2 } });
  const { port } = await served.listen(stuck);
  const ask = (): Promise<Socket> =>
    new Promise((resolve, reject) => {
      const socket: Socket = connect(port, '127.0.0.1', () => {
        socket.write(Buffer.concat([PREFACE, settingsFrame([])]));
        socket.once('data', () => resolve(socket));
      });
      socket.on('error', reject);
    });
  try {
    const busy = connectHttp2(`http://127.0.0.1:${port}`);
    busy.request({ ':path': '/stuck' }).on('error', () => {});
    await new Promise((resolve) => busy.once('remoteSettings', resolve));
    const idle = await ask();
    const ended = new Promise((resolve) => idle.once('close', resolve));
    const next = await ask();
    await ended;
    assert.equal(busy.destroyed, false);
    assert.equal(next.destroyed, false);
    busy.destroy();
    next.destroy();
  } finally {
    await served.close(0);
  }
});
