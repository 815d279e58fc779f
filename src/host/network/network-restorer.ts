/**
 * Maintains this host's part of the pod network: links, addresses, routes and packet filter tables that another program
 * has removed are restored when the kernel reports a change. A comparison of the links and routes every few seconds,
 * and of everything every few minutes, detects unreported changes.
 */
import type { Clock, Timer } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { HostCondition } from '../../kubelet/index.ts';
import type { HostNetwork } from './host-network.ts';

/**
 * Compares one component with the kernel and restores it; tables of the packet filter in `damaged` (`FAMILY NAME`) are
 * replaced in any case. Resolves when the component is restored.
 */
export type Verify = (damaged: ReadonlySet<string>) => Promise<void> | void;

export interface NetworkRestorer {
  /** The fault of this host's pod network that could not be repaired. */
  problem(): string | undefined;
  /** The fault that prevents forwarding of pod packets. */
  forwarding(): string | undefined;
  /** The change of the packet filter by another program that is not repaired yet. */
  filterProblem(): string | undefined;
  /** Starts to follow changes. */
  start(verify: readonly Verify[]): void;
  /** Handles a line of `ip monitor` about a deleted address, route or link; empty if lines may have been missed. */
  lost(line: string): void;
  stop(): void;
}

const EVERY_MS = 10_000;
/** Period of the full comparison while changes of the packet filter are reported. */
const FULL_EVERY_MS = 180_000;
const COALESCE_MS = 200;
/** Minimum time between comparisons after reports, because other programs may change the packet filter all the time. */
const APART_MS = 5_000;
const FORWARDING_EVERY_MS = 60_000;
/** Minimum time after changes, which may have removed routes of the probe. */
const FORWARDING_APART_MS = 4_000;
/** Interval during a fault: the probe changes the packet filter to find the responsible rule. */
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
  /** Tables changed by other programs that are not restored yet, each with the number of the report. */
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
      // The missed changes may have been made by this program, in which case they are missed again.
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

/** Links of ended pods are deleted all the time, so only those with the address of a current pod count. */
export function isRelevant(line: string, isHeld: (address: string) => boolean): boolean {
  if (!POD_LINK.test(line)) return true;
  return [...line.matchAll(ADDRESS)].some(([, address = '']) => isHeld(address));
}

/** `present`: types of conditions that the Node has. */
export function networkConditions(fault: string | undefined, present: ReadonlySet<string>): HostCondition[] {
  const type = 'NetworkUnavailable';
  if (fault !== undefined) return [{ type, status: 'True', reason: 'ForwardingBlocked', message: fault }];
  if (!present.has(type)) return [];
  return [{ type, status: 'False', reason: 'ForwardingWorks', message: 'packets of pods are forwarded' }];
}
