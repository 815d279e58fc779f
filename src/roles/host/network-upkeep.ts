/**
 * Keeps this host's part of the pod network as it should be: links, addresses, routes and packet filter tables that
 * another program has removed are restored every few seconds, and at once when the kernel reports a deletion.
 */
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { HostCondition } from '../../components/kubelet/index.ts';
import type { HostNetwork } from './host-network.ts';

export interface NetworkUpkeep {
  /** The fault of this host's pod network that could not be repaired. */
  problem(): string | undefined;
  /** The fault that keeps packets of pods from being forwarded. */
  forwarding(): string | undefined;
  /** Each function starts a comparison of one component. */
  start(verify: readonly (() => void)[]): void;
  /** A line of `ip monitor` about a deleted address, route or link. */
  lost(line: string): void;
  stop(): void;
}

const EVERY_MS = 5_000;
const COALESCE_MS = 200;
const FORWARDING_EVERY_MS = 15_000;
const POD_LINK = /\bve[0-9a-f]{11}\b/;
const ADDRESS = /(?:^|\s)([0-9a-f.:]*[.:][0-9a-f.:]+)(?=[\s/]|$)/g;

export function createNetworkUpkeep(network: HostNetwork, clock: Clock, log: Log): NetworkUpkeep {
  let verifiers: readonly (() => void)[] = [];
  let timer: Timer | undefined;
  let dueMs = Number.POSITIVE_INFINITY;
  let isStopped = true;
  let fault: string | undefined;
  let checkedMs = Number.NEGATIVE_INFINITY;
  const checkForwarding = async (): Promise<void> => {
    if (network.forwarding === undefined || clock.monotonicMs() - checkedMs < FORWARDING_EVERY_MS) return;
    checkedMs = clock.monotonicMs();
    const found = await network.forwarding();
    if (found !== undefined && found !== fault) log.error('packets of pods are not forwarded', { fault: found });
    if (found === undefined && fault !== undefined) log.info('packets of pods are forwarded again');
    fault = found;
  };
  const run = (): void => {
    dueMs = Number.POSITIVE_INFINITY;
    void network.reconcile?.().then(() => {
      if (isStopped) return;
      for (const verify of verifiers) verify();
      schedule(EVERY_MS);
      return checkForwarding();
    });
  };
  const schedule = (delayMs: number): void => {
    const nextMs = clock.monotonicMs() + delayMs;
    if (isStopped || nextMs >= dueMs) return;
    timer?.cancel();
    dueMs = nextMs;
    timer = clock.setTimer(delayMs, run);
  };
  return {
    problem: () => network.problem?.(),
    forwarding: () => fault,
    start(verify) {
      // CNI plug-ins maintain their own links.
      if (network.reconcile === undefined) return;
      verifiers = verify;
      isStopped = false;
      schedule(EVERY_MS);
    },
    lost(line) {
      if (concerns(line, (address) => network.holds?.(address) === true)) schedule(COALESCE_MS);
    },
    stop() {
      isStopped = true;
      timer?.cancel();
    },
  };
}

/** Links of pods that end are deleted all the time: only those with the address of a present pod count. */
export function concerns(line: string, isHeld: (address: string) => boolean): boolean {
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
