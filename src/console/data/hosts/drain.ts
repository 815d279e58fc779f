/** Cordon and drain of a node, as kubectl does: evictions respect disruption budgets. */
import type { Pod } from '../../../api/generated/core/v1.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Clock } from '../../../base/time/clock.ts';
import { sleep } from '../../../base/time/sleep.ts';
import { collectionPath, objectPath, query } from '../../../client/resource-path.ts';
import { type Api, MERGE_PATCH } from '../api/api.ts';
import { FIELD_MANAGER } from '../api/apply.ts';
import { NODES, PODS } from '../api/resources.ts';

const MIRROR = 'kubernetes.io/config.mirror';
const RETRY_MS = 5_000;
const POLL_MS = 1_000;

export async function setCordoned(api: Api, node: string, isCordoned: boolean): Promise<void> {
  await api.json(objectPath(NODES, node, undefined) + query({ fieldManager: FIELD_MANAGER }), {
    method: 'PATCH',
    contentType: MERGE_PATCH,
    body: { spec: { unschedulable: isCordoned ? true : null } },
  });
}

export interface DrainPlan {
  readonly evict: readonly Pod[];
  /** Pods that are not evicted, with the reason. */
  readonly stay: readonly { readonly pod: Pod; readonly reason: string }[];
  /** Consequences that the user must accept. */
  readonly warnings: readonly string[];
}

export function planDrain(pods: readonly Pod[]): DrainPlan {
  const evict: Pod[] = [];
  const stay: { pod: Pod; reason: string }[] = [];
  const warnings: string[] = [];
  for (const pod of pods) {
    const name = `${pod.metadata?.namespace ?? ''}/${pod.metadata?.name ?? ''}`;
    const owner = pod.metadata?.ownerReferences?.find(({ controller }) => controller === true);
    const isFinished = pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
    if (pod.metadata?.annotations?.[MIRROR] !== undefined) {
      stay.push({ pod, reason: 'static pod of the host' });
      continue;
    }
    if (owner?.kind === 'DaemonSet' && !isFinished) {
      stay.push({ pod, reason: 'pod of a daemon set' });
      continue;
    }
    evict.push(pod);
    if (isFinished) continue;
    if (owner === undefined) warnings.push(`${name} has no controller and is not created again.`);
    if (pod.spec?.volumes?.some(({ emptyDir }) => emptyDir !== undefined) === true)
      warnings.push(`${name} loses the data of its emptyDir volumes.`);
  }
  return { evict, stay, warnings };
}

export interface DrainProgress {
  readonly total: number;
  readonly gone: number;
  /** Pods that still exist, with the reason why they are not deleted yet. */
  readonly waiting: readonly { readonly name: string; readonly text: string }[];
}

export interface DrainContext {
  readonly api: Api;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: DrainProgress) => void;
}

export async function podsOfNode(api: Api, node: string): Promise<readonly Pod[]> {
  const path = collectionPath(PODS) + query({ fieldSelector: `spec.nodeName=${node}` });
  return (await api.json<{ readonly items?: readonly Pod[] }>(path)).items ?? [];
}

/**
 * Cordons the node and evicts the pods of the plan. Resolves when all of them are deleted; rejects when the signal
 * aborts.
 */
export async function drain(node: string, plan: DrainPlan, context: DrainContext): Promise<void> {
  const { api, clock, signal, onProgress } = context;
  await setCordoned(api, node, true);
  const texts = new Map(plan.evict.map((pod) => [pod, 'eviction requested']));
  const report = (): void =>
    onProgress({
      total: plan.evict.length,
      gone: plan.evict.length - texts.size,
      waiting: [...texts].map(([{ metadata }, text]) => ({
        name: `${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`,
        text,
      })),
    });
  report();
  const results = await Promise.allSettled(
    plan.evict.map(async (pod) => {
      const onText = (text: string): void => {
        texts.set(pod, text);
        report();
      };
      await evictPod(pod, { api, clock, signal }, onText);
      texts.delete(pod);
      report();
    }),
  );
  const failed = results.find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
}

async function evictPod(
  pod: Pod,
  { api, clock, signal }: Omit<DrainContext, 'onProgress'>,
  onText: (text: string) => void,
): Promise<void> {
  const { name = '', namespace = '', uid } = pod.metadata ?? {};
  for (;;) {
    signal.throwIfAborted();
    try {
      await api.json(objectPath(PODS, name, namespace, 'eviction'), {
        method: 'POST',
        signal,
        body: {
          apiVersion: 'policy/v1',
          kind: 'Eviction',
          metadata: { name, namespace },
          deleteOptions: { preconditions: { uid } },
        },
      });
      break;
    } catch (error) {
      if (isApiError(error, 'NotFound') || isApiError(error, 'Conflict')) return;
      const isLater = isApiError(error, 'TooManyRequests') || isApiError(error, 'ServiceUnavailable');
      if (!isLater) throw error;
      onText(messageOf(error));
      await sleep(clock, RETRY_MS, signal);
    }
  }
  onText('ending');
  for (;;) {
    signal.throwIfAborted();
    try {
      const current = await api.json<Pod>(objectPath(PODS, name, namespace), { signal });
      if (current.metadata?.uid !== uid) return;
    } catch (error) {
      if (isApiError(error, 'NotFound')) return;
      if (!isApiError(error, 'ServiceUnavailable')) throw error;
    }
    await sleep(clock, POLL_MS, signal);
  }
}
