/**
 * Restores this host's part of the pod network when another program has removed links, addresses, routes or nftables
 * tables. Reports of the kernel trigger a restoration. To detect unreported changes, links and routes are also compared
 * every few seconds, and everything is compared every few minutes.
 */

import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { HostCondition } from '../../kubelet/index.ts';
import type { HostNetwork } from './host-network.ts';

/**
 * Compares the state of one component with the kernel and restores it. `damaged`: nftables tables (`FAMILY NAME`) that
 * must be replaced even if they appear unchanged. Resolves when the component is restored.
 */
export type Verify = (damaged: ReadonlySet<string>) => Promise<void> | void;

export interface NetworkRestorer {
  /** Fault of this host's pod network that could not be repaired; undefined if there is none. */
  problem(): string | undefined;
  /** Fault that prevents the forwarding of pod packets; undefined if there is none. */
  forwarding(): string | undefined;
  /**
   * Message about nftables tables that another program has changed and that are not restored yet; undefined if there
   * are none.
   */
  filterProblem(): string | undefined;
  /** Starts the watch and the periodic comparisons. */
  start(verify: readonly Verify[]): void;
  /**
   * Called with a line of `ip monitor` about a deleted address, route or link. An empty line means that lines may have
   * been missed.
   */
  lost(line: string): void;
  stop(): void;
}

const EVERY_MS = 10_000;
/** Interval of full comparisons while the watch of the packet filter runs. */
const FULL_EVERY_MS = 180_000;
const COALESCE_MS = 200;
/** Minimum time between full comparisons, because other programs may change the packet filter continuously. */
const APART_MS = 5_000;
const FORWARDING_EVERY_MS = 60_000;
/** Minimum time between probes after a change, because the change may have removed routes that the probe needs. */
const FORWARDING_APART_MS = 4_000;
/**
 * Interval between probes during a fault. It is longer, because the probe changes the packet filter to find the
 * responsible rule.
 */
const FORWARDING_FAULT_MS = 15_000;
const POD_LINK = /\bve[0-9a-f]{11}\b/;
const ADDRESS = /(?:^|\s)([0-9a-f.:]*[.:][0-9a-f.:]+)(?=[\s/]|$)/g;

export const createNetworkRestorer = (network: HostNetwork, clock: Clock, log: Log): NetworkRestorer =>
  new Restorer(network, clock, log);

class Restorer implements NetworkRestorer {
  readonly #network: HostNetwork;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #tables: DamagedTables;
  readonly #forwarding: ForwardingCheck;
  #verifiers: readonly Verify[] = [];
  #filter: FilterWatch | undefined;
  #timer: Timer | undefined;
  #dueMs = Number.POSITIVE_INFINITY;
  #isStopped = true;
  #isRunning = false;
  /** Whether the next run compares everything, including the packet filter. */
  #isFullDue = true;
  #comparedMs = Number.NEGATIVE_INFINITY;
  #fullMs = Number.NEGATIVE_INFINITY;

  constructor(network: HostNetwork, clock: Clock, log: Log) {
    this.#network = network;
    this.#clock = clock;
    this.#log = log;
    this.#tables = new DamagedTables(log);
    this.#forwarding = new ForwardingCheck(network, clock, log);
  }

  problem(): string | undefined {
    return this.#network.problem?.();
  }

  forwarding(): string | undefined {
    return this.#forwarding.fault;
  }

  filterProblem(): string | undefined {
    const names = this.#tables.names();
    if (names.length === 0) return undefined;
    return `packet filter changed by another program and not restored yet: table ${names.join(', table ')}`;
  }

  start(verify: readonly Verify[]): void {
    this.#verifiers = verify;
    this.#isStopped = false;
    this.#filter = this.#network.watchFilter?.((foreign) => {
      this.#tables.report(foreign);
      this.#changed();
    });
    this.#schedule(EVERY_MS);
  }

  lost(line: string): void {
    if (isRelevant(line, (address) => this.#network.holds?.(address) === true)) this.#changed();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#filter?.stop();
  }

  #changed(): void {
    this.#isFullDue = true;
    this.#forwarding.isDue = true;
    this.#schedule(Math.max(COALESCE_MS, this.#comparedMs + APART_MS - this.#clock.monotonicMs()));
  }

  #schedule(delayMs: number): void {
    const nextMs = this.#clock.monotonicMs() + delayMs;
    if (this.#isStopped || this.#isRunning || nextMs >= this.#dueMs) return;
    this.#timer?.cancel();
    this.#dueMs = nextMs;
    this.#timer = this.#clock.setTimer(delayMs, () => void this.#run());
  }

  async #run(): Promise<void> {
    this.#dueMs = Number.POSITIVE_INFINITY;
    this.#isRunning = true;
    this.#comparedMs = this.#clock.monotonicMs();
    const isWatched = this.#filter?.isRunning() === true;
    const isFull = this.#isFullDue || !isWatched || this.#comparedMs - this.#fullMs >= FULL_EVERY_MS;
    this.#isFullDue = false;
    await this.#network.reconcile?.({ filter: isFull });
    this.#isRunning = false;
    if (this.#isStopped) return;
    if (isFull) {
      this.#fullMs = this.#comparedMs;
      this.#verifyAll();
    }
    if (this.#isFullDue) this.#changed();
    this.#schedule(EVERY_MS);
    await this.#forwarding.run(this.#filter?.isRunning() === true);
  }

  #verifyAll(): void {
    const { tables, restored } = this.#tables.take(this.#comparedMs, () => this.#network.filterTables?.() ?? []);
    Promise.all(this.#verifiers.map((verify) => verify(tables))).then(restored, (error: unknown) =>
      this.#log.warn('packet filter not restored', { error: messageOf(error) }),
    );
  }
}

/** Tables that another program has changed and that are not restored yet. */
class DamagedTables {
  readonly #log: Log;
  /** Number of the last report about each table. */
  readonly #damaged = new Map<string, number>();
  #reports = 0;
  /** Whether a report may have been missed. */
  #isMissed = false;
  #missedMs = Number.NEGATIVE_INFINITY;

  constructor(log: Log) {
    this.#log = log;
  }

  names(): string[] {
    return [...this.#damaged.keys()];
  }

  /** `tables`: undefined if a report may have been missed. */
  report(tables: Iterable<string> | undefined): void {
    if (tables === undefined) this.#isMissed = true;
    for (const table of tables ?? []) {
      if (!this.#damaged.has(table))
        this.#log.warn('packet filter changed by another program; it is restored', { table });
      this.#damaged.set(table, ++this.#reports);
    }
  }

  /**
   * Tables to restore now. `restored` must be called afterwards. Tables that were changed again in the meantime remain
   * damaged.
   */
  take(nowMs: number, all: () => Iterable<string>): { readonly tables: ReadonlySet<string>; restored(): void } {
    const known = [...this.#damaged];
    const tables = new Set(known.map(([table]) => table));
    if (this.#isMissed && nowMs - this.#missedMs >= FULL_EVERY_MS) {
      // All tables are replaced, but at most once per period: this host's own replacements may cause the next missed
      // report.
      this.#missedMs = nowMs;
      this.#isMissed = false;
      for (const table of all()) tables.add(table);
    }
    const restored = (): void => {
      for (const [table, report] of known) if (this.#damaged.get(table) === report) this.#damaged.delete(table);
    };
    return { tables, restored };
  }
}

/** Periodic probe of the forwarding of pod packets. */
class ForwardingCheck {
  readonly #network: HostNetwork;
  readonly #clock: Clock;
  readonly #log: Log;
  #fault: string | undefined;
  #checkedMs = Number.NEGATIVE_INFINITY;
  /** Set after a change that may affect the forwarding. */
  isDue = false;

  constructor(network: HostNetwork, clock: Clock, log: Log) {
    this.#network = network;
    this.#clock = clock;
    this.#log = log;
  }

  /** Fault that the last probe found. */
  get fault(): string | undefined {
    return this.#fault;
  }

  /** Probes the forwarding if the interval has passed. `isWatched`: whether changes of the packet filter are seen. */
  async run(isWatched: boolean): Promise<void> {
    const changedMs = this.#fault === undefined ? FORWARDING_APART_MS : FORWARDING_FAULT_MS;
    const everyMs = this.isDue || this.#fault !== undefined || !isWatched ? changedMs : FORWARDING_EVERY_MS;
    if (this.#network.forwarding === undefined || this.#clock.monotonicMs() - this.#checkedMs < everyMs) return;
    this.isDue = false;
    this.#checkedMs = this.#clock.monotonicMs();
    const found = await this.#network.forwarding();
    if (found !== undefined && found !== this.#fault)
      this.#log.error('packets of pods are not forwarded', { fault: found });
    if (found === undefined && this.#fault !== undefined) this.#log.info('packets of pods are forwarded again');
    this.#fault = found;
  }
}

type FilterWatch = ReturnType<NonNullable<HostNetwork['watchFilter']>>;

/**
 * Whether a deletion concerns the pod network. Links of terminated pods are deleted frequently, so the deletion of a
 * pod's link is relevant only if a current pod has its address.
 */
export function isRelevant(line: string, isHeld: (address: string) => boolean): boolean {
  if (!POD_LINK.test(line)) return true;
  return [...line.matchAll(ADDRESS)].some(([, address = '']) => isHeld(address));
}

/** Condition NetworkUnavailable for the Node. `present`: types of the conditions that the Node already has. */
export function networkConditions(fault: string | undefined, present: ReadonlySet<string>): HostCondition[] {
  const type = 'NetworkUnavailable';
  if (fault !== undefined) return [{ type, status: 'True', reason: 'ForwardingBlocked', message: fault }];
  if (!present.has(type)) return [];
  return [{ type, status: 'False', reason: 'ForwardingWorks', message: 'packets of pods are forwarded' }];
}
