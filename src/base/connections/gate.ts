/**
 * Admits connections to a port so that a peer without credentials costs less than an authenticated client: handshakes
 * are paced and charged to the peer's address, unauthenticated connections are few, short-lived and small, and idle
 * connections are closed when the port is full. Pure but for its `Turns`. Source: CVE-2023-44487, Kubernetes' feature
 * gate UnauthenticatedHTTP2DOSMitigation.
 */
import { type Account, Accounts } from './accounts.ts';
import { eventLoopTurns, type Turns } from './turns.ts';

export interface GateLimits {
  /** Authenticated connections at once. */
  readonly authenticated: number;
  /**
   * Connections that may stay unauthenticated. Four times as many have a few seconds to authenticate, since clients may
   * come all at once, and eight times as many may wait for their handshake: they cost little.
   */
  readonly unauthenticated: number;
  /** An authenticated connection without a request is closed after this time; 0: never. */
  readonly idleMs: number;
  /** An unauthenticated connection without a request in progress is closed after this time. */
  readonly unauthenticatedIdleMs: number;
  /** From accept to the end of the handshake. */
  readonly handshakeMs: number;
}

/** What the gate does with a connection. */
export interface Door {
  /** The handshake may begin. */
  begin(): void;
  close(reason: string): void;
  /** Encrypted bytes that have been read from the socket. */
  bytesRead(): number;
  /** A request or a stream is in progress. */
  busy(): boolean;
}

/** How a connection was authenticated; connections by certificate are the last to be closed. */
export type Standing = 'stranger' | 'token' | 'certificate';

const SWEEP_MS = 1000;
const QUEUED_PER_STRANGER = 8;
/** Connections that may wait for their handshake on a port with few places. */
const MIN_QUEUED = 512;
/** Connections that may be about to authenticate, for each that may stay unauthenticated. */
const CROWD_FACTOR = 4;
/** Idle connections beyond those that may stay are closed after this. */
const CROWDED_IDLE_MS = 5_000;
/** The same for some time after a flood. */
const FLOOD_IDLE_MS = 1_000;
const FLOOD_MEMORY_MS = 10_000;
/** A full port serves connections that wait before it closes any that has been idle for less than this. */
const PATIENCE_MS = 1_000;
/** The same in a flood, or for a connection of an address that holds fewer. */
const FLOOD_PATIENCE_MS = 100;
/** So many times those that may stay wait in a flood. */
const FLOOD_FACTOR = 4;
/** Interval of attempts to find a place. */
const ROOM_MS = 20;
/** Handshakes that begin in one turn of the event loop. */
const HANDSHAKES_PER_TURN = 4;
const HANDSHAKE_CREDITS = 1;
const REFUSAL_CREDITS = 0.5;
const VIOLATION_CREDITS = 1;
/**
 * Megabytes may have been read of a flood before it is noticed, at the end of a turn: what a millisecond decrypts and
 * parses.
 */
const BYTES_PER_CREDIT = 800_000;
/**
 * What a peer may send before its first request, and after each, until it is authenticated: a handshake with a chain of
 * certificates, a header …
 */
const STRANGER_BYTES = 192 * 1024;
/** … and a body, while a token is being reviewed. */
const PENDING_BYTES = 4 * 1024 * 1024;
/** Connections whose bytes are looked at after one turn. */
const LOOKS_PER_TURN = 32;

export class GatedConnection {
  readonly account: Account<GatedConnection>;
  readonly door: Door;
  readonly openedMs: number;
  standing: Standing = 'stranger';
  secured = false;
  closed = false;
  idleSinceMs: number;
  /** Bytes read when it was last active. */
  lastBytes = 0;
  readonly #gate: ConnectionGate;
  #greetingBytes = 0;

  constructor(gate: ConnectionGate, account: Account<GatedConnection>, door: Door, nowMs: number) {
    this.#gate = gate;
    this.account = account;
    this.door = door;
    this.openedMs = nowMs;
    this.idleSinceMs = nowMs;
  }

  /** The handshake is complete. */
  greeted(): void {
    this.secured = true;
    this.#greetingBytes = this.door.bytesRead();
  }

  /** Encrypted bytes that have been read since the handshake. */
  bytesSinceGreeting(): number {
    return this.door.bytesRead() - this.#greetingBytes;
  }

  authenticated(by: 'token' | 'certificate'): void {
    this.secured = true;
    if (this.standing !== by && this.standing !== 'certificate') this.#gate.promote(this, by);
  }

  /** A peer without an identity has sent a request. */
  requested(): void {
    this.idleSinceMs = this.#gate.nowMs();
    this.lastBytes = this.door.bytesRead();
  }

  /** A request was answered without an identity. */
  refused(): void {
    this.account.credits.charge(REFUSAL_CREDITS);
  }

  /** Closes a connection that breaks the rules of its protocol. */
  violated(reason: string, bytes = 0): void {
    if (this.closed) return;
    this.account.credits.charge(Math.max(VIOLATION_CREDITS, bytes / BYTES_PER_CREDIT));
    this.#gate.close(this, reason);
  }

  /** The socket is closed. */
  ended(): void {
    this.#gate.forget(this);
  }
}

export class ConnectionGate {
  readonly #limits: GateLimits;
  readonly #turns: Turns;
  readonly #accounts = new Accounts<GatedConnection>();
  /** Connections whose handshake has not begun. */
  readonly #queued = new Set<GatedConnection>();
  readonly #strangers = new Set<GatedConnection>();
  readonly #authenticated = new Set<GatedConnection>();
  /** Accounts with connections that wait for their handshake, in the order of their turns. */
  readonly #waiting = new Set<Account<GatedConnection>>();
  readonly #cancelSweep: () => void;
  #pumpPlanned: 'no' | 'soon' | 'later' = 'no';
  #looking = false;
  /** When more connections waited than a crowd of clients opens. */
  #floodedMs = Number.NEGATIVE_INFINITY;
  /** Connections that are looked at in this round. */
  #round: IterableIterator<GatedConnection> | undefined;

  constructor(limits: GateLimits, turns: Turns = eventLoopTurns) {
    this.#limits = limits;
    this.#turns = turns;
    this.#cancelSweep = turns.every(SWEEP_MS, () => this.#sweep());
  }

  /** Open connections, and addresses that are remembered. */
  get counts(): Readonly<Record<'queued' | 'strangers' | 'authenticated' | 'addresses', number>> {
    return {
      queued: this.#queued.size,
      strangers: this.#strangers.size,
      authenticated: this.#authenticated.size,
      addresses: this.#accounts.size,
    };
  }

  nowMs(): number {
    return this.#turns.nowMs();
  }

  /** `door` begins in a later turn. */
  open(address: string, door: Door): GatedConnection {
    const places = Math.max(MIN_QUEUED, this.#limits.unauthenticated * QUEUED_PER_STRANGER);
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
    if (connection.standing === 'stranger') {
      if (this.#authenticated.size >= this.#limits.authenticated && !this.#evictAuthenticated(by)) {
        this.close(connection, 'too many connections');
        return;
      }
      this.#strangers.delete(connection);
      connection.account.strangers.delete(connection);
      this.#authenticated.add(connection);
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
    this.#strangers.delete(connection);
    this.#authenticated.delete(connection);
    const { account } = connection;
    if (account.queued.delete(connection) && account.queued.size === 0) this.#waiting.delete(account);
    account.strangers.delete(connection);
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

  /** Begins handshakes, one of each address in turn. */
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
    account.strangers.add(connection);
    this.#strangers.add(connection);
    this.#look();
    connection.door.begin();
  }

  /**
   * Whether a handshake of the account may begin. On a full port the oldest connection that has been idle for long is
   * closed, of the address that holds most; connections that are merely many wait for each other.
   */
  #hasRoom(account: Account<GatedConnection>, nowMs: number): boolean {
    const { unauthenticated } = this.#limits;
    if (this.#strangers.size < unauthenticated * CROWD_FACTOR) return true;
    const heaviest = this.#accounts.heaviest('strangers');
    if (heaviest === undefined) return true;
    const isLighter = heaviest !== account && heaviest.strangers.size > account.strangers.size + 1;
    const patienceMs =
      isLighter || this.#queued.size > unauthenticated * FLOOD_FACTOR ? FLOOD_PATIENCE_MS : PATIENCE_MS;
    for (const each of heaviest.strangers) {
      if (each.door.busy() || nowMs - each.idleSinceMs < patienceMs) continue;
      each.violated('too many connections');
      return true;
    }
    return false;
  }

  /** Closes the oldest of the address that has most connections waiting. */
  #evictQueued(): void {
    const [oldest] = this.#accounts.heaviest('queued')?.queued ?? [];
    oldest?.violated('too many connections');
  }

  /**
   * Idle before busy, authenticated by a token before by a certificate. False: all are busy and none may be closed for
   * another.
   */
  #evictAuthenticated(by: 'token' | 'certificate'): boolean {
    let victim: GatedConnection | undefined;
    let best = Number.POSITIVE_INFINITY;
    for (const each of this.#authenticated) {
      const certified = each.standing === 'certificate';
      const busy = each.door.busy();
      // A token never costs a connection by certificate its place, nor a busy connection.
      if (by === 'token' ? certified || busy : certified && busy) continue;
      const order = (certified ? 2 : 0) + (busy ? 1 : 0);
      if (order > best || (order === best && each.idleSinceMs >= (victim?.idleSinceMs ?? 0))) continue;
      victim = each;
      best = order;
    }
    if (victim === undefined) return false;
    this.close(victim, 'too many connections');
    return true;
  }

  #sweep(): void {
    const nowMs = this.#turns.nowMs();
    const { idleMs, unauthenticatedIdleMs, handshakeMs } = this.#limits;
    for (const each of this.#queued) {
      if (nowMs - each.openedMs <= handshakeMs) break;
      this.close(each, 'handshake timeout');
    }
    const crowdedIdleMs = nowMs - this.#floodedMs < FLOOD_MEMORY_MS ? FLOOD_IDLE_MS : CROWDED_IDLE_MS;
    let surplus = this.#strangers.size - this.#limits.unauthenticated;
    for (const each of this.#strangers) {
      if (surplus > 0 && !each.door.busy() && nowMs - each.idleSinceMs > crowdedIdleMs) {
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

  /** Watches what unauthenticated peers send: no library reports frames that need no answer. */
  #look(): void {
    if (this.#looking) return;
    this.#looking = true;
    this.#turns.afterEach(() => {
      for (let looks = 0; looks < LOOKS_PER_TURN; looks += 1) {
        this.#round ??= this.#strangers.values();
        const { value, done } = this.#round.next();
        if (done === true) {
          this.#round = undefined;
          break;
        }
        const bytes = value.door.bytesRead() - value.lastBytes;
        if (bytes > (value.door.busy() ? PENDING_BYTES : STRANGER_BYTES)) value.violated('too many bytes', bytes);
      }
      this.#looking = this.#strangers.size > 0;
      return this.#looking;
    });
  }
}
