import { storeRevision } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import { type Guard, prefixEnd, type Store, type StoreWatch } from '../../store/port.ts';

const PREFIX = '/registry/soleapiserver/';
const HOLDER = `${PREFIX}holder`;
const SERVERS = `${PREFIX}servers/`;
/** Other implementations of the API server announce themselves only below this prefix. */
const MASTER_LEASES = '/registry/masterleases/';
const TTL_SECONDS = 15;
/** The claim is dropped this long before the store may expire its lease. */
const MARGIN_MS = 2_000;
const RETRY_MS = 2_000;
const POLL_MS = 50;
const FAREWELL_MS = 1_000;
/** Maximum wait for the holder. A store with a new leader extends leases by their full lifetime. */
const HOLDER_WAIT_MS = 2 * TTL_SECONDS * 1000;

export interface SoleWriterOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  /** Address and port of the server. A restarted server has the same identity, so it continues its own claim. */
  readonly identity: string;
  readonly advertiseAddress: string;
  /** False: the server only announces its presence, and never claims to be the only writer. */
  readonly mayClaim: boolean;
}

/**
 * Determines whether this API server is the only writer of the store. Only then can it serve consistent reads without
 * querying the store. Each server writes its presence before it serves, and waits until the holder of the claim has
 * released it. The holder writes its claim first and then looks for other servers. Therefore, if two servers start at
 * the same time, at least one sees the other.
 */
export class SoleWriter {
  readonly #options: SoleWriterOptions;
  #lease: string | undefined;
  #validUntilMs = Number.NEGATIVE_INFINITY;
  #holds = false;
  #watch: StoreWatch | undefined;
  #keeping: Timer | undefined;
  #evaluating: Promise<void> | undefined;
  #wanted = false;
  #stopped = false;

  constructor(options: SoleWriterOptions) {
    this.#options = options;
  }

  /** True if no other server can have written since this server last checked. */
  get current(): boolean {
    return this.#holds && this.#options.clock.monotonicMs() < this.#validUntilMs;
  }

  get #ownKey(): string {
    return SERVERS + this.#options.identity;
  }

  /**
   * Announces this server. Call before it serves. Resolves when no other server holds the sole-writer claim. Never
   * rejects.
   */
  async announce(): Promise<void> {
    const { clock, log } = this.#options;
    const beganMs = clock.monotonicMs();
    try {
      await this.#writePresence();
      for (let noted = false; !this.#stopped; noted = true) {
        const holder = await this.#holder();
        if (holder === undefined || holder === this.#options.identity) break;
        if (!noted) log.v(2, 'waiting for another API server to release the sole-writer claim', { holder });
        if (clock.monotonicMs() - beganMs > HOLDER_WAIT_MS) {
          log.warn('another API server did not release the sole-writer claim in time', { holder });
          break;
        }
        await new Promise<void>((resolve) => {
          clock.setTimer(POLL_MS, resolve);
        });
      }
    } catch (error) {
      log.v(2, 'presence of this API server not written; retrying', { error: messageOf(error) });
    }
    this.#keepAlive();
    void this.#evaluate();
  }

  /** Releases the claim. Call after the last write of this server. Waits at most a second for the store. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#holds = false;
    this.#keeping?.cancel();
    this.#watch?.cancel();
    if (this.#lease === undefined) return;
    const { clock, log } = this.#options;
    await new Promise<void>((resolve) => {
      const timer = clock.setTimer(FAREWELL_MS, resolve);
      this.#withdraw()
        .catch((error: unknown) => log.v(2, 'presence not deleted; it expires', { error: messageOf(error) }))
        .finally(() => {
          timer.cancel();
          resolve();
        });
    });
  }

  async #withdraw(): Promise<void> {
    const deletes = [this.#ownKey];
    if ((await this.#holder()) === this.#options.identity) deletes.push(HOLDER);
    await this.#options.store.commit({ guards: [], deletes });
  }

  async #holder(): Promise<string | undefined> {
    const { kv } = await this.#options.store.get(HOLDER);
    return kv === undefined ? undefined : Buffer.from(kv.value).toString();
  }

  async #writePresence(): Promise<void> {
    const { store, clock, identity } = this.#options;
    const nowMs = clock.monotonicMs();
    const lease = await store.grantLease(TTL_SECONDS);
    await store.commit({ guards: [], puts: [{ key: this.#ownKey, value: Buffer.from(identity), lease }] });
    this.#lease = lease;
    this.#extend(nowMs);
  }

  #extend(sinceMs: number): void {
    this.#validUntilMs = sinceMs + TTL_SECONDS * 1000 - MARGIN_MS;
  }

  #keepAlive(): void {
    this.#keeping?.cancel();
    if (this.#stopped) return;
    this.#keeping = this.#options.clock.setTimer((TTL_SECONDS * 1000) / 3, () => {
      void this.#keep().finally(() => this.#keepAlive());
    });
  }

  async #keep(): Promise<void> {
    const { store, clock, log } = this.#options;
    const nowMs = clock.monotonicMs();
    try {
      const alive = this.#lease !== undefined && (await store.keepLease(this.#lease));
      // After a restore from a snapshot, the store may have the lease without the key, or neither of them.
      if (alive && (await store.get(this.#ownKey)).kv !== undefined) this.#extend(nowMs);
      else {
        // The claim has expired with the lease, so other servers may have started to write.
        this.#holds = false;
        if (!this.#stopped) await this.#writePresence();
      }
      if (!this.#holds) await this.#evaluate();
    } catch (error) {
      log.v(2, 'presence of this API server not renewed; retrying', { error: messageOf(error) });
    }
  }

  /** Re-evaluates the claim. Runs one at a time; a change during a run causes another run. Never rejects. */
  #evaluate(): Promise<void> {
    if (!this.#options.mayClaim) return Promise.resolve();
    this.#wanted = true;
    this.#evaluating ??= this.#evaluateAll().finally(() => {
      this.#evaluating = undefined;
    });
    return this.#evaluating;
  }

  async #evaluateAll(): Promise<void> {
    const { store, clock, log, identity } = this.#options;
    while (this.#wanted && !this.#stopped) {
      this.#wanted = false;
      try {
        const found = await this.#otherMasters();
        this.#watch ??= this.#follow(found.revision + 1);
        if (found.any) {
          this.#holds = false;
          if ((await this.#holder()) === identity) await store.commit({ guards: [], deletes: [HOLDER] });
        } else if (!this.#holds && this.#lease !== undefined) await this.#claim(this.#lease);
      } catch (error) {
        this.#holds = false;
        log.v(2, 'cannot check for other API servers; retrying', { error: messageOf(error) });
        clock.setTimer(RETRY_MS, () => void this.#evaluate());
        return;
      }
    }
  }

  async #claim(lease: string): Promise<void> {
    const { store, log, identity } = this.#options;
    const { kv } = await store.get(HOLDER);
    if (kv !== undefined && Buffer.from(kv.value).toString() !== identity) return;
    const guards: Guard[] = [{ key: HOLDER, modRevision: kv?.modRevision ?? 0 }];
    const { committed } = await store.commit({ guards, puts: [{ key: HOLDER, value: Buffer.from(identity), lease }] });
    // If a server has started in the meantime, either this check finds it, or it finds the claim and waits.
    if (!committed || (await this.#otherMasters()).any) {
      this.#wanted = true;
      return;
    }
    this.#holds = !this.#wanted && !this.#stopped;
    log.v(3, 'sole-writer claim acquired', { identity });
  }

  async #otherMasters(): Promise<{ readonly any: boolean; readonly revision: number }> {
    const { store, advertiseAddress } = this.#options;
    const servers = await store.range(SERVERS, prefixEnd(SERVERS), { keysOnly: true });
    const masters = await store.range(MASTER_LEASES, prefixEnd(MASTER_LEASES), { keysOnly: true });
    const any =
      servers.kvs.some(({ key }) => key !== this.#ownKey) ||
      masters.kvs.some(({ key }) => key !== MASTER_LEASES + advertiseAddress);
    return { any, revision: servers.revision };
  }

  #follow(fromRevision: number): StoreWatch {
    const changed = (): void => void this.#evaluate();
    return this.#options.store.watch(PREFIX, prefixEnd(PREFIX), storeRevision(fromRevision), {
      events: (events) => {
        if (events.some(({ type, kv }) => type === 'put' && kv.key.startsWith(SERVERS) && kv.key !== this.#ownKey))
          this.#holds = false;
        if (events.some(({ kv }) => kv.key !== HOLDER)) changed();
      },
      progress: () => {},
      closed: () => {
        this.#watch = undefined;
        this.#holds = false;
        changed();
      },
    });
  }
}
