/**
 * Checks after a change whether the API server reports the Node as Ready, and whether the Node stays Ready. If not, the
 * daemon rolls back.
 */
import type { Node } from '../../../api/generated/core/v1.ts';
import { resources } from '../../../api/resources.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { MachineConfigDaemonOptions } from './deps.ts';
import type { AppliedConfig } from './host-record.ts';
import { checkRunningKernel } from './plan-change.ts';

class TrialFailed extends Error {}

const PROBE_MS = 1_000;
/** Time without a response after which the API server counts as unreachable. */
const ANSWER_MS = 5_000;
/** Minimum number of consecutive successful checks during the period in which the Node must stay Ready. */
const ANSWERS = 3;
const LEASES = 'kube-node-lease';

interface Checks {
  /**
   * Wall-clock time after which the kubelet must have renewed its Lease. Undefined if the kubelet was not restarted.
   */
  readonly kubeletSince?: number | undefined;
  /** Addresses that a link of the host must have, as long as the Node reports them. */
  readonly addresses: readonly string[];
  readonly signal: AbortSignal;
}

interface Trial extends Checks {
  /** Whether the machine has not rebooted since the change. */
  readonly sameBoot: boolean;
}

/**
 * Waits until the Node is Ready. Throws TrialFailed on timeout, or CodedError 'kernel-arguments'. Returns early if the
 * signal is aborted.
 */
export async function awaitReady(
  options: MachineConfigDaemonOptions,
  applied: AppliedConfig,
  trial: Trial,
): Promise<void> {
  const { clock, kernel, readyTimeoutMs } = options;
  const { signal } = trial;
  if (!trial.sameBoot) await checkRunningKernel(applied.spec, kernel);
  const until = clock.monotonicMs() + readyTimeoutMs;
  while (!signal.aborted) {
    const why = await probe(options, trial);
    if (why === undefined) return;
    if (clock.monotonicMs() >= until) throw new TrialFailed(`${why} within ${minutes(readyTimeoutMs)} of the change`);
    await pause(clock, PROBE_MS, signal);
  }
}

/**
 * Waits until the Node has been Ready for `settleMs` without interruption. An interruption restarts this period. Throws
 * TrialFailed if an interruption lasts too long. Returns early if the signal is aborted.
 */
export async function awaitSettled(options: MachineConfigDaemonOptions, checks: Checks): Promise<void> {
  const { clock, readyTimeoutMs, settleMs } = options;
  const { signal } = checks;
  let answers = 0;
  let since = clock.monotonicMs();
  let lastAnswer = since;
  while (!signal.aborted) {
    const why = await probe(options, checks);
    const nowMs = clock.monotonicMs();
    if (why === undefined) {
      if (answers === 0) since = nowMs;
      answers += 1;
      lastAnswer = nowMs;
      if (answers >= ANSWERS && nowMs - since >= settleMs) return;
    } else {
      answers = 0;
      if (nowMs - lastAnswer >= readyTimeoutMs)
        throw new TrialFailed(`${why} for ${minutes(readyTimeoutMs)}, soon after the change`);
    }
    await pause(clock, answers > 0 ? settleMs / ANSWERS : PROBE_MS, signal);
  }
}

function minutes(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1_000);
  return `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}

const pause = (clock: Clock, milliseconds: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const ended = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', ended);
      resolve();
    };
    const timer = clock.setTimer(milliseconds, ended);
    signal.addEventListener('abort', ended);
  });

/**
 * Reason why the Node is not Ready, if any. Reads from the API server: if the network has failed, informers return old
 * data.
 */
async function probe(options: MachineConfigDaemonOptions, checks: Checks): Promise<string | undefined> {
  const signal = AbortSignal.any([checks.signal, AbortSignal.timeout(ANSWER_MS)]);
  return notReady(options, checks, signal).catch(() => 'API server not reached');
}

async function notReady(
  { client, nodeName, addresses }: MachineConfigDaemonOptions,
  { kubeletSince, addresses: expected }: Checks,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { items } = await client.resource(resources.nodes).list({ fieldSelector: `metadata.name=${nodeName}`, signal });
  const [node] = items;
  if (!isReady(node)) return 'node not Ready';
  // Check the links of the host, because a master reaches its own API server even if its network has failed.
  const present = addresses();
  const lost = addressesOf(node).find((address) => expected.includes(address) && !present.includes(address));
  if (lost !== undefined) return `no link has the address ${lost} of the node`;
  if (kubeletSince === undefined) return undefined;
  const lease = await client.resource(resources.leases).get(nodeName, LEASES);
  return Date.parse(lease.spec?.renewTime ?? '') >= kubeletSince ? undefined : 'kubelet did not report';
}

const isReady = (node: Node | undefined): boolean =>
  node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;

/** InternalIPs of the Node. */
export const addressesOf = (node: Node | undefined): readonly string[] =>
  (node?.status?.addresses ?? []).filter(({ type }) => type === 'InternalIP').map(({ address }) => address);
