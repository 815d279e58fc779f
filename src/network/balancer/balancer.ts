/**
 * Load balancer of one node: a TCP listener on loopback that forwards to all live API
 * servers. Kubelet, proxy, DNS, controllers and scheduler connect to it, so none of them depends on the API server of
 * its own host.
 */

import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource, Timer } from '../../base/time/clock.ts';
import {
  addressesToSave,
  type Backend,
  BackendPool,
  type Health,
  isRemote,
  parseTarget,
  type Source,
} from './core/index.ts';
import type { BalancedListener, ReadinessProbe, Routing, SavedTargets, TcpBalancing } from './port.ts';

export interface NodeBalancerDeps {
  readonly tcp: TcpBalancing;
  readonly probe: ReadinessProbe;
  readonly saved: SavedTargets;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
  readonly config: {
    readonly address: string;
    /** Port 0 selects a free port. */
    readonly port: number;
    /**
     * API server of this host, such as `127.0.0.1:8443`; undefined if the host has none. `isSame` returns true for
     * every address of that API server.
     */
    readonly local: { readonly target: string; isSame(target: string): boolean } | undefined;
    /** `host:port` entries of the bootstrap file. */
    readonly bootstrap: readonly string[];
  };
}

export interface NodeBalancer {
  /** Starts to listen and resolves with the port. Rejects with CodedError 'address-in-use' or 'listen'. */
  start(): Promise<{ readonly port: number }>;
  /**
   * Replaces the addresses that one source reports: the API, or the gossip ring. Addresses have the form `host:port`;
   * host names are ignored.
   */
  setTargets(source: 'api' | 'gossip', targets: readonly string[]): void;
  /** Probes an API server immediately, because another component reports it as lost. */
  doubt(target: string): void;
  /** Resets the connections whose local address this host no longer has. */
  addressesChanged(isOwn: (address: string) => boolean): void;
  backends(): readonly Backend[];
  /**
   * Resets open connections. With `handOver`, a keeper process keeps the port open until the next start of this host
   * process.
   */
  stop(options?: { readonly handOver: boolean }): Promise<void>;
}

/** Interval between two probes of an API server, by its health. Every node probes every API server. */
const PERIOD_MS: Readonly<Record<Health, number>> = {
  unknown: 500,
  ready: 1_000,
  unready: 500,
  stopping: 500,
  dead: 1_000,
  untrusted: 5_000,
};
const JITTER = 0.2;
/** Minimum interval between probes of one server that `doubt` triggers. */
const MIN_GAP_MS = 200;

export function createNodeBalancer(deps: NodeBalancerDeps): NodeBalancer {
  return new Balancer(deps);
}

interface Probing {
  timer: Timer | undefined;
  atMs: number;
  underWay: boolean;
}

class Balancer implements NodeBalancer {
  readonly #deps: NodeBalancerDeps;
  readonly #pool = new BackendPool();
  readonly #probing = new Map<string, Probing>();
  #listener: BalancedListener | undefined;
  #saved: readonly string[] = [];
  #saving: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(deps: NodeBalancerDeps) {
    this.#deps = deps;
  }

  async start(): Promise<{ readonly port: number }> {
    const { config, tcp, saved, log } = this.#deps;
    this.#saved = (await saved.load()).filter(isRemote);
    if (config.local !== undefined) this.#pool.setTargets('local', [config.local.target]);
    this.#pool.setTargets('bootstrap', this.#usable(config.bootstrap));
    this.#pool.setTargets('saved', this.#usable(this.#saved));
    this.#listener = await tcp.listen({ address: config.address, port: config.port, routing: this.#routing() });
    this.#probeAll();
    const targets = this.backends().map(({ target }) => target);
    log.v(2, 'balancing API servers', { port: this.#listener.port, targets: targets.join(',') });
    return { port: this.#listener.port };
  }

  setTargets(source: Exclude<Source, 'local' | 'saved' | 'bootstrap'>, targets: readonly string[]): void {
    if (this.#stopped) return;
    const known = this.#usable(targets.filter((each) => this.#isLocal(each) || isRemote(each)));
    const before = this.backends().length;
    this.#pool.setTargets(source, known);
    if (this.backends().length !== before)
      this.#deps.log.v(2, 'API server addresses discovered', { source, targets: known.join(',') });
    this.#remember(known.filter(isRemote));
    this.#probeAll();
    this.#apply();
  }

  addressesChanged(isOwn: (address: string) => boolean): void {
    this.#listener?.resetFrom(isOwn);
  }

  doubt(target: string): void {
    const probing = this.#probing.get(target);
    if (probing === undefined || probing.underWay || this.#stopped) return;
    const waitMs = Math.max(0, probing.atMs + MIN_GAP_MS - this.#deps.clock.monotonicMs());
    this.#schedule(target, probing, waitMs);
  }

  backends(): readonly Backend[] {
    return this.#pool.list();
  }

  async stop({ handOver } = { handOver: false }): Promise<void> {
    this.#stopped = true;
    for (const { timer } of this.#probing.values()) timer?.cancel();
    this.#probing.clear();
    this.#deps.probe.close();
    const all = this.backends();
    const ready = all.filter(({ health }) => health === 'ready');
    const targets = (ready.length > 0 ? ready : all).map(({ target }) => target);
    await (handOver ? this.#listener?.handOver(targets) : this.#listener?.close());
    await this.#saving;
  }

  #routing(): Routing {
    return {
      choose: (tried) => this.#pool.choose(tried, this.#deps.random.random()),
      opened: (target) => this.#pool.opened(target),
      closed: (target) => this.#pool.closed(target),
      doubt: (target) => this.doubt(target),
    };
  }

  #isLocal(target: string): boolean {
    return this.#deps.config.local?.isSame(target) === true;
  }

  /** Normalizes the address of the own API server and removes the balancer itself. */
  #usable(targets: readonly string[]): string[] {
    const { local, port } = this.#deps.config;
    return targets
      .map((target) => (local !== undefined && this.#isLocal(target) ? local.target : target))
      .filter((target) => target === local?.target || isRemote(target) || parseTarget(target)?.port !== port);
  }

  /** Probes all servers. A single server is not probed, because there is no other server to choose. */
  #probeAll(): void {
    const backends = this.backends();
    for (const [target, { timer }] of this.#probing) {
      if (backends.some((each) => each.target === target)) continue;
      timer?.cancel();
      this.#probing.delete(target);
    }
    if (backends.length < 2 || this.#listener === undefined) return;
    for (const { target } of backends) {
      if (this.#probing.has(target)) continue;
      const probing: Probing = { timer: undefined, atMs: Number.NEGATIVE_INFINITY, underWay: false };
      this.#probing.set(target, probing);
      this.#schedule(target, probing, 0);
    }
  }

  #schedule(target: string, probing: Probing, delayMs: number): void {
    probing.timer?.cancel();
    probing.timer = this.#deps.clock.setTimer(delayMs, () => void this.#probe(target, probing));
  }

  async #probe(target: string, probing: Probing): Promise<void> {
    const { clock, random, probe, log } = this.#deps;
    probing.underWay = true;
    probing.atMs = clock.monotonicMs();
    const { finding, detail } = await probe.probe(target);
    probing.underWay = false;
    if (this.#stopped || this.#probing.get(target) !== probing) return;
    const change = this.#pool.found(target, finding);
    if (change !== undefined) {
      const level = change.before === 'ready' || change.after === 'untrusted' ? 'warn' : 'info';
      log[level]('API server health changed', { target, health: change.after, before: change.before, detail });
      this.#apply();
    }
    const { health = 'unknown' } = this.backends().find((each) => each.target === target) ?? {};
    const periodMs = PERIOD_MS[health] * (1 + (random.random() - 0.5) * JITTER);
    this.#schedule(target, probing, periodMs);
  }

  /** Ends connections of servers that are lost or draining. */
  #apply(): void {
    for (const { target, treatment } of this.backends()) {
      if (treatment === 'keep') this.#listener?.keep(target);
      else this.#listener?.end(target, treatment);
    }
  }

  #remember(known: readonly string[]): void {
    const next = addressesToSave(known, this.#saved);
    if (next.join() === this.#saved.join()) return;
    this.#saved = next;
    // Saves are serialized. If several lists wait for a save, only the newest list is written.
    this.#saving = this.#saving
      .then(() => (next === this.#saved ? this.#deps.saved.save(next) : undefined))
      .catch((error: unknown) => this.#deps.log.warn('API servers not saved', { error: messageOf(error) }));
  }
}
