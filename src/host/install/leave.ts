/** Removes a host from its cluster: evicts its pods, and removes its store member and its Node object. */

import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pod } from '../../api/generated/core/v1.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import type { NodeName } from '../../base/brand.ts';
import { counting, type OnProgress, type Progress } from '../../base/command-line/progress.ts';
import { CodedError, ignore, messageOf } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import { countText } from '../../base/text/count-text.ts';
import type { ApiClient } from '../../client/index.ts';
import { masterFiles, nodeFiles } from '../../pki/index.ts';
import type { StoreAccess } from '../../store/administration/port.ts';
import type { Settings } from '../config/settings.ts';
import { type OpenedClient, openClient } from '../process/api-access.ts';
import { systemClock as clock, systemRandom as random, settlesWithin } from '../process/process.ts';
import { etcdAccess } from '../store/access.ts';

export interface LeaveOptions {
  readonly force: boolean;
  readonly drainTimeoutMs: number;
}

export interface Leaving {
  /**
   * Deletes the Node object. Called after the kubelet has stopped, because a running kubelet would register the Node
   * again. Throws CodedError 'node-left'.
   */
  finish(): Promise<void>;
}

const ANSWER_MS = 10_000;
const POLL_MS = 500;
const REMOVAL_MS = 30_000;
const NOTHING: Leaving = { finish: async () => {} };

/**
 * Evicts the pods and removes the store member. Throws CodedErrors of one line; if leaving would harm the cluster, it
 * throws before any change.
 */
export async function leaveCluster(settings: Settings, options: LeaveOptions, progress: Progress): Promise<Leaving> {
  const kubeconfig = [masterFiles(settings.root).adminKubeconfig, nodeFiles(settings.root).kubeconfig].find(existsSync);
  if (kubeconfig === undefined) {
    progress.note('this host belongs to no cluster');
    return NOTHING;
  }
  const { nodeName } = settings;
  const open = (server?: string) =>
    openClient(kubeconfig, 'hyperedge/reset', { clock, random, log: silentLog }, server);
  const { client, close } = await openReachable(open, settings.masters);
  try {
    const others = await otherNodes(client, nodeName);
    if (others === 0) {
      progress.note(`${nodeName} is the only node: the cluster ceases to exist`);
      return NOTHING;
    }
    const servers = await otherServers(client, settings);
    if (servers.length === 0 && !options.force) {
      throw new CodedError(
        'last-master',
        `reset: this host has the only API server of a cluster with ${countText(others, 'other node')}; reset the other nodes first, or give --force`,
      );
    }
    const leaveStore = await storeMember(settings, options.force, progress);
    await drain(client, nodeName, options.drainTimeoutMs, progress);
    await leaveStore();
    return { finish: () => deleteNode(servers, open, nodeName, progress) };
  } catch (error) {
    const refused = error instanceof CodedError && ['last-master', 'last-member'].includes(error.code);
    if (refused || !options.force) throw error;
    progress.note(`${messageOf(error)}; continuing because of --force`);
    return NOTHING;
  } finally {
    await close();
  }
}

/**
 * Opens a client of the first server that answers. The server in the node's kubeconfig is the balancer, which does not
 * answer if the host process is stopped; then the masters are tried.
 */
async function openReachable(
  open: (server?: string) => Promise<OpenedClient>,
  masters: readonly string[],
): Promise<OpenedClient> {
  for (const server of [undefined, ...masters]) {
    const opened = await open(server);
    try {
      await opened.client.request('GET', '/version', undefined, { signal: AbortSignal.timeout(ANSWER_MS) });
      return opened;
    } catch {
      // Continue with the next server. If none answers, the caller's request reports the error.
      await opened.close();
    }
  }
  return open();
}

async function otherNodes(client: ApiClient, nodeName: NodeName): Promise<number> {
  const listed = client.resource(resources.nodes).list({ metadataOnly: true });
  const late = new CodedError('unreachable', 'no answer');
  try {
    if (!(await settlesWithin(listed, ANSWER_MS))) throw late;
    return (await listed).items.filter(({ metadata }) => metadata?.name !== nodeName).length;
  } catch (error) {
    throw new CodedError(
      'unreachable',
      `reset: the API server does not answer (${messageOf(error)}); try again when it does, or give --force and delete node ${nodeName} from another host`,
      { cause: error },
    );
  }
}

/** URLs of API servers on other hosts. */
async function otherServers(client: ApiClient, settings: Settings): Promise<string[]> {
  const slices = await client
    .resource(resources.endpointSlices)
    .list({ namespace: 'default', labelSelector: 'kubernetes.io/service-name=kubernetes' });
  const own = new Set([...settings.addresses, '127.0.0.1', '::1']);
  const urls = slices.items.flatMap(({ endpoints = [], ports }) =>
    endpoints
      .flatMap(({ addresses }) => addresses)
      .filter((address) => !own.has(address))
      .map((address) => `https://${address.includes(':') ? `[${address}]` : address}:${ports?.[0]?.port ?? 8443}`),
  );
  return [...new Set(urls)];
}

async function drain(client: ApiClient, nodeName: NodeName, timeoutMs: number, progress: Progress): Promise<void> {
  await client
    .resource(resources.nodes)
    .patch(nodeName, undefined, 'merge', { spec: { unschedulable: true } })
    .catch((error: unknown) => progress.note(`node ${nodeName} not cordoned: ${messageOf(error)}`));
  const pods = podsOf(client);
  const present = async (): Promise<Pod[]> =>
    (await pods.list({ fieldSelector: `spec.nodeName=${nodeName}` })).items.filter(evictable);
  const first = (await present()).length;
  await counting(progress, 'eviction', 'pods', (onProgress) =>
    evictAll({ pods, present, first, timeoutMs, progress, onProgress }),
  );
  progress.step(`node ${nodeName} is drained: evicted ${countText(first, 'pod')}`);
}

interface Eviction {
  readonly pods: ReturnType<typeof podsOf>;
  /** Lists the pods that are left. */
  present(): Promise<Pod[]>;
  /** Number of pods at the begin. */
  readonly first: number;
  readonly timeoutMs: number;
  readonly progress: Progress;
  readonly onProgress: OnProgress;
}

/** Evicts pods until none is left. After the time limit, the pods that are left are deleted. */
async function evictAll({ pods, present, first, timeoutMs, progress, onProgress }: Eviction): Promise<void> {
  for (const began = performance.now(); ; await sleep(POLL_MS)) {
    const left = await present();
    onProgress(Math.max(0, first - left.length), first);
    if (left.length === 0) return;
    const late = performance.now() - began > timeoutMs;
    for (const { metadata } of left) {
      const { name = '', namespace = '', deletionTimestamp } = metadata ?? {};
      if (deletionTimestamp !== undefined) continue;
      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
      // While a PodDisruptionBudget does not allow an eviction, its request fails with status 429 and is repeated.
      // After the time limit, the pods are deleted.
      if (late)
        await pods.delete(name, namespace).catch((error: unknown) => {
          if (!isApiError(error, 'NotFound'))
            progress.note(`pod ${namespace}/${name} is not deleted: ${messageOf(error)}`);
        });
      else
        await pods
          .createSubresource(name, namespace, 'eviction', eviction)
          .catch(ignore('the loop evicts the pods that are left again'));
    }
    if (late) {
      progress.note(`deleting ${countText(left.length, 'pod')} that could not be evicted in time`);
      return;
    }
  }
}

const podsOf = (client: ApiClient) => client.resource(resources.pods);

/**
 * Whether the pod is evicted. As in kubectl drain --ignore-daemonsets, mirror pods and pods of DaemonSets stay: the
 * host runs mirror pods itself, and a DaemonSet would recreate its pods.
 */
function evictable({ metadata, status }: Pod): boolean {
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return false;
  if (metadata?.annotations?.['kubernetes.io/config.mirror'] !== undefined) return false;
  return !(metadata?.ownerReferences ?? []).some(({ kind }) => kind === 'DaemonSet');
}

/** Checks that the store continues without this host's member. Resolves with a function that removes the member. */
async function storeMember(
  { root, roles, storage, nodeName }: Settings,
  force: boolean,
  progress: Progress,
): Promise<() => Promise<void>> {
  if (!roles.has('etcd') || storage !== undefined) return async () => {};
  const access = await etcdAccess({ root });
  const admin = access.open();
  try {
    const members = await admin.members(ANSWER_MS);
    const own = members.find(({ name }) => name === nodeName);
    if (own === undefined || (members.length === 1 && force)) return async () => {};
    if (members.length === 1) {
      throw new CodedError(
        'last-member',
        'reset: this host has the only store member, and with it all data; add another with hyperedge members add, or give --force',
      );
    }
    // The removal is requested from other members, because the removed member closes its connections immediately.
    const others = members.filter(({ id }) => id !== own.id).flatMap(({ clientUrls }) => clientUrls);
    return async () => {
      await removeMember(() => (others.length === 0 ? access.open() : access.open(others)), own.id);
      progress.step(`store member ${nodeName} is removed`);
    };
  } finally {
    admin.close();
  }
}

/**
 * Removes a member. A leader change may interrupt the request, so it is repeated until the list no longer contains the
 * member.
 */
async function removeMember(open: StoreAccess['open'], id: string): Promise<void> {
  for (const began = performance.now(); ; await sleep(POLL_MS)) {
    const admin = open();
    try {
      const members = await admin.members(ANSWER_MS);
      if (members.some((member) => member.id === id)) await admin.removeMember(id);
      return;
    } catch (error) {
      if (performance.now() - began > REMOVAL_MS) throw error;
    } finally {
      admin.close();
    }
  }
}

async function deleteNode(
  servers: readonly string[],
  open: (server?: string) => ReturnType<typeof openClient>,
  nodeName: NodeName,
  progress: Progress,
): Promise<void> {
  let last: unknown;
  for (const server of servers) {
    const { client, close } = await open(server);
    try {
      await client.resource(resources.nodes).delete(nodeName);
      progress.step(`node ${nodeName} is deleted`);
      return;
    } catch (error) {
      last = error;
    } finally {
      await close();
    }
  }
  throw new CodedError(
    'node-left',
    `node ${nodeName} was not deleted (${messageOf(last)}); run kubectl delete node ${nodeName}`,
  );
}
