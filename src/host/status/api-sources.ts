/** Facts about the cluster from the API server. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Node } from '../../api/generated/core/v1.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import type { NodeName } from '../../base/brand.ts';
import { silentLog } from '../../base/log.ts';
import { timeMs } from '../../base/time/timestamps.ts';
import { type ApiClient, checkReady } from '../../client/index.ts';
import type { UpdateFacts } from '../../doctor/port.ts';
import type { MachineConfigPool } from '../../openshift/machine-config/kinds/machine-config-types.ts';
import type { ClusterOperator, ClusterVersion } from '../../openshift/operators/kinds/config/types.ts';
import { masterFiles, nodeFiles } from '../../pki/index.ts';
import type { ApiNode, FailingOperator, Pool } from '../../status/port.ts';
import { pathsBelow } from '../config/paths.ts';
import type { HostStatus } from '../control/control.ts';
import { readUpdateRecord, updateOf } from '../doctor/cluster-facts.ts';
import { absentFact, readOnce } from '../doctor/gather.ts';
import { openClient } from '../process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';

const LEASE_NAMESPACE = 'kube-node-lease';
const ROLE_PREFIX = 'node-role.kubernetes.io/';
const PRESSURES = new Set(['DiskPressure', 'MemoryPressure', 'PIDPressure', 'ClockWrong']);
/** Time limit for this host's own API server. If it is not ready by then, the balancer is tried. */
const OWN_MS = 1200;

export interface ApiSource {
  nodes(nodeName: NodeName, signal: AbortSignal): Promise<ApiNode[]>;
  pools(signal: AbortSignal): Promise<Pool[]>;
  operators(signal: AbortSignal): Promise<FailingOperator[]>;
  /** `host`: status of this host; undefined if its host process does not respond. */
  update(host: Promise<HostStatus | undefined>, signal: AbortSignal): Promise<UpdateFacts>;
  close(): Promise<void>;
}

/**
 * Facts that are requested with the credentials of this host. Masters see the whole cluster, other hosts only their own
 * Node. Throws CodedError 'absent' if the host has no credentials.
 */
export function openApiSource(root: string): ApiSource {
  const opened: { close(): Promise<void> }[] = [];
  const open = async (server?: string) => {
    const { adminKubeconfig } = masterFiles(root);
    const isMaster = existsSync(adminKubeconfig);
    const file = isMaster ? adminKubeconfig : nodeFiles(root).kubeconfig;
    if (!existsSync(file)) throw absentFact('this host has no credentials for the API server');
    const found = await openClient(file, 'status/hyperedge', { clock, random, log: silentLog }, server);
    opened.push(found);
    return { ...found, isMaster };
  };
  const access = readOnce(async (): Promise<{ readonly client: ApiClient; readonly isMaster: boolean }> => {
    const own = await open();
    try {
      await checkReady(own.client, AbortSignal.timeout(OWN_MS));
      return own;
    } catch (error) {
      const balancer = await balancerOf(root);
      if (balancer === undefined || balancer === own.server) throw error;
      const other = await open(balancer);
      return checkReady(other.client, AbortSignal.timeout(OWN_MS)).then(
        () => other,
        () => Promise.reject(error),
      );
    }
  });
  /** Returns a client that may read the whole cluster. Throws CodedError 'absent' on other hosts than masters. */
  const asMaster = async (): Promise<ApiClient> => {
    const { client, isMaster } = await access();
    if (!isMaster) throw absentFact('only masters may read this information');
    return client;
  };
  return {
    nodes: async (nodeName, signal) => {
      const { client, isMaster } = await access();
      return isMaster ? allNodes(client, signal) : [await ownNode(client, nodeName, signal)];
    },
    pools: async (signal) => {
      const list = (await asMaster()).resource(resources.machineConfigPools).list({ signal });
      return (await list.catch(withoutKind)).items.map(poolOf);
    },
    operators: async (signal) => {
      const list = (await asMaster()).resource(resources.clusterOperators).list({ signal });
      return (await list.catch(withoutKind)).items.flatMap(failingOf);
    },
    update: async (host, signal) => {
      const record = await readUpdateRecord(pathsBelow(root).updateRecord);
      const path = '/apis/config.openshift.io/v1/clusterversions/version';
      const version = await access()
        .then(({ client }) => client.request<ClusterVersion>('GET', path, undefined, { signal }))
        // Without the API server, the report contains only this host's version. The source `nodes` reports the error.
        .catch(() => undefined);
      const isMaster = existsSync(pathsBelow(root).masterConfig);
      return updateOf(record, version, { isMaster, components: (await host)?.components ?? [], nowMs: clock.nowMs() });
    },
    close: async () => {
      await Promise.all(opened.map((each) => each.close()));
    },
  };
}

/** URL of the balancer, which forwards to any running API server. It is the server in the node's kubeconfig. */
async function balancerOf(root: string): Promise<string | undefined> {
  const text = await readFile(nodeFiles(root).kubeconfig, 'utf8').catch(() => '');
  return /^\s*(?:- )?server: *(\S+)/m.exec(text)?.[1];
}

/** Throws the error. NotFound becomes CodedError 'absent', because a cluster may not serve OpenShift's API groups. */
function withoutKind(error: unknown): never {
  throw isApiError(error, 'NotFound') ? absentFact('the cluster does not serve this kind') : error;
}

async function allNodes(client: ApiClient, signal: AbortSignal): Promise<ApiNode[]> {
  const [nodes, leases] = await Promise.all([
    client.resource(resources.nodes).list({ signal }),
    client.resource(resources.leases).list({ namespace: LEASE_NAMESPACE, signal }),
  ]);
  const renewed = new Map(leases.items.map(({ metadata, spec }) => [metadata?.name, spec?.renewTime]));
  return nodes.items.map((node) => nodeOf(node, renewed.get(node.metadata?.name)));
}

async function ownNode(client: ApiClient, name: string, signal: AbortSignal): Promise<ApiNode> {
  const path = encodeURIComponent(name);
  const [node, lease] = await Promise.all([
    client.request<Node>('GET', `/api/v1/nodes/${path}`, undefined, { signal }),
    client.request<KubeObject & { spec?: { renewTime?: string } }>(
      'GET',
      `/apis/coordination.k8s.io/v1/namespaces/${LEASE_NAMESPACE}/leases/${path}`,
      undefined,
      { signal },
    ),
  ]);
  return nodeOf(node, lease.spec?.renewTime);
}

function nodeOf({ metadata, spec, status }: Node, renewTime: string | undefined): ApiNode {
  const conditions = status?.conditions ?? [];
  const ready = conditions.find(({ type }) => type === 'Ready');
  const labels = Object.keys(metadata?.labels ?? {});
  return {
    name: metadata?.name ?? '',
    roles: labels.flatMap((label) => (label.startsWith(ROLE_PREFIX) ? [label.slice(ROLE_PREFIX.length)] : [])).sort(),
    kubeletVersion: status?.nodeInfo?.kubeletVersion ?? '',
    ready: ready?.status === 'True',
    reason: ready?.message ?? 'the kubelet has not reported yet',
    schedulable: spec?.unschedulable !== true,
    pressures: conditions
      .filter(({ type, status: state }) => PRESSURES.has(type) && state === 'True')
      .map(({ type, message }) => `${type}: ${message ?? ''}`),
    renewedMs: renewTime === undefined ? undefined : timeMs(renewTime),
  };
}

function poolOf({ metadata, spec, status }: MachineConfigPool): Pool {
  const degraded = status?.conditions?.find(({ type, status: state }) => type === 'Degraded' && state === 'True');
  return {
    name: metadata?.name ?? '',
    machines: status?.machineCount ?? 0,
    updated: status?.updatedMachineCount ?? 0,
    unavailable: status?.unavailableMachineCount ?? 0,
    paused: spec?.paused === true,
    degraded: degraded === undefined ? undefined : (degraded.message ?? ''),
  };
}

function failingOf({ metadata, status }: ClusterOperator): FailingOperator[] {
  const is = (type: string, wanted: string) =>
    status?.conditions?.find((each) => each.type === type && each.status === wanted);
  const [unavailable, degraded] = [is('Available', 'False'), is('Degraded', 'True')];
  const found = unavailable ?? degraded;
  if (found === undefined) return [];
  const state = unavailable === undefined ? 'degraded' : 'unavailable';
  return [{ name: metadata?.name ?? '', state, message: found.message ?? '' }];
}
