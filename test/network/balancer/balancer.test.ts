/** Balancer with real sockets in front of two or three small HTTPS servers that behave like API servers. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, createServer, request, type Server } from 'node:https';
import { connect, createServer as createTcpServer, type Socket } from 'node:net';
import { after, afterEach, describe, it } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { createNodeBalancer, type NodeBalancer } from '../../../src/network/balancer/index.ts';
import { type BalancerLimits, createTcpBalancing } from '../../../src/network/balancer/io/balancer.ts';
import { createReadinessProbe } from '../../../src/network/balancer/io/ready-probe.ts';
import { usersIn } from '../../../src/network/balancer/io/user-shares.ts';
import { createAuthority, type TestAuthority } from '../../client/certificates.ts';
import { eventually, seededRandom, systemClock } from '../../client/clocks.ts';

const authority = createAuthority('cluster');

/** Serves `/readyz` and pages that name the server, in a process that can be killed, paused and shut down. */
class Master {
  readonly name: string;
  readonly #authority: TestAuthority;
  readonly sockets = new Set<Socket>();
  #server: Server | undefined;
  port = 0;
  readyz: readonly [number, string] = [200, 'ok'];
  probes = 0;
  /** Responses of `/slow` are sent after it resolves. */
  held: Promise<void> = Promise.resolve();

  constructor(name: string, by = authority) {
    this.name = name;
    this.#authority = by;
  }

  get target(): string {
    return `127.0.0.1:${this.port}`;
  }

  async start(): Promise<this> {
    const server = createServer(this.#authority.issue(this.name, { server: true }), (incoming, response) => {
      if (incoming.url === '/readyz') {
        this.probes += 1;
        response.writeHead(this.readyz[0]).end(this.readyz[1]);
      } else if (incoming.url === '/slow') void this.held.then(() => response.end(this.name));
      else response.end(this.name);
    });
    server.on('connection', (socket: Socket) => {
      this.sockets.add(socket);
      socket.on('close', () => this.sockets.delete(socket));
      socket.on('error', () => {});
    });
    server.on('tlsClientError', () => {});
    server.listen(this.port, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    this.port = typeof address === 'object' && address !== null ? address.port : 0;
    this.#server = server;
    return this;
  }

  kill(): void {
    this.#server?.close();
    for (const socket of this.sockets) socket.resetAndDestroy();
  }
}

describe('node balancer', () => {
  const masters: Master[] = [];
  const agents: Agent[] = [];
  const saved: string[][] = [];
  let balancer: NodeBalancer | undefined;
  let port = 0;

  const start = async (
    names: readonly string[],
    options: {
      readonly bootstrap?: readonly string[];
      readonly load?: readonly string[];
      readonly limits?: BalancerLimits;
    } = {},
  ): Promise<Master[]> => {
    const started = await Promise.all(names.map((name) => new Master(name).start()));
    masters.push(...started);
    balancer = createNodeBalancer({
      tcp: createTcpBalancing(options.limits),
      probe: createReadinessProbe({ ca: async () => authority.cert, identity: '127.0.0.1' }),
      saved: { load: async () => options.load ?? [], save: async (targets) => void saved.push([...targets]) },
      clock: systemClock,
      random: seededRandom(1),
      log: silentLog,
      config: {
        address: '127.0.0.1',
        port: 0,
        local: undefined,
        bootstrap: options.bootstrap ?? started.map(({ target }) => target),
      },
    });
    ({ port } = await balancer.start());
    return started;
  };

  const healthOf = (master: Master): string | undefined =>
    balancer?.backends().find(({ target }) => target === master.target)?.health;
  const health = (master: Master, expected: string, timeoutMs?: number) =>
    eventually(`${master.name} is ${expected}`, () => healthOf(master) === expected, timeoutMs);

  /** Agent with one persistent connection, like those of a Kubernetes client. */
  const keptAgent = (): Agent => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: authority.cert });
    agents.push(agent);
    return agent;
  };

  const get = (path = '/', agent: Agent | false = false): Promise<string> =>
    new Promise((resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port, path, agent, ca: authority.cert }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (piece: string) => {
          text += piece;
        });
        response.on('end', () => resolve(text));
        response.on('error', reject);
      });
      sent.on('error', reject);
      sent.end();
    });

  afterEach(async () => {
    for (const agent of agents.splice(0)) agent.destroy();
    await balancer?.stop();
    balancer = undefined;
    for (const master of masters.splice(0)) master.kill();
    saved.length = 0;
  });
  after(() => {
    assert.equal(masters.length, 0);
  });

  it('spreads persistent connections over the ready masters', async () => {
    const [one, two, three] = (await start(['one', 'two', 'three'])) as [Master, Master, Master];
    for (const master of [one, two, three]) await health(master, 'ready');
    const answers = await Promise.all(Array.from({ length: 9 }, () => get('/', keptAgent())));
    for (const { name } of [one, two, three]) assert.equal(answers.filter((each) => each === name).length, 3, name);
  });

  it('connects to another master when a master is down, before a probe has detected the failure', async () => {
    const [one, two] = (await start(['one', 'two'])) as [Master, Master];
    one.kill();
    assert.deepEqual(new Set(await Promise.all(Array.from({ length: 8 }, () => get()))), new Set(['two']));
    await health(one, 'dead');
    await health(two, 'ready');
  });

  it('resets the connections to a killed master and sends the next request to another master', async () => {
    const [one, two] = (await start(['one', 'two'])) as [Master, Master];
    await health(one, 'ready');
    await health(two, 'ready');
    const kept = [keptAgent(), keptAgent()];
    const first = await Promise.all(kept.map((agent) => get('/', agent)));
    assert.deepEqual(new Set(first), new Set(['one', 'two']));
    one.held = new Promise(() => {});
    const held = kept[first.indexOf('one')] as Agent;
    const failed = assert.rejects(get('/slow', held), { code: 'ECONNRESET' });
    await new Promise((resolve) => setTimeout(resolve, 50));
    const begin = performance.now();
    one.kill();
    await failed;
    assert.equal(await get('/', held), 'two');
    assert.ok(performance.now() - begin < 1_000);
  });

  it('moves connections away from a master that shuts down once the response in progress is complete', async () => {
    const [one, two] = (await start(['one', 'two'])) as [Master, Master];
    await health(one, 'ready');
    await health(two, 'ready');
    const kept = [keptAgent(), keptAgent(), keptAgent(), keptAgent()];
    const first = await Promise.all(kept.map((agent) => get('/', agent)));
    assert.equal(first.filter((name) => name === 'one').length, 2);
    const [busy, idle] = kept.filter((_, at) => first[at] === 'one') as [Agent, Agent];
    let release = (): void => {};
    one.held = new Promise((resolve) => {
      release = resolve;
    });
    const answer = get('/slow', busy);
    await eventually('both are connected to one', () => one.sockets.size >= 2);
    one.readyz = [500, '[+]ping ok\n[-]shutdown failed: reason withheld\nreadyz check failed\n'];
    await health(one, 'stopping');
    await eventually('the idle connection has ended', () => Object.keys(idle.freeSockets).length === 0);
    assert.equal(await get('/', idle), 'two');
    release();
    assert.equal(await answer, 'one', 'the request under way is answered');
    await eventually('the busy connection has ended', () => Object.keys(busy.freeSockets).length === 0);
    assert.equal(await get('/', busy), 'two');
  });

  it('prefers masters whose readiness checks pass, and uses an unready master if none is ready', async () => {
    const [one, two] = (await start(['one', 'two'])) as [Master, Master];
    one.readyz = [500, '[-]etcd failed: reason withheld\n'];
    await health(one, 'unready');
    await health(two, 'ready');
    assert.deepEqual(await Promise.all([get(), get(), get()]), ['two', 'two', 'two']);
    two.kill();
    await health(two, 'dead');
    assert.equal(await get(), 'one');
  });

  it('the node balancer uses a restarted master again once it is ready', async () => {
    const [one, two] = (await start(['one', 'two'])) as [Master, Master];
    one.kill();
    await health(one, 'dead');
    await health(two, 'ready');
    await one.start();
    await health(one, 'ready');
    const answers = await Promise.all(Array.from({ length: 4 }, () => get('/', keptAgent())));
    assert.equal(answers.filter((name) => name === 'one').length, 2);
  });

  it('the node balancer does not trust a server whose certificate another CA has signed', async () => {
    const other = await new Master('other', createAuthority('other')).start();
    const [one] = (await start(['one'])) as [Master];
    masters.push(other);
    await balancer?.stop();
    masters.splice(masters.indexOf(one), 1);
    const [again] = (await start(['again'], { bootstrap: [other.target, one.target] })) as [Master];
    again.kill();
    await health(other, 'untrusted');
    await health(one, 'ready');
    assert.deepEqual(await Promise.all([get(), get(), get()]), ['one', 'one', 'one']);
    one.kill();
  });

  it('treats a server that accepts connections but never responds as unready, and resets its connections', async () => {
    const [one] = (await start(['one'])) as [Master];
    await balancer?.stop();
    const accepted: Socket[] = [];
    const hung = createTcpServer((socket) => void accepted.push(socket));
    hung.listen(0, '127.0.0.1');
    await once(hung, 'listening');
    const address = hung.address();
    const target = `127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
    await start([], { bootstrap: [one.target, target] });
    try {
      await health(one, 'ready');
      await eventually('the readiness check fails', () => balancer?.backends()[1]?.health === 'unready', 8_000);
      assert.equal(await get(), 'one');
    } finally {
      hung.close();
      for (const socket of accepted) socket.destroy();
    }
  });

  it('the node balancer sends no probes while only one API server is known', async () => {
    const [one] = (await start(['one'])) as [Master];
    assert.equal(await get(), 'one');
    await new Promise((resolve) => setTimeout(resolve, 700));
    assert.equal(one.probes, 0);
  });

  it('the node balancer resets a client connection if no API server is reachable', async () => {
    const [one] = (await start(['one'])) as [Master];
    one.kill();
    const begin = performance.now();
    await assert.rejects(get(), { code: 'ECONNRESET' });
    assert.ok(performance.now() - begin < 1_000);
  });

  it('starts with the saved server addresses, saves new addresses, and drops addresses of the host itself', async () => {
    await start([], { bootstrap: [], load: ['192.0.2.7:8443', 'not an address', '127.0.0.1:22'] });
    assert.deepEqual(
      balancer?.backends().map(({ target }) => target),
      ['192.0.2.7:8443'],
    );
    balancer?.setTargets('api', ['192.0.2.8:8443', '127.0.0.1:8443', '169.254.0.1:80']);
    await balancer?.stop();
    assert.deepEqual(saved, [['192.0.2.8:8443', '192.0.2.7:8443']]);
  });

  it('at the connection limit, resets the oldest connection without a completed handshake', async () => {
    await start(['one'], { limits: { maxConnections: 3 } });
    const kept = keptAgent();
    assert.equal(await get('/', kept), 'one');
    const unauthenticated = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')];
    const [oldest, second] = unauthenticated as [Socket, Socket];
    for (const each of unauthenticated) each.on('error', () => {});
    await Promise.all(unauthenticated.map((each) => once(each, 'connect')));
    assert.equal(await get(), 'one');
    await eventually('the oldest object is deleted', () => oldest.destroyed);
    assert.equal(second.destroyed, false);
    assert.equal(await get('/', kept), 'one');
    for (const each of unauthenticated) each.destroy();
  });

  /** Opens connections from one source address that send `bytes` only. */
  const anonymousClients = async (count: number, localAddress: string, bytes?: Buffer): Promise<Socket[]> => {
    const sockets = Array.from({ length: count }, () => connect({ host: '127.0.0.1', port, localAddress }));
    for (const each of sockets) each.on('error', () => {});
    await Promise.all(sockets.map((each) => once(each, 'connect')));
    if (bytes !== undefined) for (const each of sockets) each.write(bytes);
    return sockets;
  };
  const openOf = (sockets: readonly Socket[]): number => sockets.filter(({ destroyed }) => !destroyed).length;
  /** Header of a client hello of 512 bytes, and its first byte. */
  const HALF_HELLO = Buffer.from([0x16, 3, 1, 2, 0, 1]);

  it('reserves connections for root when another user has reached its share of established connections', async (context) => {
    if (process.getuid?.() !== 0) return context.skip('needs root');
    await start(['one'], { limits: { maxConnections: 16 } });
    const script = `
      const { Agent, request } = require('node:https');
      // Idle connections alone do not keep the process running.
      setInterval(() => {}, 1000);
      let open = 0;
      let ended = 0;
      const report = () => { open + ended === 30 && process.send(open); };
      for (let index = 0; index < 30; index++) {
        const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
        const sent = request({ host: '127.0.0.1', port: ${port}, path: '/', agent }, (response) => {
          response.resume().on('end', () => { open += 1; report(); });
        });
        sent.on('error', () => { ended += 1; report(); }).end();
      }
    `;
    const other = spawn(process.execPath, ['-e', script], {
      uid: 65_534,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const [open] = (await once(other, 'message')) as [number];
    const mine = Array.from({ length: 8 }, keptAgent);
    const answers = await Promise.allSettled(mine.map((agent) => get('/', agent)));
    other.kill();
    await once(other, 'exit');
    assert.equal(open, 8);
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], ['fulfilled']);
  });

  it('reads the user of a local client connection from /proc/net/tcp and /proc/net/tcp6', () => {
    const table = [
      '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode',
      '   0: 0100007F:1D13 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0',
      '   1: 0500007F:9C40 0100007F:1D13 01 00000000:00000000 00:00000000 00000000  1001        0 2 1 0 20 4 0 10 -1',
      '   2: 0100007F:1D13 0500007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 3 1 0 20 4 0 10 -1',
      '   3: 0100007F:9C41 0100007F:1D13 06 00000000:00000000 00:00000000 00000000     0        0 0 3 0',
      '   4: 0A00000A:9C42 0B00000A:1D13 01 00000000:00000000 00:00000000 00000000  1002        0 4 1 0 20 4 0 10 -1',
    ].join('\n');
    const table6 =
      '   0: 0000000000000000FFFF00000100007F:9C43 0000000000000000FFFF00000100007F:1D13 01 00000000:00000000 02:000002B5 00000000  1003        0 5 2 0';
    assert.deepEqual(
      [...usersIn([table, table6], 7443)],
      [
        ['127.0.0.5:40000', 1001],
        ['127.0.0.1:40003', 1003],
      ],
    );
  });

  it('forwards a connection only after a TLS ClientHello, and resets it if none arrives in time', async () => {
    const [one] = (await start(['one'], { limits: { helloMs: 400 } })) as [Master];
    const kept = keptAgent();
    assert.equal(await get('/', kept), 'one');
    const silent = [
      ...(await anonymousClients(20, '127.0.0.1')),
      ...(await anonymousClients(20, '127.0.0.1', HALF_HELLO.subarray(0, 3))),
      ...(await anonymousClients(20, '127.0.0.1', HALF_HELLO)),
    ];
    assert.equal(await get(), 'one');
    assert.ok(one.sockets.size <= 2, `${one.sockets.size} connections to the server`);
    await eventually('silent connections are reset', () => openOf(silent) === 0);
    assert.equal(await get('/', kept), 'one');
  });

  it('limits connections that send nothing, and resets those of the source address with the most', async () => {
    await start(['one'], { limits: { maxSilent: 10 } });
    const few = await anonymousClients(3, '127.0.0.2');
    const many = await anonymousClients(30, '127.0.0.1');
    await eventually('the oldest connections are reset', () => openOf(many) === 7);
    assert.equal(openOf(few), 3);
    assert.equal(openOf(many.slice(-7)), 7);
    assert.equal(await get(), 'one');
    for (const each of [...few, ...many]) each.destroy();
  });

  it('resets a connection that does not complete its handshake in time', async () => {
    const accepted: Socket[] = [];
    const silent = createTcpServer((socket) => void accepted.push(socket.on('error', () => {}).resume()));
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const address = silent.address();
    const target = `127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
    await start([], { bootstrap: [target], limits: { handshakeMs: 300 } });
    const hello = Buffer.concat([HALF_HELLO, Buffer.alloc(511)]);
    const [client] = (await anonymousClients(1, '127.0.0.1', hello)) as [Socket];
    await eventually('the connection is forwarded', () => accepted[0]?.bytesRead === hello.length);
    await eventually('the connection is reset', () => client.destroyed && accepted[0]?.destroyed === true);
    silent.close();
  });

  it('the node balancer forwards large request and response bodies', async () => {
    await start(['one']);
    const echo = createTcpServer((socket) => socket.pipe(socket));
    echo.listen(0, '127.0.0.1');
    await once(echo, 'listening');
    const address = echo.address();
    await balancer?.stop();
    await start([], { bootstrap: [`127.0.0.1:${typeof address === 'object' ? address?.port : 0}`] });
    const sent = Buffer.alloc(8 << 20, 'x');
    const socket = connect(port, '127.0.0.1');
    const received: Buffer[] = [];
    socket.on('data', (piece) => received.push(piece));
    socket.end(sent);
    await once(socket, 'close');
    assert.equal(Buffer.concat(received).equals(sent), true);
    echo.close();
  });
});
