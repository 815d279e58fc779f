/**
 * Selects a server of a route: first the pool by weight, then the server by the route's algorithm. State is kept by
 * route and server, so that a new table does not reset it. Source: HAProxy's configuration manual, `balance`, `cookie`.
 */
import { BoundedMap } from '../../../base/bounded-map.ts';
import { fnv, hashNumber } from './hash.ts';
import type { Backend, Balancing, Choice, Client, Endpoint, Pool } from './port.ts';

const CONNECTION_WINDOW_MS = 3_000;
const REQUEST_WINDOW_MS = 10_000;
/** Maximum number of client addresses with counters. Above it, the oldest addresses are dropped. */
const MAX_SOURCES = 100_000;

interface Counts {
  open: number;
  connections: number;
  connectionsSinceMs: number;
  requests: number;
  requestsSinceMs: number;
}

export const endpointKey = ({ address, port }: Endpoint): string =>
  address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;

/** @param random Returns a number uniform in [0, 1). */
export class Balancer implements Balancing {
  readonly #random: () => number;
  readonly #inFlight = new Map<string, number>();
  /**
   * State of the pools by route and pool: the balance of smooth weighted round robin, and the position of the next
   * server.
   */
  readonly #turns = new Map<string, Map<string, { left: number; next: number }>>();
  readonly #sources = new BoundedMap<string, Counts>(MAX_SOURCES);
  /** Cache of cookie values by server. */
  readonly #cookies = new BoundedMap<string, string>(MAX_SOURCES);

  constructor(random: () => number) {
    this.#random = random;
  }

  pick(backend: Backend, client: Client, tried: ReadonlySet<string>): Choice | undefined {
    if (client.cookie !== undefined) {
      const sticky = this.#byCookie(backend, client.cookie, tried);
      if (sticky !== undefined) return sticky;
    }
    const left = backend.pools
      .filter(({ weight, endpoints }) => weight > 0 && endpoints.length > 0)
      .map((pool) => ({
        pool,
        endpoints: tried.size === 0 ? pool.endpoints : pool.endpoints.filter((each) => !tried.has(endpointKey(each))),
      }))
      .filter(({ endpoints }) => endpoints.length > 0);
    const chosen = this.#choosePool(backend, client, left);
    if (chosen === undefined) return undefined;
    const endpoint = this.#chooseEndpoint(backend, client, chosen.pool, chosen.endpoints);
    return endpoint === undefined ? undefined : this.#choice(backend, chosen.pool, endpoint);
  }

  opened({ key }: Choice): void {
    this.#inFlight.set(key, (this.#inFlight.get(key) ?? 0) + 1);
  }

  closed({ key }: Choice): void {
    const count = (this.#inFlight.get(key) ?? 1) - 1;
    if (count <= 0) this.#inFlight.delete(key);
    else this.#inFlight.set(key, count);
  }

  /** Deletes the state of routes that are no longer in the table. */
  retain(ids: ReadonlySet<string>): void {
    for (const id of this.#turns.keys()) if (!ids.has(id)) this.#turns.delete(id);
    this.#cookies.clear();
  }

  admitRequest({ id, options: { limits } }: Backend, address: string, nowMs: number): boolean {
    if (limits?.requests === undefined) return true;
    const counts = this.#countsOf(id, address, nowMs);
    if (nowMs - counts.requestsSinceMs >= REQUEST_WINDOW_MS) {
      counts.requestsSinceMs = nowMs;
      counts.requests = 0;
    }
    counts.requests++;
    return counts.requests <= limits.requests;
  }

  admitConnection({ id, options: { limits } }: Backend, address: string, nowMs: number): boolean {
    if (limits === undefined) return true;
    const counts = this.#countsOf(id, address, nowMs);
    if (nowMs - counts.connectionsSinceMs >= CONNECTION_WINDOW_MS) {
      counts.connectionsSinceMs = nowMs;
      counts.connections = 0;
    }
    counts.connections++;
    counts.open++;
    return (
      (limits.concurrent === undefined || counts.open <= limits.concurrent) &&
      (limits.connections === undefined || counts.connections <= limits.connections)
    );
  }

  connectionClosed({ id, options: { limits } }: Backend, address: string): void {
    if (limits === undefined) return;
    const counts = this.#sources.get(`${id} ${address}`);
    if (counts !== undefined && counts.open > 0) counts.open--;
  }

  #countsOf(id: string, address: string, nowMs: number): Counts {
    const key = `${id} ${address}`;
    const known = this.#sources.get(key);
    if (known !== undefined) return known;
    const counts = { open: 0, connections: 0, connectionsSinceMs: nowMs, requests: 0, requestsSinceMs: nowMs };
    this.#sources.set(key, counts);
    return counts;
  }

  #byCookie(backend: Backend, cookie: string, tried: ReadonlySet<string>): Choice | undefined {
    for (const pool of backend.pools) {
      if (pool.weight === 0) continue;
      for (const endpoint of pool.endpoints) {
        const choice = this.#choice(backend, pool, endpoint);
        if (choice.cookie === cookie) return tried.has(choice.key) ? undefined : choice;
      }
    }
    return undefined;
  }

  #choice({ id }: Backend, pool: Pool, endpoint: Endpoint): Choice {
    const key = endpointKey(endpoint);
    const of = `${id} ${key}`;
    let cookie = this.#cookies.get(of);
    if (cookie === undefined) {
      cookie = fnv(of);
      this.#cookies.set(of, cookie);
    }
    return { endpoint, pool, key, cookie };
  }

  #choosePool<T extends { readonly pool: Pool }>(backend: Backend, client: Client, left: readonly T[]): T | undefined {
    if (left.length < 2) return left[0];
    const total = left.reduce((sum, { pool }) => sum + pool.weight, 0);
    if (backend.options.balance === 'source') return atWeight(left, (hashNumber(client.address) / 2 ** 32) * total);
    if (backend.options.balance === 'random') return atWeight(left, this.#random() * total);
    // Smooth weighted round robin.
    const turns = this.#turnsOf(backend.id);
    let best: { readonly each: T; readonly turn: { left: number } } | undefined;
    for (const each of left) {
      const turn = turnOf(turns, each.pool.service);
      turn.left += each.pool.weight;
      if (best === undefined || turn.left > best.turn.left) best = { each, turn };
    }
    if (best !== undefined) best.turn.left -= total;
    return best?.each;
  }

  #chooseEndpoint(
    { id, options: { balance } }: Backend,
    client: Client,
    pool: Pool,
    endpoints: readonly Endpoint[],
  ): Endpoint | undefined {
    if (endpoints.length < 2) return endpoints[0];
    switch (balance) {
      case 'random':
        return endpoints[Math.floor(this.#random() * endpoints.length)];
      case 'source':
        return endpoints[hashNumber(`${client.address} `) % endpoints.length];
      case 'roundrobin': {
        const turn = turnOf(this.#turnsOf(id), pool.service);
        turn.next = (turn.next + 1) % endpoints.length;
        return endpoints[turn.next];
      }
      case 'leastconn': {
        const load = (each: Endpoint): number => this.#inFlight.get(endpointKey(each)) ?? 0;
        // The search starts at a random server. Otherwise the first server would get all requests of a route without
        // load.
        const from = Math.floor(this.#random() * endpoints.length);
        const rotated = [...endpoints.slice(from), ...endpoints.slice(0, from)];
        return rotated.reduce((best, each) => (load(each) < load(best) ? each : best));
      }
      default:
        return balance satisfies never;
    }
  }

  #turnsOf(id: string): Map<string, { left: number; next: number }> {
    let turns = this.#turns.get(id);
    if (turns === undefined) {
      turns = new Map();
      this.#turns.set(id, turns);
    }
    return turns;
  }
}

function turnOf(turns: Map<string, { left: number; next: number }>, service: string): { left: number; next: number } {
  let turn = turns.get(service);
  if (turn === undefined) {
    turn = { left: 0, next: -1 };
    turns.set(service, turn);
  }
  return turn;
}

function atWeight<T extends { readonly pool: Pool }>(left: readonly T[], point: number): T | undefined {
  let rest = point;
  for (const each of left) {
    rest -= each.pool.weight;
    if (rest < 0) return each;
  }
  return left.at(-1);
}
