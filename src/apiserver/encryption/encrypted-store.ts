/** Store decorator that encrypts values as configured. Its users see plain values. */

import { ignore, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import {
  type Commit,
  type CommitResult,
  type KeyValue,
  type RangeOptions,
  type RangeResult,
  type Revision,
  type Store,
  StoreError,
  type StoreWatch,
  type WatchEvent,
  type WatchHandler,
} from '../../store/port.ts';
import type { EncryptionConfiguration, EncryptionSource, GroupResource } from './configuration.ts';
import { Sealer, UnreadableValue } from './sealer.ts';

export interface EncryptedStoreDeps {
  readonly store: Store;
  readonly source: EncryptionSource;
  /** The kind of a store key. Undefined for keys that are never encrypted. */
  resourceOf(key: string): GroupResource | undefined;
  readonly log: Log;
  nowMs(): number;
}

/** Minimum interval between reloads of the configuration that unreadable values cause. */
const REFRESH_PAUSE_MS = 1_000;

export class EncryptedStore implements Store {
  readonly #deps: EncryptedStoreDeps;
  #sealer: Sealer;
  #configuration: EncryptionConfiguration;
  #refreshedMs = Number.NEGATIVE_INFINITY;
  /** Encryption scheme by key, for encrypted values only. Keys with equal schemes share one string. */
  readonly #schemes = new Map<string, string>();
  readonly #interned = new Map<string, string>();

  constructor(deps: EncryptedStoreDeps) {
    this.#deps = deps;
    this.#configuration = deps.source.current;
    this.#sealer = new Sealer(this.#configuration, deps.nowMs);
  }

  #current(): Sealer {
    const { current } = this.#deps.source;
    if (current !== this.#configuration) {
      this.#configuration = current;
      this.#sealer = new Sealer(current, this.#deps.nowMs);
    }
    return this.#sealer;
  }

  /** Reports whether the value of `key` is stored with a scheme other than the current one. */
  isStale(key: string): boolean {
    const kind = this.#deps.resourceOf(key);
    return kind !== undefined && (this.#schemes.get(key) ?? '') !== this.#current().writes(kind);
  }

  /** Scheme of the stored value; '' for a plain value. */
  formOf(key: string): string {
    return this.#schemes.get(key) ?? '';
  }

  /** Current scheme for new values of this kind. */
  writes(kind: GroupResource): string {
    return this.#current().writes(kind);
  }

  #note(key: string, scheme: string): void {
    if (scheme === '') this.#schemes.delete(key);
    else {
      if (!this.#interned.has(scheme)) this.#interned.set(scheme, scheme);
      this.#schemes.set(key, this.#interned.get(scheme) as string);
    }
  }

  /** Returns the pair with its decrypted value, synchronously if possible. Throws and rejects as `Sealer.open` does. */
  #opened(kv: KeyValue): KeyValue | Promise<KeyValue> {
    const kind = this.#deps.resourceOf(kv.key);
    if (kind === undefined) return kv;
    const opened = this.#current().open(kind, kv.value, kv.key);
    this.#note(kv.key, opened?.scheme ?? '');
    if (opened === undefined) return kv;
    const { plain } = opened;
    return plain instanceof Promise ? plain.then((value) => ({ ...kv, value })) : { ...kv, value: plain };
  }

  /** Like `#opened`, but reloads the configuration once if the value cannot be decrypted. Rejects with a StoreError. */
  async #openedWithReload(kv: KeyValue): Promise<KeyValue> {
    try {
      return await this.#opened(kv);
    } catch (error) {
      if (!(error instanceof UnreadableValue)) {
        throw new StoreError('unavailable', `${kv.key}: ${messageOf(error)}`, { cause: error });
      }
      const nowMs = this.#deps.nowMs();
      if (nowMs - this.#refreshedMs > REFRESH_PAUSE_MS) {
        this.#refreshedMs = nowMs;
        await this.#deps.source.refresh();
      }
      try {
        return await this.#opened(kv);
      } catch (again) {
        throw new StoreError('internal', `${kv.key}: ${messageOf(again)}`, { cause: again });
      }
    }
  }

  /** Decrypts a value of a list or watch. A value that cannot be decrypted becomes empty, and the error is logged. */
  async #openedOrEmpty(kv: KeyValue): Promise<KeyValue> {
    try {
      return await this.#openedWithReload(kv);
    } catch (error) {
      if (error instanceof StoreError && error.code === 'unavailable') throw error;
      this.#deps.log.error('stored value cannot be decrypted', { key: kv.key, error: messageOf(error) });
      return { ...kv, value: Buffer.alloc(0) };
    }
  }

  #openedIfPossible(kv: KeyValue): KeyValue | Promise<KeyValue> {
    try {
      const opened = this.#opened(kv);
      return opened instanceof Promise ? opened.catch(() => this.#openedOrEmpty(kv)) : opened;
    } catch {
      return this.#openedOrEmpty(kv);
    }
  }

  async get(
    key: string,
    options?: { readonly revision?: Revision },
  ): Promise<{ readonly kv: KeyValue | undefined; readonly revision: Revision }> {
    const { kv, revision } = await this.#deps.store.get(key, options);
    return { kv: kv === undefined ? undefined : await this.#openedWithReload(kv), revision };
  }

  async range(start: string, end: string, options?: RangeOptions): Promise<RangeResult> {
    const result = await this.#deps.store.range(start, end, options);
    if (options?.keysOnly === true || options?.countOnly === true) return result;
    return { ...result, kvs: await Promise.all(result.kvs.map((kv) => this.#openedIfPossible(kv))) };
  }

  async commit(commit: Commit): Promise<CommitResult> {
    const sealed = await this.#sealed(commit);
    const result = await this.#deps.store.commit(sealed);
    if (result.committed) return result;
    const current = result.current.map((kv) => (kv === undefined ? undefined : this.#openedWithReload(kv)));
    return { ...result, current: await Promise.all(current) };
  }

  /** The commit with encrypted values. Returns the same object if nothing needs encryption. */
  #sealed(commit: Commit): Commit | Promise<Commit> {
    const { puts = [] } = commit;
    const sealer = this.#current();
    const sealing = puts.map((put) => {
      const kind = this.#deps.resourceOf(put.key);
      const value = kind === undefined ? undefined : sealer.seal(kind, put.value, put.key);
      if (value instanceof Promise) {
        return value.then(
          (bytes) => ({ ...put, value: bytes }),
          (error: unknown) => {
            throw new StoreError('unavailable', `cannot encrypt ${put.key}: ${messageOf(error)}`, { cause: error });
          },
        );
      }
      return value === undefined ? put : { ...put, value };
    });
    if (sealing.some((each) => each instanceof Promise)) {
      return Promise.all(sealing).then((ready) => ({ ...commit, puts: ready }));
    }
    return sealing.some((each, index) => each !== puts[index])
      ? { ...commit, puts: sealing as Exclude<(typeof sealing)[number], Promise<unknown>>[] }
      : commit;
  }

  watch(start: string, end: string, fromRevision: Revision, handler: WatchHandler): StoreWatch {
    const inner = new OpeningHandler(handler, (event) => this.#openedEvent(event));
    const watch = this.#deps.store.watch(start, end, fromRevision, inner);
    inner.cancel = () => watch.cancel();
    return {
      requestProgress: () => watch.requestProgress(),
      cancel: () => {
        inner.over = true;
        watch.cancel();
      },
    };
  }

  /** Decrypts the current value of the event only, because no watcher uses the previous one. */
  #openedEvent(event: WatchEvent): WatchEvent | Promise<WatchEvent> {
    if (event.type === 'delete') {
      this.#schemes.delete(event.kv.key);
      return event;
    }
    const kv = this.#openedIfPossible(event.kv);
    if (kv === event.kv) return event;
    return kv instanceof Promise ? kv.then((ready) => ({ type: 'put', kv: ready })) : { type: 'put', kv };
  }

  keepLease(lease: string): Promise<boolean> {
    return this.#deps.store.keepLease(lease);
  }

  grantLease(ttlSeconds: number): Promise<string> {
    return this.#deps.store.grantLease(ttlSeconds);
  }
  compact(revision: Revision): Promise<void> {
    return this.#deps.store.compact(revision);
  }
  ping(timeoutMs: number): Promise<void> {
    return this.#deps.store.ping(timeoutMs);
  }
  size(timeoutMs: number): Promise<number> {
    return this.#deps.store.size(timeoutMs);
  }
  /** Checks the KMS plug-ins. Rejects if a plug-in does not respond or is unhealthy. */
  checkPlugins(): Promise<void> {
    return this.#current().check();
  }
  close(): Promise<void> {
    return this.#deps.store.close();
  }
}

/** Delivers events in order, synchronously unless a decryption is pending. */
class OpeningHandler implements WatchHandler {
  readonly #outer: WatchHandler;
  readonly #open: (event: WatchEvent) => WatchEvent | Promise<WatchEvent>;
  #tail: Promise<void> | undefined;
  over = false;
  cancel: () => void = () => {};

  constructor(outer: WatchHandler, open: (event: WatchEvent) => WatchEvent | Promise<WatchEvent>) {
    this.#outer = outer;
    this.#open = open;
  }

  events(events: readonly WatchEvent[], revision: Revision): void {
    const opened = events.map((event) => this.#open(event));
    if (this.#tail === undefined && !opened.some((each) => each instanceof Promise)) {
      this.#outer.events(opened as WatchEvent[], revision);
      return;
    }
    const ready = Promise.all(opened);
    // The rejection is handled when the event is delivered.
    ready.catch(ignore('handled when the event is delivered'));
    this.#after(async () => this.#outer.events(await ready, revision));
  }

  progress(revision: Revision): void {
    this.#after(() => this.#outer.progress(revision));
  }

  closed(error: StoreError): void {
    this.#after(() => this.#outer.closed(error));
  }

  #after(step: () => void | Promise<void>): void {
    if (this.over) return;
    if (this.#tail === undefined) {
      const done = step();
      if (done instanceof Promise) this.#wait(done);
      return;
    }
    this.#wait(this.#tail.then(() => (this.over ? undefined : step())));
  }

  #wait(step: Promise<void>): void {
    const tail = step
      .catch((error: unknown) => {
        if (this.over) return;
        this.over = true;
        this.cancel();
        this.#outer.closed(
          error instanceof StoreError ? error : new StoreError('internal', messageOf(error), { cause: error }),
        );
      })
      .finally(() => {
        if (this.#tail === tail) this.#tail = undefined;
      });
    this.#tail = tail;
  }
}
