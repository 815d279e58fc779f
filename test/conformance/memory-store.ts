/**
 * A `Store` that keeps an array of revisions and scans it for requests at old revisions. It is the oracle for other implementations
 * and the store of API server tests. It is not shipped.
 */
import { storeRevision } from '../../src/base/brand.ts';
import {
  type Commit,
  type CommitResult,
  type KeyValue,
  type RangeOptions,
  type Revision,
  type Store,
  StoreError,
  type StoreWatch,
  type WatchEvent,
  type WatchHandler,
} from '../../src/store/port.ts';

interface Change {
  readonly revision: Revision;
  readonly event: WatchEvent;
  readonly lease?: string | undefined;
}

interface State {
  readonly kv: KeyValue;
  readonly lease: string | undefined;
}

interface Watcher {
  readonly start: string;
  readonly end: string;
  readonly handler: WatchHandler;
  next: Revision;
  open: boolean;
  progressWanted: boolean;
}

export interface MemoryStoreOptions {
  /** Revision of the empty store; etcd's is 1. */
  readonly firstRevision?: Revision;
}

export interface MemoryStore extends Store {
  /** `setFull(true)` makes every write fail as on a full disk, until `setFull(false)` is called. */
  setFull(full: boolean): void;
  /** All changes so far, in order. */
  history(): readonly { readonly revision: Revision; readonly event: WatchEvent }[];
}

/** Creates the store. It has timers only while leases exist, and they do not keep the process alive. */
export function createMemoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  const changes: Change[] = [];
  const watchers = new Set<Watcher>();
  const leases = new Map<string, NodeJS.Timeout>();
  let revision = options.firstRevision ?? storeRevision(1);
  let compacted = 0;
  let leaseCounter = 0;
  let full = false;
  let closed = false;

  const latest = new Map<string, State>();
  const applyTo = (state: Map<string, State>, { event, lease }: Change): void => {
    if (event.type === 'delete') state.delete(event.kv.key);
    else state.set(event.kv.key, { kv: event.kv, lease });
  };
  const stateAt = (at: Revision): ReadonlyMap<string, State> => {
    if (at === revision) return latest;
    const state = new Map<string, State>();
    for (const change of changes) {
      if (change.revision > at) break;
      applyTo(state, change);
    }
    return state;
  };

  const readable = (at: Revision | undefined): Revision => {
    if (closed) throw new StoreError('unavailable', 'store is closed');
    if (at === undefined || at <= 0) return revision;
    if (at > revision) throw new StoreError('future-revision', 'required revision is a future revision');
    if (at < compacted) throw new StoreError('compacted', 'required revision has been compacted');
    return at;
  };

  const pump = (watcher: Watcher): void => {
    if (!watcher.open) return;
    if (watcher.next < compacted) {
      watcher.open = false;
      watchers.delete(watcher);
      watcher.handler.closed(new StoreError('compacted', 'required revision has been compacted'));
      return;
    }
    const first = changes.findLastIndex((c) => c.revision < watcher.next) + 1;
    const events = changes
      .slice(first)
      .filter((c) => c.event.kv.key >= watcher.start && c.event.kv.key < watcher.end)
      .map((c) => c.event);
    watcher.next = storeRevision(Math.max(watcher.next, revision + 1));
    const last = events.at(-1);
    if (last !== undefined) watcher.handler.events(events, last.kv.modRevision);
    if (watcher.progressWanted && watcher.open) {
      watcher.progressWanted = false;
      watcher.handler.progress(revision);
    }
  };

  const apply = (events: readonly { event: WatchEvent; lease?: string | undefined }[]): void => {
    if (events.length === 0) return;
    revision = storeRevision(revision + 1);
    for (const { event, lease } of events) {
      const change = { revision, event, lease };
      changes.push(change);
      applyTo(latest, change);
    }
    for (const watcher of watchers) setImmediate(pump, watcher);
  };

  const deletion = (kv: KeyValue): WatchEvent => ({
    type: 'delete',
    kv: {
      key: kv.key,
      value: new Uint8Array(0),
      createRevision: storeRevision(0),
      modRevision: storeRevision(revision + 1),
    },
  });

  const expire = (lease: string): void => {
    leases.delete(lease);
    const held = [...stateAt(revision).values()].filter((entry) => entry.lease === lease);
    apply(held.map((entry) => ({ event: deletion(entry.kv) })));
  };

  return {
    get: async (key, getOptions) => {
      const at = readable(getOptions?.revision);
      return { kv: stateAt(at).get(key)?.kv, revision };
    },
    range: async (start, end, rangeOptions: RangeOptions = {}) => {
      const at = readable(rangeOptions.revision);
      const all = [...stateAt(at).values()]
        .map((entry) => entry.kv)
        .filter((kv) => kv.key >= start && kv.key < end)
        .sort((a, b) => (a.key < b.key ? -1 : 1));
      if (rangeOptions.countOnly) return { kvs: [], more: false, count: all.length, revision };
      const limit = rangeOptions.limit === undefined || rangeOptions.limit <= 0 ? all.length : rangeOptions.limit;
      const kvs = all.slice(0, limit).map((kv) => (rangeOptions.keysOnly ? { ...kv, value: new Uint8Array(0) } : kv));
      return { kvs, more: all.length > limit, count: all.length, revision };
    },
    commit: async (commit: Commit): Promise<CommitResult> => {
      readable(undefined);
      const state = stateAt(revision);
      if (commit.guards.some((g) => (state.get(g.key)?.kv.modRevision ?? 0) !== g.modRevision)) {
        return { committed: false, revision, current: commit.guards.map((g) => state.get(g.key)?.kv) };
      }
      if (full) throw new StoreError('no-space', 'etcdserver: mvcc: database space exceeded');
      // The limit is that of etcd's --max-request-bytes.
      const bytes = (commit.puts ?? []).reduce((sum, { value }) => sum + value.length, 0);
      if (bytes > 1.5 * 1024 * 1024) throw new StoreError('too-large', 'etcdserver: request is too large');
      for (const put of commit.puts ?? []) {
        if (put.lease !== undefined && !leases.has(put.lease)) {
          throw new StoreError('lease-not-found', 'etcdserver: requested lease not found');
        }
      }
      const events: { event: WatchEvent; lease?: string | undefined }[] = [];
      for (const put of commit.puts ?? []) {
        const previous = state.get(put.key)?.kv;
        const kv: KeyValue = {
          key: put.key,
          value: Uint8Array.from(put.value),
          createRevision: previous?.createRevision ?? storeRevision(revision + 1),
          modRevision: storeRevision(revision + 1),
        };
        events.push({ event: { type: 'put', kv }, lease: put.lease });
      }
      for (const key of commit.deletes ?? []) {
        const previous = state.get(key)?.kv;
        if (previous !== undefined) events.push({ event: deletion(previous) });
      }
      apply(events);
      return { committed: true, revision };
    },
    watch: (start, end, fromRevision, handler): StoreWatch => {
      const next = fromRevision <= 0 ? storeRevision(revision + 1) : fromRevision;
      const watcher: Watcher = { start, end, handler, next, open: true, progressWanted: false };
      watchers.add(watcher);
      setImmediate(pump, watcher);
      return {
        requestProgress: () => {
          watcher.progressWanted = true;
          setImmediate(pump, watcher);
        },
        cancel: () => {
          watcher.open = false;
          watchers.delete(watcher);
        },
      };
    },
    grantLease: async (ttlSeconds) => {
      readable(undefined);
      leaseCounter += 1;
      const lease = String(leaseCounter);
      leases.set(lease, setTimeout(expire, Math.max(ttlSeconds, 2) * 1000, lease).unref());
      return lease;
    },
    keepLease: async (lease) => {
      readable(undefined);
      const timer = leases.get(lease);
      timer?.refresh();
      return timer !== undefined;
    },
    compact: async (at) => {
      readable(undefined);
      if (at <= compacted) throw new StoreError('compacted', 'required revision has been compacted');
      if (at > revision) throw new StoreError('future-revision', 'required revision is a future revision');
      compacted = at;
    },
    ping: async () => {
      readable(undefined);
    },
    size: async () => {
      readable(undefined);
      return 4096;
    },
    close: async () => {
      closed = true;
      for (const timer of leases.values()) clearTimeout(timer);
      leases.clear();
      for (const watcher of watchers) watcher.open = false;
      watchers.clear();
    },
    setFull: (value) => {
      full = value;
    },
    history: () => changes,
  };
}
