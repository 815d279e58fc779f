import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { peerNetwork } from '../../../src/base/addresses/addresses.ts';
import { ConnectionGate, type GatedConnection, type GateLimits } from '../../../src/wire/connections/gate.ts';
import type { Turns } from '../../../src/wire/connections/turns.ts';

const LIMITS: GateLimits = {
  authenticated: 4,
  unauthenticated: 4,
  idleMs: 90_000,
  unauthenticatedIdleMs: 30_000,
  handshakeMs: 10_000,
};

/** Simulated time in turns of one millisecond. */
class SimulatedTurns implements Turns {
  now = 0;
  #timers: { atMs: number; readonly everyMs: number; readonly work: () => void }[] = [];
  #afterEach: (() => boolean)[] = [];
  nowMs = (): number => this.now;
  every(ms: number, work: () => void): () => void {
    const timer = { atMs: this.now + ms, everyMs: ms, work };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
    };
  }
  after(ms: number, work: () => void): void {
    this.#timers.push({ atMs: this.now + ms, everyMs: 0, work });
  }
  next(work: () => void): void {
    this.after(1, work);
  }
  afterEach(work: () => boolean): void {
    this.#afterEach.push(work);
  }
  pass(ms: number): void {
    for (const end = this.now + ms; this.now < end; ) {
      this.now += 1;
      const due = this.#timers.filter((each) => each.atMs <= this.now);
      this.#timers = this.#timers.filter((each) => each.atMs > this.now);
      for (const each of due) {
        if (each.everyMs > 0) this.#timers.push({ ...each, atMs: this.now + each.everyMs });
        each.work();
      }
      this.#afterEach = this.#afterEach.filter((work) => work());
    }
  }
}

interface Client {
  readonly connection: GatedConnection;
  begunMs: number | undefined;
  closed: string;
  busy: boolean;
  bytes: number;
}

function simulate(limits: Partial<GateLimits> = {}) {
  const turns = new SimulatedTurns();
  const gate = new ConnectionGate({ ...LIMITS, ...limits }, turns);
  const open = (address: string): Client => {
    const client: Client = {
      connection: gate.open(address, {
        begin: () => {
          client.begunMs = turns.now;
        },
        close: (reason) => {
          client.closed = reason;
          client.connection.ended();
        },
        bytesRead: () => client.bytes,
        busy: () => client.busy,
      }),
      begunMs: undefined,
      closed: '',
      busy: false,
      bytes: 0,
    };
    return client;
  };
  const greet = (address: string, by?: 'token' | 'certificate'): Client => {
    const client = open(address);
    turns.pass(20);
    client.connection.greeted();
    if (by !== undefined) client.connection.authenticated(by);
    return client;
  };
  return { turns, gate, open, greet };
}

describe('client addresses', () => {
  it('connections of one IPv4 address or one IPv6 /64 network share the same limits', () => {
    assert.equal(peerNetwork('::ffff:10.1.2.3'), '10.1.2.3');
    assert.equal(peerNetwork('10.1.2.3'), '10.1.2.3');
    assert.equal(peerNetwork('2001:db8:1:2:a:b:c:d'), peerNetwork('2001:db8:1:2::1'));
    assert.notEqual(peerNetwork('2001:db8:1:3::1'), peerNetwork('2001:db8:1:2::1'));
    assert.equal(peerNetwork('fe80::1%eth0'), peerNetwork('fe80::2%eth0'));
    assert.equal(peerNetwork(''), '');
  });
});

describe('TLS handshakes', () => {
  it('starts at most three TLS handshakes at once, round-robin over client addresses', () => {
    const { turns, open } = simulate({ unauthenticated: 100 });
    const flood = Array.from({ length: 50 }, () => open('10.0.0.1'));
    const other = open('10.0.0.2');
    turns.pass(1);
    assert.equal(flood.filter(({ begunMs }) => begunMs !== undefined).length, 3);
    assert.equal(other.begunMs, 1);
  });

  it('delays TLS handshakes of an address that has used up its credits, but not those of other addresses', () => {
    const { turns, open } = simulate({ unauthenticated: 10_000 });
    const flood = Array.from({ length: 1000 }, () => open('10.0.0.1'));
    turns.pass(1000);
    const begun = flood.filter(({ begunMs }) => begunMs !== undefined).length;
    assert.ok(begun >= 550 && begun <= 650, `${begun}`);
    const other = open('10.0.0.2');
    turns.pass(2);
    assert.notEqual(other.begunMs, undefined);
    turns.pass(2500);
    assert.ok(flood.every(({ begunMs, closed }) => begunMs !== undefined && closed === ''));
  });

  it('a TLS handshake uses no credits of its address if the client authenticates', () => {
    const { turns, open } = simulate({ authenticated: 10_000 });
    for (let client = 0; client < 500; client += 1) {
      const { connection } = open('10.0.0.1');
      turns.pass(1);
      connection.authenticated('certificate');
    }
    const next = open('10.0.0.1');
    turns.pass(1);
    assert.notEqual(next.begunMs, undefined);
  });

  it('forgets a client address when its handshake credits are refilled', () => {
    const { turns, gate, open } = simulate();
    for (let address = 0; address < 6000; address += 1)
      open(`10.0.${address >> 8}.${address & 255}`).connection.ended();
    assert.ok(gate.counts.addresses <= 4096, `${gate.counts.addresses}`);
    turns.pass(1100);
    assert.equal(gate.counts.addresses, 0);
  });

  it('closes a connection at the handshake time-out, even if its handshake has not started', () => {
    const { turns, open } = simulate({ unauthenticated: 200 });
    const flood = Array.from({ length: 150 }, () => open('10.0.0.1'));
    turns.pass(12_000);
    assert.ok(flood.every(({ closed }) => closed === 'handshake timeout'));
  });
});

describe('connection limit of a port', () => {
  it('at the limit, closes the oldest idle unauthenticated connection of the address with the most such connections', () => {
    const { gate, greet, open, turns } = simulate({ unauthenticated: 1 });
    const one = greet('10.0.0.2');
    const [oldest, idle, ...rest] = [greet('10.0.0.1'), greet('10.0.0.1'), greet('10.0.0.1')];
    (oldest as Client).busy = true;
    const next = open('10.0.0.3');
    turns.pass(200);
    assert.equal(idle?.closed, 'too many connections');
    assert.deepEqual(
      [one, oldest, ...rest, next].map((each) => each?.closed),
      ['', '', '', ''],
    );
    assert.equal(gate.counts.unauthenticated, 4);
  });

  it('limits the number of connections that wait for their TLS handshake', () => {
    const { gate, open } = simulate();
    for (let client = 0; client < 1000; client += 1) open('10.0.0.1');
    assert.equal(gate.counts.queued, 512);
  });

  it('at the limit, closes connections that have not authenticated within some seconds', () => {
    const { turns, gate, greet } = simulate({ authenticated: 100 });
    const crowd = Array.from({ length: 16 }, () => greet('10.0.0.1'));
    turns.pass(3_000);
    assert.ok(crowd.every(({ closed }) => closed === ''));
    for (const { connection } of crowd.slice(0, 8)) connection.authenticated('token');
    turns.pass(4_000);
    assert.equal(crowd.filter(({ closed }) => closed === 'too many connections').length, 4);
    assert.equal(gate.counts.authenticated, 8);
  });

  it('serves hundreds of simultaneous clients of one address as connections become free', () => {
    const { turns, gate, open } = simulate({ authenticated: 1_000 });
    const clients = Array.from({ length: 300 }, () => open('10.0.0.1'));
    for (let round = 0; round < 400 && clients.some(({ begunMs }) => begunMs === undefined); round += 1) {
      turns.pass(10);
      for (const { connection, begunMs } of clients) {
        if (begunMs === undefined || connection.standing !== 'unauthenticated') continue;
        connection.greeted();
        connection.authenticated('certificate');
      }
    }
    assert.ok(clients.every(({ closed, begunMs }) => closed === '' && begunMs !== undefined));
    turns.pass(10);
    assert.equal(gate.counts.authenticated >= 296, true);
  });

  it('closes a connection for a waiting client only after the connection was idle for a second', () => {
    const { turns, greet, open } = simulate({ unauthenticated: 1 });
    const idle = Array.from({ length: 4 }, () => greet('10.0.0.1'));
    const next = open('10.0.0.1');
    turns.pass(800);
    assert.ok(next.begunMs === undefined && idle.every(({ closed }) => closed === ''));
    turns.pass(400);
    assert.ok(next.begunMs !== undefined);
    assert.equal(idle.filter(({ closed }) => closed === 'too many connections').length, 1);
  });

  it('serves a new address although requests of another address that never end hold all places', () => {
    const { turns, greet, open } = simulate();
    const held = Array.from({ length: 16 }, () => greet('10.0.0.1'));
    for (const each of held) {
      each.busy = true;
      each.connection.requested();
    }
    const waiting = open('10.0.0.2');
    turns.pass(2_500);
    assert.notEqual(waiting.begunMs, undefined);
    assert.equal(held.filter(({ closed }) => closed === 'too many connections').length, 1);
  });

  it('above the limit, closes requests without an identity that never end', () => {
    const { turns, greet } = simulate();
    const held = Array.from({ length: 6 }, () => greet('10.0.0.1'));
    for (const each of held) {
      each.busy = true;
      each.connection.requested();
    }
    turns.pass(29_000);
    assert.equal(held.filter(({ closed }) => closed !== '').length, 0);
    turns.pass(3_000);
    assert.equal(held.filter(({ closed }) => closed !== '').length, 2);
  });

  it('at the limit, closes an idle connection with a token, but no busy one and none with a certificate', () => {
    const { greet } = simulate();
    const node = greet('10.0.0.1', 'certificate');
    const clients = ['token', 'token', 'token'].map(() => greet('10.0.0.1', 'token'));
    const [busy, idle] = clients;
    for (const each of clients) each.busy = each !== idle;
    assert.equal(greet('10.0.0.9', 'token').closed, '');
    assert.equal(idle?.closed, 'too many connections');
    assert.equal(node.closed, '');
    assert.equal(busy?.closed, '');
  });

  it('at the limit, closes a busy connection with a token for a client with a certificate, never the reverse', () => {
    const { greet } = simulate();
    const clients = [1, 2, 3, 4].map(() => greet('10.0.0.1', 'token'));
    for (const each of clients) each.busy = true;
    assert.equal(greet('10.0.0.9', 'token').closed, 'too many connections');
    assert.ok(clients.every(({ closed }) => closed === ''));
    assert.equal(greet('10.0.0.9', 'certificate').closed, '');
    assert.equal(clients.filter(({ closed }) => closed !== '').length, 1);
  });

  it('at the limit, closes busy connections of an address with very many for clients at other addresses', () => {
    const { greet } = simulate({ authenticated: 300 });
    const node = greet('10.0.0.1', 'certificate');
    const flood = Array.from({ length: 297 }, () => greet('10.0.0.1', 'token'));
    const other = greet('10.0.0.3', 'token');
    const crowd = greet('10.0.0.2', 'token');
    for (const each of [node, ...flood, other, crowd]) each.busy = true;
    const late = greet('10.0.0.2', 'token');
    late.busy = true;
    assert.equal(flood[0]?.closed, 'too many connections');
    // The heaviest address displaces none of the others, and not its own connections.
    assert.equal(greet('10.0.0.1', 'token').closed, 'too many connections');
    assert.deepEqual(
      [node, other, crowd].map(({ closed }) => closed),
      ['', '', ''],
    );
    assert.equal(flood.filter(({ closed }) => closed !== '').length, 1);
  });
});

describe('idle connections', () => {
  it('closes idle connections, earlier without an identity, and never during a request', () => {
    const { turns, greet } = simulate();
    const newClient = greet('10.0.0.1');
    const client = greet('10.0.0.2', 'token');
    const watch = greet('10.0.0.2', 'token');
    watch.busy = true;
    turns.pass(32_000);
    assert.deepEqual([newClient.closed, client.closed, watch.closed], ['idle', '', '']);
    client.bytes += 100;
    turns.pass(70_000);
    assert.equal(client.closed, '');
    turns.pass(30_000);
    assert.equal(client.closed, 'idle');
    turns.pass(600_000);
    assert.equal(watch.closed, '');
  });

  it('keeps idle connections open if no idle time limit is set', () => {
    const { turns, greet } = simulate({ idleMs: 0 });
    const client = greet('10.0.0.1', 'certificate');
    turns.pass(1_000_000);
    assert.equal(client.closed, '');
  });
});

describe('bytes from unauthenticated clients', () => {
  it('limits bytes of an unauthenticated client before its first request and after each request', () => {
    const { turns, greet } = simulate();
    const client = greet('10.0.0.1');
    client.bytes = 150_000;
    turns.pass(2);
    client.connection.requested();
    client.bytes += 150_000;
    turns.pass(2);
    assert.equal(client.closed, '');
    client.bytes += 60_000;
    turns.pass(2);
    assert.equal(client.closed, 'too many bytes');
  });

  it('accepts a request body while the token is being reviewed, and does not count bytes of authenticated clients', () => {
    const { turns, greet } = simulate();
    const pending = greet('10.0.0.1');
    pending.busy = true;
    pending.bytes = 3_500_000;
    const client = greet('10.0.0.2', 'token');
    client.bytes = 100_000_000;
    turns.pass(5);
    assert.deepEqual([pending.closed, client.closed], ['', '']);
    pending.bytes = 4_500_000;
    turns.pass(5);
    assert.equal(pending.closed, 'too many bytes');
  });
});
