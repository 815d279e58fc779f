/** The wire protocols: cases that kubectl does not cover, and attacks. */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { constants, createDeflate, createInflate } from 'node:zlib';
import { WebSocket } from 'ws';
import { silentLog } from '../../../../src/base/log.ts';
import type { StreamingServer } from '../../../../src/kubelet/io/streaming/port.ts';
import { createStreamingServer } from '../../../../src/kubelet/io/streaming/server.ts';
import type { AttachOptions } from '../../../../src/runtime/port.ts';
import { SPDY_DICTIONARY, SPDY_DICTIONARY_ID } from '../../../../src/wire/spdy/dictionary.ts';
import {
  createStoredDeflate,
  decodeFrameHeader,
  decodeHeaderBlock,
  encodeControlFrame,
  encodeDataHeader,
  encodeHeaderBlock,
  encodeWords,
  FLAG_FIN,
  FrameType,
} from '../../../../src/wire/spdy/spdy-frames.ts';
import { realClock } from './pod-server.ts';
import { openSocket, type SpawnedProcess, spawnProcess } from './processes.ts';

interface Frame {
  readonly control: boolean;
  readonly type: number;
  readonly streamId: number;
  readonly flags: number;
  readonly payload: Buffer;
}

/** A minimal SPDY client with real compression, which records received frames. */
class Client {
  readonly frames: Frame[] = [];
  readonly socket: Socket;
  head = '';
  ended = false;
  #buffer: Buffer = Buffer.alloc(0);
  #wake: () => void = () => {};
  readonly #deflate = createDeflate({ dictionary: SPDY_DICTIONARY, flush: constants.Z_SYNC_FLUSH });

  constructor(port: number, path: string, headers: Readonly<Record<string, string>>) {
    this.socket = connect(port, '127.0.0.1');
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    this.socket.write(`POST ${path} HTTP/1.1\r\nHost: pod\r\nContent-Length: 0\r\n${lines.join('')}\r\n`);
    this.socket.on('error', () => {});
    this.socket.on('data', (chunk: Buffer) => this.#take(chunk));
    this.socket.on('close', () => {
      this.ended = true;
      this.#wake();
    });
  }

  static spdy(port: number, query: string, protocol = 'v4.channel.k8s.io', path = '/exec'): Client {
    const headers = { Connection: 'Upgrade', Upgrade: 'SPDY/3.1', 'X-Stream-Protocol-Version': protocol };
    return new Client(port, `${path}?${query}`, headers);
  }

  #take(chunk: Buffer): void {
    this.#buffer = Buffer.concat([this.#buffer, chunk]);
    if (!this.head.includes('\r\n\r\n')) {
      const end = this.#buffer.indexOf('\r\n\r\n');
      if (end < 0) return;
      this.head = this.#buffer.toString('latin1', 0, end + 4);
      this.#buffer = this.#buffer.subarray(end + 4);
    }
    while (this.head.startsWith('HTTP/1.1 101') && this.#buffer.length >= 8) {
      const { control, type, streamId, flags, length } = decodeFrameHeader(this.#buffer);
      if (this.#buffer.length < 8 + length) break;
      this.frames.push({ control, type, streamId, flags, payload: this.#buffer.subarray(8, 8 + length) });
      this.#buffer = this.#buffer.subarray(8 + length);
    }
    this.#wake();
  }

  async until<T>(find: () => T | undefined | false): Promise<T> {
    for (const deadline = Date.now() + 5_000; ; ) {
      const found = find();
      if (found !== undefined && found !== false) return found;
      assert.ok(
        Date.now() < deadline && !this.ended,
        `gave up; ended=${this.ended} head=${this.head} frames=${JSON.stringify(this.frames)}`,
      );
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        setTimeout(resolve, 50).unref();
      });
    }
  }

  compress(headers: Readonly<Record<string, string>>): Promise<Buffer> {
    return new Promise((resolve) => {
      const parts: Buffer[] = [];
      this.#deflate.removeAllListeners('data').on('data', (part: Buffer) => parts.push(part));
      this.#deflate.write(encodeHeaderBlock(new Map(Object.entries(headers))), () =>
        setImmediate(() => resolve(Buffer.concat(parts))),
      );
    });
  }

  async open(id: number, headers: Readonly<Record<string, string>>, flags = 0): Promise<void> {
    const fixed = Buffer.alloc(10);
    fixed.writeUInt32BE(id);
    this.socket.write(
      encodeControlFrame(FrameType.synStream, flags, Buffer.concat([fixed, await this.compress(headers)])),
    );
  }

  data(id: number, bytes: string | Buffer, flags = 0): void {
    this.socket.write(Buffer.concat([encodeDataHeader(id, flags, bytes.length), Buffer.from(bytes)]));
  }

  received(id: number): Buffer {
    return Buffer.concat(
      this.frames.filter((frame) => !frame.control && frame.streamId === id).map((frame) => frame.payload),
    );
  }

  closed(): Promise<unknown> {
    return this.ended ? Promise.resolve() : new Promise((resolve) => this.socket.once('close', resolve));
  }
}

describe('streaming protocols', { timeout: 60_000 }, () => {
  let server: Server;
  let streaming: StreamingServer;
  let port = 0;
  let processes: SpawnedProcess[] = [];
  const sessions: Promise<void>[] = [];

  before(async () => {
    streaming = createStreamingServer({ clock: realClock, log: silentLog });
    server = createServer((_request, response) => response.end());
    server.on('upgrade', (request, socket, head) => {
      const url = new URL(request.url ?? '', 'http://pod');
      const flag = (name: string): boolean => url.searchParams.get(name) === '1';
      const wanted = { stdin: flag('stdin'), stdout: flag('stdout'), stderr: flag('stderr'), tty: flag('tty') };
      sessions.push(
        url.pathname === '/forward'
          ? streaming.handlePortForward(request, socket, head, openSocket)
          : streaming.handleRemoteCommand(request, socket, head, wanted, (streams: AttachOptions) => {
              const process = spawnProcess(url.searchParams.getAll('command'), streams);
              processes.push(process);
              return Promise.resolve(process);
            }),
      );
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    port = (server.address() as AddressInfo).port;
  });
  after(async () => {
    await streaming.stop();
    await Promise.all(sessions);
    server.closeAllConnections();
    server.close();
  });

  const query = (command: readonly string[], ...flags: string[]): string =>
    [...command.map((word) => `command=${encodeURIComponent(word)}`), ...flags.map((flag) => `${flag}=1`)].join('&');

  it('the SPDY header dictionary equals the dictionary in the specification', () => {
    let a = 1;
    let b = 0;
    for (const byte of SPDY_DICTIONARY) {
      a = (a + byte) % 65521;
      b = (b + a) % 65521;
    }
    assert.equal(((b << 16) | a) >>> 0, SPDY_DICTIONARY_ID);
    assert.equal(SPDY_DICTIONARY.length, 1423);
  });

  it('writes header blocks that a standard zlib inflater can read in sequence', async () => {
    const wrap = createStoredDeflate();
    const inflate = createInflate({ dictionary: SPDY_DICTIONARY, finishFlush: constants.Z_SYNC_FLUSH });
    const blocks = [new Map([['a', 'b']]), new Map<string, string>(), new Map([['long', 'x'.repeat(100_000)]])];
    const parts: Buffer[] = [];
    inflate.on('data', (part: Buffer) => parts.push(part));
    for (const block of blocks) inflate.write(wrap(encodeHeaderBlock(block)));
    await new Promise((resolve) => inflate.end(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(Buffer.concat(parts), Buffer.concat(blocks.map(encodeHeaderBlock)));
    for (const block of blocks) assert.deepEqual(decodeHeaderBlock(encodeHeaderBlock(block)), block);
  });

  it('exec sends the exit code on the error stream after stdout and stderr have ended', async () => {
    const client = Client.spdy(port, query(['sh', '-c', 'cat; echo e >&2; exit 9'], 'stdin', 'stdout', 'stderr'));
    await client.open(1, { streamtype: 'error' }, FLAG_FIN);
    await client.open(3, { streamtype: 'stdin' });
    await client.open(5, { streamtype: 'stdout' }, FLAG_FIN);
    await client.open(7, { streamtype: 'stderr' }, FLAG_FIN);
    client.data(3, 'to the ');
    client.data(3, 'end', FLAG_FIN);
    await client.closed();
    assert.match(client.head, /X-Stream-Protocol-Version: v4\.channel\.k8s\.io\r\n/);
    assert.equal(client.received(5).toString(), 'to the end');
    assert.equal(client.received(7).toString(), 'e\n');
    const status = JSON.parse(client.received(1).toString());
    assert.deepEqual([status.status, status.reason], ['Failure', 'NonZeroExitCode']);
    assert.deepEqual(status.details.causes, [{ reason: 'ExitCode', message: '9' }]);
    for (const id of [1, 5, 7]) {
      assert.ok(
        client.frames.some((frame) => !frame.control && frame.streamId === id && (frame.flags & FLAG_FIN) !== 0),
        `stream ${id} ended`,
      );
    }
  });

  it('exec in older protocol versions reports a failure as plain text and a success as an empty stream', async () => {
    for (const [protocol, wanted] of [
      ['v3.channel.k8s.io', /exit code 3/],
      ['channel.k8s.io', /exit code 3/],
    ] as const) {
      const client = Client.spdy(port, query(['sh', '-c', 'exit 3'], 'stdout'), protocol);
      await client.open(1, { streamtype: 'error' });
      await client.open(3, { streamtype: 'stdout' });
      await client.closed();
      assert.match(client.received(1).toString(), wanted);
    }
  });

  it('answers pings, and respects flow-control windows after the peer has announced them', async () => {
    const client = Client.spdy(port, query(['head', '-c', '300000', '/dev/zero'], 'stdout'));
    const settings = Buffer.alloc(12);
    settings.writeUInt32BE(1, 0);
    settings.writeUInt32BE(7, 4);
    settings.writeUInt32BE(10_000, 8);
    await client.until(() => client.head.startsWith('HTTP/1.1 101'));
    client.socket.write(encodeControlFrame(FrameType.settings, 0, settings));
    client.socket.write(encodeWords(FrameType.ping, 77));
    await client.open(1, { streamtype: 'error' });
    await client.open(3, { streamtype: 'stdout' });
    await client.until(() =>
      client.frames.find(
        (frame) => frame.control && frame.type === FrameType.ping && frame.payload.readUInt32BE(0) === 77,
      ),
    );
    await client.until(() => client.received(3).length === 10_000);
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(client.received(3).length, 10_000, 'nothing beyond the window');
    client.socket.write(
      Buffer.concat([encodeWords(FrameType.windowUpdate, 3, 5_000), encodeWords(FrameType.windowUpdate, 0, 5_000)]),
    );
    await client.until(() => client.received(3).length === 15_000);
    client.socket.write(
      Buffer.concat([
        encodeWords(FrameType.windowUpdate, 3, 1_000_000),
        encodeWords(FrameType.windowUpdate, 0, 1_000_000),
      ]),
    );
    await client.closed();
    assert.equal(client.received(3).length, 300_000);
  });

  it('a stream stops reading when the process does not read, and acknowledges only consumed data', async () => {
    const client = Client.spdy(port, query(['sh', '-c', 'sleep 0.7; wc -c'], 'stdin', 'stdout'));
    await client.open(1, { streamtype: 'error' });
    await client.open(3, { streamtype: 'stdin' });
    await client.open(5, { streamtype: 'stdout' });
    const block = Buffer.alloc(64 * 1024, 'y');
    for (let index = 0; index < 400; index++) client.data(3, block);
    client.data(3, '', FLAG_FIN);
    await new Promise((resolve) => setTimeout(resolve, 400));
    // Sent data is in the kernel's buffers, and a few hundred kilobytes in those of this process.
    const held = client.socket.writableLength;
    assert.ok(held > 13_000_000, `only ${held} bytes were held up`);
    await client.closed();
    assert.equal(client.received(5).toString().trim(), String(400 * 64 * 1024));
    const acknowledged = client.frames
      .filter((frame) => frame.control && frame.type === FrameType.windowUpdate && frame.payload.readUInt32BE(0) === 0)
      .reduce((sum, frame) => sum + frame.payload.readUInt32BE(4), 0);
    assert.ok(acknowledged > 25_000_000, `${acknowledged} bytes acknowledged`);
  });

  it('kills the process of a client that disconnects, and all processes when the server stops', async () => {
    processes = [];
    const vanishing = Client.spdy(port, query(['sleep', '60'], 'stdout'));
    await vanishing.open(1, { streamtype: 'error' });
    await vanishing.open(3, { streamtype: 'stdout' });
    await vanishing.until(() => processes.length === 1);
    vanishing.socket.destroy();
    assert.equal(await processes[0]?.exited, 137);
    const staying = Client.spdy(port, query(['sleep', '60'], 'stdout'));
    await staying.open(1, { streamtype: 'error' });
    await staying.open(3, { streamtype: 'stdout' });
    await staying.until(() => processes.length === 2);
    await streaming.stop();
    assert.equal(await processes[1]?.exited, 137);
  });

  describe('invalid streams and sessions', () => {
    const STREAMS = query(['true'], 'stdout');

    it('rejects an unsupported streaming protocol', async () => {
      const client = Client.spdy(port, STREAMS, 'v9.channel.k8s.io');
      await client.closed();
      assert.match(client.head, /^HTTP\/1\.1 403 /);
      assert.match(client.head, /X-Accepted-Stream-Protocol-Versions: v4\.channel\.k8s\.io/);
    });

    it('rejects a session without streams or with an unknown upgrade, and closes the connection', async () => {
      const none = Client.spdy(port, query(['true']));
      none.socket.write('GET /after HTTP/1.1\r\nHost: pod\r\n\r\n');
      await none.closed();
      assert.match(none.head, /^HTTP\/1\.1 400 .*Connection: close/s);
      const other = new Client(port, `/exec?${STREAMS}`, { Connection: 'Upgrade', Upgrade: 'h2c' });
      await other.closed();
      assert.match(other.head, /^HTTP\/1\.1 400 /);
    });

    const attacks: Readonly<Record<string, (client: Client) => Promise<void>>> = {
      'a huge control frame': async (client) => {
        client.socket.write(encodeControlFrame(FrameType.synStream, 0, Buffer.alloc(10)).fill(0xff, 5, 8));
        await Promise.resolve();
      },
      'a header block that is not a zlib stream': async (client) => {
        client.socket.write(encodeControlFrame(FrameType.synStream, 0, Buffer.alloc(40, 0x41)));
        await Promise.resolve();
      },
      'a header block with a decompression bomb': async (client) => {
        await client.open(1, { streamtype: 'error', bomb: 'x'.repeat(10_000_000) });
      },
      'a header block with false lengths': async (client) => {
        const lie = encodeHeaderBlock(new Map([['streamtype', 'error']]));
        lie.writeUInt32BE(0xffffffff, 4);
        const fixed = Buffer.alloc(10);
        fixed.writeUInt32BE(1);
        client.socket.write(
          encodeControlFrame(FrameType.synStream, 0, Buffer.concat([fixed, createStoredDeflate()(lie)])),
        );
        await Promise.resolve();
      },
      'a decreasing stream ID': async (client) => {
        await client.open(5, { streamtype: 'error' });
        await client.open(3, { streamtype: 'stdout' });
      },
      'a truncated frame': async (client) => {
        client.socket.write(encodeControlFrame(FrameType.rstStream, 0, Buffer.alloc(3)));
        await Promise.resolve();
      },
      'a window overflow': async (client) => {
        client.socket.write(encodeWords(FrameType.windowUpdate, 0, 0x7fffffff));
        await Promise.resolve();
      },
      'another version of SPDY': async (client) => {
        const frame = encodeWords(FrameType.ping, 1);
        frame.writeUInt16BE(0x8002, 0);
        client.socket.write(frame);
        await Promise.resolve();
      },
    };
    for (const [name, attack] of Object.entries(attacks)) {
      it(`closes the session after ${name}`, async () => {
        const client = Client.spdy(port, STREAMS);
        await client.until(() => client.head.startsWith('HTTP/1.1 101'));
        await attack(client);
        await client.closed();
        assert.ok(
          client.frames.some((frame) => frame.control && frame.type === FrameType.goAway),
          'said GOAWAY',
        );
      });
    }

    it('resets only the unrequested streams of a session', async () => {
      const client = Client.spdy(port, query(['echo', 'fine'], 'stdout'));
      await client.open(1, { streamtype: 'stdin' });
      await client.open(3, { streamtype: '__proto__' });
      await client.open(5, { streamtype: 'error' });
      await client.open(7, { streamtype: 'stdout' });
      await client.closed();
      assert.equal(client.received(7).toString(), 'fine\n');
      const resets = client.frames.filter((frame) => frame.control && frame.type === FrameType.rstStream);
      assert.deepEqual(
        resets.map((frame) => frame.payload.readUInt32BE(0)),
        [1, 3],
      );
    });

    it('port forwarding rejects invalid port numbers', async () => {
      const client = Client.spdy(port, '', 'portforward.k8s.io', '/forward');
      for (const [index, bad] of ['0', '70000', '-1', '1e3', '80 ', ''].entries()) {
        await client.open(index * 2 + 1, { streamtype: 'data', port: bad, requestid: String(index) });
      }
      await client.until(
        () => client.frames.filter((frame) => frame.control && frame.type === FrameType.rstStream).length === 6,
      );
      client.socket.destroy();
    });
  });

  describe('streams over WebSocket', () => {
    function session(
      path: string,
      protocols: string[],
    ): Promise<{ socket: WebSocket; messages: Buffer[]; closed: Promise<unknown> }> {
      const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, protocols);
      const messages: Buffer[] = [];
      socket.on('message', (data: Buffer) => messages.push(data));
      const closed = new Promise((resolve) => socket.once('close', resolve));
      return new Promise((resolve, reject) => {
        socket.once('open', () => resolve({ socket, messages, closed }));
        socket.once('error', reject);
      });
    }
    const of = (messages: readonly Buffer[], channel: number): string =>
      Buffer.concat(
        messages.filter((message) => message[0] === channel).map((message) => message.subarray(1)),
      ).toString();

    it('a close signal in version 5 of the WebSocket protocol closes only stdin', async () => {
      const path = `/exec?${query(['sh', '-c', 'cat; echo after'], 'stdin', 'stdout')}`;
      const { socket, messages, closed } = await session(path, ['v5.channel.k8s.io']);
      assert.equal(socket.protocol, 'v5.channel.k8s.io');
      socket.send(Buffer.from('\0in\n'));
      socket.send(Buffer.from([255, 0]));
      await closed;
      assert.equal(of(messages, 1), 'in\nafter\n');
      assert.equal(JSON.parse(of(messages, 3)).status, 'Success');
    });

    it('255 is an ordinary channel number in version 4 of the WebSocket protocol', async () => {
      const path = `/exec?${query(['sh', '-c', 'read line; echo got $line'], 'stdin', 'stdout')}`;
      const { socket, messages, closed } = await session(path, ['v4.channel.k8s.io']);
      socket.send(Buffer.from([255, 0]));
      socket.send(Buffer.from('\0word\n'));
      await closed;
      assert.equal(of(messages, 1), 'got word\n');
    });

    it('transfers base64 text frames if the client requests them', async () => {
      const path = `/exec?${query(['cat'], 'stdin', 'stdout')}`;
      const { socket, messages } = await session(path, ['v4.base64.channel.k8s.io']);
      socket.send(`0${Buffer.from('bytes').toString('base64')}`);
      while (!messages.some((message) => message.length > 1)) await new Promise((resolve) => setTimeout(resolve, 10));
      assert.equal(
        messages.find((message) => message.length > 1)?.toString(),
        `1${Buffer.from('bytes').toString('base64')}`,
      );
      socket.close();
    });

    it('applies terminal sizes, and ignores invalid sizes', async () => {
      processes = [];
      const path = `/exec?${query(['sleep', '5'], 'stdin', 'stdout', 'tty')}`;
      const { socket, closed } = await session(path, ['v5.channel.k8s.io']);
      for (const size of [
        '{"Width":80,"Height":24}',
        '{"Width":-1,"Height":"x"}',
        'nonsense}',
        '{"Width":132,',
        '"Height":43}',
      ]) {
        socket.send(Buffer.concat([Buffer.from([4]), Buffer.from(size)]));
      }
      for (const deadline = Date.now() + 5_000; (processes[0]?.sizes.length ?? 0) < 2 && Date.now() < deadline; ) {
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      assert.deepEqual(processes[0]?.sizes, ['80x24', '132x43']);
      socket.terminate();
      await closed;
      assert.equal(await processes[0]?.exited, 137);
    });

    it('ends a session with an oversized message, and rejects unknown subprotocols', async () => {
      const path = `/exec?${query(['sleep', '5'], 'stdin', 'stdout')}`;
      const { socket, closed } = await session(path, ['v4.channel.k8s.io']);
      socket.on('error', () => {});
      socket.send(Buffer.alloc(3 * 1024 * 1024));
      assert.equal(await closed, 1009);
      await assert.rejects(session(path, ['chat']), /400/);
    });

    it('forwards ports in the older protocol with channel pairs that start with the port', async () => {
      const echo = (await import('node:net')).createServer((peer) => peer.pipe(peer));
      await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve));
      const target = (echo.address() as AddressInfo).port;
      const { socket, messages } = await session(`/forward?ports=${target}`, ['v4.channel.k8s.io']);
      socket.send(Buffer.from('\0hello'));
      while (!of(messages, 0).includes('hello')) await new Promise((resolve) => setTimeout(resolve, 10));
      const expected = Buffer.alloc(2);
      expected.writeUInt16LE(target);
      for (const channel of [0, 1])
        assert.deepEqual(messages.find((message) => message[0] === channel)?.subarray(1), expected);
      socket.close();
      echo.close();
    });
  });
});
