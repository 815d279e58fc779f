/** After a change the Node must be Ready in the eyes of the API server, or the host goes back. */
import type { Node } from 'kubernetes-types/core/v1';
import { resources } from '../../../api/resources.ts';
import { checkRunningKernel } from './change.ts';
import type { MachineConfigDaemonOptions } from './deps.ts';
import type { AppliedConfig } from './note.ts';

class TrialFailed extends Error {}

const PROBE_MS = 1_000;
/** An API server that does not answer so long is not reached. */
const ANSWER_MS = 5_000;
const LEASES = 'kube-node-lease';

interface Trial {
  /** False: the machine has been rebooted since the change. */
  readonly sameBoot: boolean;
  /** The kubelet must have renewed its Lease after this time. */
  readonly kubeletSince: number | undefined;
  readonly signal: AbortSignal;
}

/** Throws TrialFailed, or CodedError 'kernel-arguments'. Returns when the signal is aborted, too. */
export async function awaitReady(
  options: MachineConfigDaemonOptions,
  applied: AppliedConfig,
  { sameBoot, kubeletSince, signal }: Trial,
): Promise<void> {
  const { clock, kernel, readyTimeoutMs } = options;
  if (!sameBoot) await checkRunningKernel(applied.spec, kernel);
  const until = clock.monotonicMs() + readyTimeoutMs;
  while (!signal.aborted) {
    const answer = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
    const why = await notReady(options, kubeletSince, answer).catch(() => 'API server not reached');
    if (why === undefined) return;
    if (clock.monotonicMs() >= until) {
      const seconds = Math.round(readyTimeoutMs / 1_000);
      throw new TrialFailed(`${why} within ${Math.floor(seconds / 60)}m${seconds % 60}s of the change`);
    }
    await new Promise<void>((resolve) => {
      const timer = clock.setTimer(PROBE_MS, resolve);
      signal.addEventListener(
        'abort',
        () => {
          timer.cancel();
          resolve();
        },
        { once: true },
      );
    });
  }
}

/** The informers' copies may be from before the network was cut: the API server is asked. */
async function notReady(
  { client, nodeName }: MachineConfigDaemonOptions,
  kubeletSince: number | undefined,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { items } = await client.resource(resources.nodes).list({ fieldSelector: `metadata.name=${nodeName}`, signal });
  if (!isReady(items[0])) return 'node not Ready';
  if (kubeletSince === undefined) return undefined;
  const lease = await client.resource(resources.leases).get(nodeName, LEASES);
  return Date.parse(lease.spec?.renewTime ?? '') >= kubeletSince ? undefined : 'kubelet not heard of';
}

const isReady = (node: Node | undefined): boolean =>
  node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
