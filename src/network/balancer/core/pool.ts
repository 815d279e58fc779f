/**
 * API servers known to a node's balancer: the source of each address, its health, and its number of connections. The
 * pool selects the server for a new connection and decides which existing connections must be closed. Health only
 * affects the order: a server that every probe reports as dead is still tried last, so that a wrong result never
 * isolates a node.
 */
import type { Finding } from './port.ts';

/** `local`: the API server of this host. `saved`: read from disk. */
export type Source = 'local' | 'bootstrap' | 'api' | 'gossip' | 'saved';

export type Health = 'unknown' | 'ready' | 'unready' | 'stopping' | 'dead' | 'untrusted';

/** `drain`: close when no request is in progress. `reset`: close at once. */
export type Treatment = 'keep' | 'drain' | 'reset';

export interface Backend {
  readonly target: string;
  readonly health: Health;
  readonly connections: number;
  readonly treatment: Treatment;
  readonly sources: ReadonlySet<Source>;
}

/**
 * Number of consecutive failed checks after which a server counts as unready. An election of the store makes every API
 * server unready for a moment, so a single failure does not count.
 */
const FAILURES_UNTIL_UNREADY = 3;
const MAX_BACKENDS = 32;
/** Order of preference if there are too many servers. */
const SOURCES: readonly Source[] = ['local', 'bootstrap', 'api', 'gossip', 'saved'];
const RANK: Readonly<Record<Health, number>> = { ready: 0, unknown: 1, unready: 2, stopping: 3, dead: 4, untrusted: 5 };

interface Entry {
  readonly target: string;
  health: Health;
  failures: number;
  connections: number;
  sources: Set<Source>;
}

export class BackendPool {
  readonly #entries = new Map<string, Entry>();
  readonly #learned = new Map<Source, readonly string[]>();

  /**
   * Replaces the targets of `source`. A server that no source lists any more is removed once its connections have
   * ended.
   */
  setTargets(source: Source, targets: readonly string[]): void {
    this.#learned.set(source, [...new Set(targets)]);
    const named = new Map<string, Set<Source>>();
    for (const each of SOURCES) {
      for (const target of this.#learned.get(each) ?? []) {
        const sources = named.get(target);
        if (sources !== undefined) sources.add(each);
        else if (named.size < MAX_BACKENDS) named.set(target, new Set([each]));
      }
    }
    for (const [target, sources] of named) {
      const entry = this.#entries.get(target);
      if (entry === undefined)
        this.#entries.set(target, { target, health: 'unknown', failures: 0, connections: 0, sources });
      else entry.sources = sources;
    }
    for (const [target, entry] of this.#entries) {
      if (named.has(target)) continue;
      entry.sources = new Set();
      if (entry.connections === 0) this.#entries.delete(target);
    }
  }

  /**
   * Records the result of a probe. Returns the health before and after it; undefined if the server is unknown or its
   * health unchanged.
   */
  found(target: string, finding: Finding): { readonly before: Health; readonly after: Health } | undefined {
    const entry = this.#entries.get(target);
    if (entry === undefined) return undefined;
    const before = entry.health;
    const failed = finding === 'unready' || finding === 'silent';
    entry.failures = failed ? entry.failures + 1 : 0;
    const after = healthAfter(before, finding, entry.failures);
    entry.health = after;
    return before === after ? undefined : { before, after };
  }

  /**
   * The next server for a new connection after failed attempts with `tried`: the healthiest one; among those, the one
   * with the fewest connections; among those, selected by `random` in [0, 1). Undefined if no server is left.
   */
  choose(tried: ReadonlySet<string>, random: number): string | undefined {
    let best: Entry[] = [];
    for (const entry of this.#entries.values()) {
      if (tried.has(entry.target) || entry.sources.size === 0) continue;
      const order = best[0] === undefined ? -1 : compare(entry, best[0]);
      if (order < 0) best = [entry];
      else if (order === 0) best.push(entry);
    }
    return best[Math.floor(random * best.length)]?.target;
  }

  opened(target: string): void {
    const entry = this.#entries.get(target);
    if (entry !== undefined) entry.connections += 1;
  }

  closed(target: string): void {
    const entry = this.#entries.get(target);
    if (entry === undefined) return;
    entry.connections -= 1;
    if (entry.connections === 0 && entry.sources.size === 0) this.#entries.delete(target);
  }

  list(): readonly Backend[] {
    return [...this.#entries.values()].map((entry) => ({ ...entry, treatment: this.#treatment(entry) }));
  }

  #treatment({ target, health, sources }: Entry): Treatment {
    const isLost = health === 'dead' || health === 'untrusted';
    const leaves = health === 'unready' || health === 'stopping' || sources.size === 0;
    // While no other API server is ready, a connection that may still work is kept.
    if (!(isLost || leaves) || !this.#hasOtherReady(target)) return 'keep';
    return isLost ? 'reset' : 'drain';
  }

  #hasOtherReady(target: string): boolean {
    for (const each of this.#entries.values())
      if (each.target !== target && each.health === 'ready' && each.sources.size > 0) return true;
    return false;
  }
}

function healthAfter(before: Health, finding: Finding, failures: number): Health {
  switch (finding) {
    case 'ready':
      return 'ready';
    case 'stopping':
      return 'stopping';
    case 'unreachable':
      return 'dead';
    case 'untrusted':
      return 'untrusted';
    case 'unready':
    case 'silent':
      return before === 'ready' && failures < FAILURES_UNTIL_UNREADY ? 'ready' : 'unready';
  }
}

/** Compares two servers. The result is negative if `left` is the better choice. */
function compare(left: Entry, right: Entry): number {
  return RANK[left.health] - RANK[right.health] || left.connections - right.connections;
}

const MAX_SAVED = 16;

/**
 * Addresses to save for the next cold boot: the current ones, then those saved before. A server that is down now may be
 * the first one to be up at the next boot.
 */
export function addressesToSave(known: readonly string[], saved: readonly string[]): readonly string[] {
  return [...new Set([...known, ...saved])].slice(0, MAX_SAVED);
}
