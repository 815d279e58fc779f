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

export function createNetworkRestorer(network: HostNetwork, clock: Clock, log: Log): NetworkRestorer {
  let verifiers: readonly Verify[] = [];
  let timer: Timer | undefined;
  let dueMs = Number.POSITIVE_INFINITY;
  let isStopped = true;
  let isRunning = false;
  let isFullDue = true;
  let comparedMs = Number.NEGATIVE_INFINITY;
  let fullMs = Number.NEGATIVE_INFINITY;
  let filter: { isRunning(): boolean; stop(): void } | undefined;
  let fault: string | undefined;
  let checkedMs = Number.NEGATIVE_INFINITY;
  let isForwardingDue = false;
  /**
   * Tables that another program has changed and that are not restored yet, by the number of the last report about them.
   */
  const damaged = new Map<string, number>();
  let reports = 0;
  let missedMs = Number.NEGATIVE_INFINITY;
  let isMissed = false;
  const checkForwarding = async (): Promise<void> => {
    const changedMs = fault === undefined ? FORWARDING_APART_MS : FORWARDING_FAULT_MS;
    const isDue = isForwardingDue || fault !== undefined || filter?.isRunning() !== true;
    const everyMs = isDue ? changedMs : FORWARDING_EVERY_MS;
    if (network.forwarding === undefined || clock.monotonicMs() - checkedMs < everyMs) return;
    isForwardingDue = false;
    checkedMs = clock.monotonicMs();
    const found = await network.forwarding();
    if (found !== undefined && found !== fault) log.error('packets of pods are not forwarded', { fault: found });
    if (found === undefined && fault !== undefined) log.info('packets of pods are forwarded again');
    fault = found;
  };
  const run = async (): Promise<void> => {
    dueMs = Number.POSITIVE_INFINITY;
    isRunning = true;
    comparedMs = clock.monotonicMs();
    const isFull = isFullDue || filter?.isRunning() !== true || comparedMs - fullMs >= FULL_EVERY_MS;
    isFullDue = false;
    await network.reconcile?.({ filter: isFull });
    isRunning = false;
    if (isStopped) return;
    if (isFull) {
      fullMs = comparedMs;
      verifyAll();
    }
    if (isFullDue) changed();
    schedule(EVERY_MS);
    await checkForwarding();
  };
  const verifyAll = (): void => {
    const known = [...damaged];
    const tables = new Set(known.map(([table]) => table));
    if (isMissed && comparedMs - missedMs >= FULL_EVERY_MS) {
      // All tables are replaced, but at most once per period: this host's own replacements may cause the next missed
      // report.
      missedMs = comparedMs;
      isMissed = false;
      for (const table of network.filterTables?.() ?? []) tables.add(table);
    }
    Promise.all(verifiers.map((verify) => verify(tables))).then(
      () => {
        for (const [table, report] of known) if (damaged.get(table) === report) damaged.delete(table);
      },
      (error: unknown) => log.warn('packet filter not restored', { error: messageOf(error) }),
    );
  };
  const schedule = (delayMs: number): void => {
    const nextMs = clock.monotonicMs() + delayMs;
    if (isStopped || isRunning || nextMs >= dueMs) return;
    timer?.cancel();
    dueMs = nextMs;
    timer = clock.setTimer(delayMs, () => void run());
  };
  const changed = (): void => {
    isFullDue = true;
    isForwardingDue = true;
    schedule(Math.max(COALESCE_MS, comparedMs + APART_MS - clock.monotonicMs()));
  };
  return {
    problem: () => network.problem?.(),
    forwarding: () => fault,
    filterProblem: () =>
      damaged.size === 0
        ? undefined
        : `packet filter changed by another program and not restored yet: table ${[...damaged.keys()].join(', table ')}`,
    start(verify) {
      verifiers = verify;
      isStopped = false;
      filter = network.watchFilter?.((foreign) => {
        if (foreign === undefined) isMissed = true;
        for (const table of foreign ?? []) {
          if (!damaged.has(table)) log.warn('packet filter changed by another program; it is restored', { table });
          damaged.set(table, ++reports);
        }
        changed();
      });
      schedule(EVERY_MS);
    },
    lost(line) {
      if (isRelevant(line, (address) => network.holds?.(address) === true)) changed();
    },
    stop() {
      isStopped = true;
      timer?.cancel();
      filter?.stop();
    },
  };
}

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
