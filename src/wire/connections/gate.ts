/**
 * Admission of connections to a port, so that a peer without credentials costs less than an authenticated client.
 * Handshakes are paced and charged to the peer's address; unauthenticated connections are limited in number, lifetime
 * and bytes; idle connections are closed when the port is full. The gate performs no I/O and gets time from `Turns`.
 * Source: CVE-2023-44487, Kubernetes' feature gate UnauthenticatedHTTP2DOSMitigation.
 */
import { type Account, Accounts } from './accounts.ts';
import { eventLoopTurns, type Turns } from './turns.ts';

export interface GateLimits {
  /** Maximum number of authenticated connections. */
  readonly authenticated: number;
  /**
   * Maximum number of connections that stay unauthenticated. Four times as many may be authenticating for a few
   * seconds, because many clients may connect at once, and eight times as many may wait for their handshake.
   */
  readonly unauthenticated: number;
  /** An authenticated connection without a request is closed after this time; 0 means never. */
  readonly idleMs: number;
  /**
   * An unauthenticated connection without a request in progress is closed after this time. Above the unauthenticated
   * limit, a connection with a request in progress is closed too.
   */
  readonly unauthenticatedIdleMs: number;
  /** Maximum time from accept to the end of the handshake. */
  readonly handshakeMs: number;
}

/** Actions of the gate on a connection. */
export interface ConnectionActions {
  /** Starts the handshake. */
  begin(): void;
  close(reason: string): void;
  /** Number of encrypted bytes that were read from the socket. */
  bytesRead(): number;
  /** Whether a request or stream is in progress. */
  busy(): boolean;
}

/** Authentication state of a connection. Connections with a certificate are closed last. */
export type Standing = 'unauthenticated' | 'token' | 'certificate';

const SWEEP_MS = 1000;
const QUEUED_PER_UNAUTHENTICATED = 8;
/** Minimum number of connections that may wait for their handshake, for ports with low limits. */
const MIN_QUEUED = 512;
/** Number of connections that may be authenticating, as a multiple of the unauthenticated limit. */
const CROWD_FACTOR = 4;
/** Idle time after which connections above the unauthenticated limit are closed. */
const CROWDED_IDLE_MS = 5_000;
/** Idle time after which connections above the unauthenticated limit are closed if a flood was detected recently. */
const FLOOD_IDLE_MS = 1_000;
const FLOOD_MEMORY_MS = 10_000;
/** Minimum idle time of a connection before a full port closes it in favour of waiting connections. */
const PATIENCE_MS = 1_000;
/** The same minimum during a flood, or if the address of the waiting connection holds fewer connections. */
const FLOOD_PATIENCE_MS = 100;
/**
 * Minimum time since the request of a busy connection before a full port closes it. A peer can keep a request open for
 * ever: it does not close its side after a failed upgrade, or never reads the response.
 */
const BUSY_PATIENCE_MS = 10_000;
/** The same minimum if the address of the waiting connection holds fewer connections. */
const LIGHTER_BUSY_PATIENCE_MS = 2_000;
/** A flood is detected when this many times the unauthenticated limit are waiting. */
const FLOOD_FACTOR = 4;
/** Interval between attempts to free a place. */
const ROOM_MS = 20;
/** Maximum number of handshakes that start in one turn of the event loop. */
const HANDSHAKES_PER_TURN = 4;
/**
 * A full port closes busy connections with a token only of addresses with more authenticated connections than this. A
 * single client with many watches cannot lock out clients at other addresses, and regular clients are not disturbed.
 */
const MANY_AUTHENTICATED = 256;
const HANDSHAKE_CREDITS = 1;
const REFUSAL_CREDITS = 0.5;
const VIOLATION_CREDITS = 1;
/**
 * Bytes per credit: the number of bytes that are decrypted and parsed in about one millisecond. A flood may send
 * megabytes before it is noticed at the end of a turn.
 */
const BYTES_PER_CREDIT = 800_000;
/**
 * Bytes that an unauthenticated peer may send before its first request and after each request: a handshake with a
 * certificate chain, and headers.
 */
const UNAUTHENTICATED_BYTES = 192 * 1024;
/** Bytes that a peer may send while its token is reviewed, for a request body. */
const PENDING_BYTES = 4 * 1024 * 1024;
/** Maximum number of connections that are inspected in one turn of the event loop. */
const LOOKS_PER_TURN = 32;

export class GatedConnection {
  readonly account: Account<GatedConnection>;
  readonly door: ConnectionActions;
  readonly openedMs: number;
  standing: Standing = 'unauthenticated';
  secured = false;
  closed = false;
  idleSinceMs: number;
  /** Bytes read at the time of the last activity. */
  lastBytes = 0;
  readonly #gate: ConnectionGate;
  #greetingBytes = 0;

  constructor(gate: ConnectionGate, account: Account<GatedConnection>, door: ConnectionActions, nowMs: number) {
    this.#gate = gate;
    this.account = account;
    this.door = door;
    this.openedMs = nowMs;
    this.idleSinceMs = nowMs;
  }

  /** Call when the handshake is complete. */
  greeted(): void {
    this.secured = true;
    this.#greetingBytes = this.door.bytesRead();
  }

  /** Encrypted bytes that were read since the handshake. */
  bytesSinceGreeting(): number {
    return this.door.bytesRead() - this.#greetingBytes;
  }

  authenticated(by: 'token' | 'certificate'): void {
    this.secured = true;
    if (this.standing !== by && this.standing !== 'certificate') this.#gate.promote(this, by);
  }

  /** Call when an unauthenticated peer has sent a request. */
  requested(): void {
    this.idleSinceMs = this.#gate.nowMs();
    this.lastBytes = this.door.bytesRead();
  }

  /** Call when a request was answered without an identity. */
  refused(): void {
    this.account.credits.charge(REFUSAL_CREDITS);
  }

  /** Closes a connection that violates its protocol. */
  violated(reason: string, bytes = 0): void {
    if (this.closed) return;
    this.account.credits.charge(Math.max(VIOLATION_CREDITS, bytes / BYTES_PER_CREDIT));
    this.#gate.close(this, reason);
  }

  /** Call when the socket is closed. */
  ended(): void {
    this.#gate.forget(this);
  }
}

export class ConnectionGate {
  readonly #limits: GateLimits;
  readonly #turns: Turns;
  readonly #accounts = new Accounts<GatedConnection>();
  /** Connections whose handshake has not started. */
  readonly #queued = new Set<GatedConnection>();
  readonly #unauthenticated = new Set<GatedConnection>();
  readonly #authenticated = new Set<GatedConnection>();
  /** Accounts with connections that wait for their handshake, in round-robin order. */
  readonly #waiting = new Set<Account<GatedConnection>>();
  readonly #cancelSweep: () => void;
  #pumpPlanned: 'no' | 'soon' | 'later' = 'no';
  #looking = false;
  /** Last time at which more connections waited than regular clients open at once. */
  #floodedMs = Number.NEGATIVE_INFINITY;
  /** Connections of the current inspection round. */
  #round: IterableIterator<GatedConnection> | undefined;

  constructor(limits: GateLimits, turns: Turns = eventLoopTurns) {
    this.#limits = limits;
    this.#turns = turns;
    this.#cancelSweep = turns.every(SWEEP_MS, () => this.#sweep());
  }

  /** Numbers of open connections by state, and of addresses with an account. */
  get counts(): Readonly<Record<'queued' | 'unauthenticated' | 'authenticated' | 'addresses', number>> {
    return {
      queued: this.#queued.size,
      unauthenticated: this.#unauthenticated.size,
      authenticated: this.#authenticated.size,
      addresses: this.#accounts.size,
    };
  }

  nowMs(): number {
    return this.#turns.nowMs();
  }

  /**
   * Registers an accepted connection. Calls `door.begin` in a later turn of the event loop, when the handshake may
   * start.
   */
  open(address: string, door: ConnectionActions): GatedConnection {
    const places = Math.max(MIN_QUEUED, this.#limits.unauthenticated * QUEUED_PER_UNAUTHENTICATED);
    if (this.#queued.size >= places) this.#evictQueued();
    const nowMs = this.#turns.nowMs();
    if (this.#queued.size > this.#limits.unauthenticated * FLOOD_FACTOR) this.#floodedMs = nowMs;
    const account = this.#accounts.of(address, nowMs);
    const connection = new GatedConnection(this, account, door, nowMs);
    account.queued.add(connection);
    this.#queued.add(connection);
    this.#waiting.add(account);
    this.#planPump(0);
    return connection;
  }

  stop(): void {
    this.#cancelSweep();
  }

  promote(connection: GatedConnection, by: 'token' | 'certificate'): void {
    if (connection.closed) return;
    if (connection.standing === 'unauthenticated') {
      if (this.#authenticated.size >= this.#limits.authenticated && !this.#evictAuthenticated(connection, by)) {
        this.close(connection, 'too many connections');
        return;
      }
      this.#unauthenticated.delete(connection);
      connection.account.unauthenticated.delete(connection);
      this.#authenticated.add(connection);
      connection.account.authenticated.add(connection);
      connection.account.credits.refund(HANDSHAKE_CREDITS);
      connection.idleSinceMs = this.#turns.nowMs();
      connection.lastBytes = connection.door.bytesRead();
    }
    connection.standing = by;
    if (this.#waiting.size > 0) this.#planPump(0);
  }

  close(connection: GatedConnection, reason: string): void {
    if (connection.closed) return;
    this.forget(connection);
    connection.door.close(reason);
  }

  forget(connection: GatedConnection): void {
    connection.closed = true;
    this.#queued.delete(connection);
    this.#unauthenticated.delete(connection);
    this.#authenticated.delete(connection);
    const { account } = connection;
    if (account.queued.delete(connection) && account.queued.size === 0) this.#waiting.delete(account);
    account.unauthenticated.delete(connection);
    account.authenticated.delete(connection);
    if (this.#waiting.size > 0) this.#planPump(0);
  }

  #planPump(delayMs: number): void {
    const soon = delayMs <= 0;
    if (this.#pumpPlanned === 'soon' || (this.#pumpPlanned === 'later' && !soon)) return;
    this.#pumpPlanned = soon ? 'soon' : 'later';
    const pump = (): void => {
      this.#pumpPlanned = 'no';
      this.#pump();
    };
    if (soon) this.#turns.next(pump);
    else this.#turns.after(delayMs, pump);
  }

  /** Starts handshakes, round-robin over the addresses. */
  #pump(): void {
    const nowMs = this.#turns.nowMs();
    let begun = 0;
    let shortestMs = Number.POSITIVE_INFINITY;
    let unaffordable = 0;
    while (this.#waiting.size > unaffordable && begun < HANDSHAKES_PER_TURN) {
      const [account] = this.#waiting;
      const [connection] = account?.queued ?? [];
      if (account === undefined || connection === undefined) break;
      this.#waiting.delete(account);
      const delayMs = account.credits.delayMs(nowMs);
      if (delayMs > 0) {
        shortestMs = Math.min(shortestMs, delayMs);
        unaffordable += 1;
      } else if (!this.#hasRoom(account, nowMs)) {
        shortestMs = Math.min(shortestMs, ROOM_MS);
        unaffordable += 1;
      } else {
        account.credits.charge(HANDSHAKE_CREDITS);
        begun += 1;
        this.#begin(connection);
      }
      if (account.queued.size > 0) this.#waiting.add(account);
    }
    if (this.#waiting.size === 0) return;
    this.#planPump(this.#waiting.size > unaffordable ? 0 : shortestMs);
  }

  #begin(connection: GatedConnection): void {
    const { account } = connection;
    account.queued.delete(connection);
    this.#queued.delete(connection);
    connection.idleSinceMs = this.#turns.nowMs();
    account.unauthenticated.add(connection);
    this.#unauthenticated.add(connection);
    this.#poll();
    connection.door.begin();
  }

  /**
   * Whether a handshake of the account may start. On a full port, closes the longest idle connection of the address
   * with the most connections. If no connection has been idle or busy long enough, new connections wait.
   */
  #hasRoom(account: Account<GatedConnection>, nowMs: number): boolean {
    const { unauthenticated } = this.#limits;
    if (this.#unauthenticated.size < unauthenticated * CROWD_FACTOR) return true;
    const heaviest = this.#accounts.heaviest('unauthenticated');
    if (heaviest === undefined) return true;
    const isLighter = heaviest !== account && heaviest.unauthenticated.size > account.unauthenticated.size + 1;
    const patienceMs =
      isLighter || this.#queued.size > unauthenticated * FLOOD_FACTOR ? FLOOD_PATIENCE_MS : PATIENCE_MS;
    const busyPatienceMs = isLighter ? LIGHTER_BUSY_PATIENCE_MS : BUSY_PATIENCE_MS;
    for (const each of heaviest.unauthenticated) {
      if (nowMs - each.idleSinceMs < (each.door.busy() ? busyPatienceMs : patienceMs)) continue;
      each.violated('too many connections');
      return true;
    }
    return false;
  }

  /** Closes the oldest waiting connection of the address with the most waiting connections. */
  #evictQueued(): void {
    const [oldest] = this.#accounts.heaviest('queued')?.queued ?? [];
    oldest?.violated('too many connections');
  }

  /**
   * Closes an authenticated connection: connections with a token before connections with a certificate and, within each
   * group, idle before busy connections. Returns false if no connection may be closed.
   */
  #evictAuthenticated(newcomer: GatedConnection, by: 'token' | 'certificate'): boolean {
    let victim: GatedConnection | undefined;
    let best = Number.POSITIVE_INFINITY;
    for (const each of this.#authenticated) {
      const certified = each.standing === 'certificate';
      const busy = each.door.busy();
      // A new connection with a token never displaces a connection with a certificate.
      if (by === 'token' ? certified || busy : certified && busy) continue;
      const order = (certified ? 2 : 0) + (busy ? 1 : 0);
      if (order > best || (order === best && each.idleSinceMs >= (victim?.idleSinceMs ?? 0))) continue;
      victim = each;
      best = order;
    }
    victim ??= this.#busyOfHeaviest(newcomer);
    if (victim === undefined) return false;
    this.close(victim, 'too many connections');
    return true;
  }

  /** The oldest connection with a token of the address with the most connections, if these are too many. */
  #busyOfHeaviest(newcomer: GatedConnection): GatedConnection | undefined {
    const heaviest = this.#accounts.heaviest('authenticated');
    if (heaviest === undefined || heaviest === newcomer.account) return undefined;
    const { size } = heaviest.authenticated;
    if (size <= MANY_AUTHENTICATED || size <= newcomer.account.authenticated.size + 1) return undefined;
    return heaviest.authenticated.values().find(({ standing }) => standing === 'token');
  }

  #sweep(): void {
    const nowMs = this.#turns.nowMs();
    const { idleMs, unauthenticatedIdleMs, handshakeMs } = this.#limits;
    for (const each of this.#queued) {
      if (nowMs - each.openedMs <= handshakeMs) break;
      this.close(each, 'handshake timeout');
    }
    const crowdedIdleMs = nowMs - this.#floodedMs < FLOOD_MEMORY_MS ? FLOOD_IDLE_MS : CROWDED_IDLE_MS;
    let surplus = this.#unauthenticated.size - this.#limits.unauthenticated;
    for (const each of this.#unauthenticated) {
      const surplusMs = each.door.busy() ? unauthenticatedIdleMs : crowdedIdleMs;
      if (surplus > 0 && nowMs - each.idleSinceMs > surplusMs) {
        surplus -= 1;
        each.violated('too many connections');
      } else if (!each.secured) {
        if (nowMs - each.openedMs > handshakeMs) this.close(each, 'handshake timeout');
      } else if (!each.door.busy() && nowMs - each.idleSinceMs > unauthenticatedIdleMs) this.close(each, 'idle');
    }
    for (const each of this.#authenticated) {
      const bytes = each.door.bytesRead();
      if (bytes !== each.lastBytes || each.door.busy()) {
        each.lastBytes = bytes;
        each.idleSinceMs = nowMs;
      } else if (idleMs > 0 && nowMs - each.idleSinceMs > idleMs) this.close(each, 'idle');
    }
    this.#accounts.forgetSettled(nowMs);
  }

  /** Inspects the bytes from unauthenticated peers, because no library reports frames that need no response. */
  #poll(): void {
    if (this.#looking) return;
    this.#looking = true;
    this.#turns.afterEach(() => {
      for (let looks = 0; looks < LOOKS_PER_TURN; looks += 1) {
        this.#round ??= this.#unauthenticated.values();
        const { value, done } = this.#round.next();
        if (done === true) {
          this.#round = undefined;
          break;
        }
        const bytes = value.door.bytesRead() - value.lastBytes;
        if (bytes > (value.door.busy() ? PENDING_BYTES : UNAUTHENTICATED_BYTES))
          value.violated('too many bytes', bytes);
      }
      this.#looking = this.#unauthenticated.size > 0;
      return this.#looking;
    });
  }
}
