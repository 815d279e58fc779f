/** Probes that the leading master runs through the API: MachineConfigPools, storage classes and metrics. */
import type { StorageClass } from '../../../api/generated/storage/v1.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { LOCAL_PROVISIONER } from '../../../api/volumes/local-provisioner.ts';
import type { ApiClient } from '../../../client/types.ts';
import type { PoolFact, StorageFact } from './core/index.ts';

const POOLS = '/apis/machineconfiguration.openshift.io/v1/machineconfigpools';
const METRICS = '/apis/metrics.k8s.io/v1beta1/nodes';
const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class';
const BETA_DEFAULT_CLASS = 'storageclass.beta.kubernetes.io/is-default-class';
/** Annotation of a MachineConfigPool. `true` requests that hosts of the pool are drained before an update. */
const DRAINS = 'hyperedge.dev/drain-for-updates';
const TIMEOUT_MS = 3_000;

interface Pool extends KubeObject {
  readonly spec?: { readonly paused?: boolean };
  readonly status?: {
    readonly conditions?: readonly { readonly type?: string; readonly status?: string; readonly message?: string }[];
  };
}

/** Lists the MachineConfigPools; undefined if the server does not serve their API group. */
export async function probePools(client: ApiClient): Promise<readonly PoolFact[] | undefined> {
  const items = await listAt<Pool>(client, POOLS);
  return items?.map(({ metadata, spec, status }) => ({
    name: metadata?.name ?? '',
    paused: spec?.paused === true,
    drains: metadata?.annotations?.[DRAINS] === 'true',
    conditions: (status?.conditions ?? []).map(({ type = '', status: value = '', message = '' }) => ({
      type,
      status: value,
      message,
    })),
  }));
}

/**
 * Finds the default StorageClass. Returns undefined if there is no StorageClass and none is required (`wanted`).
 * `localServed`: whether the embedded provisioner runs.
 */
export async function probeStorage(
  client: ApiClient,
  wanted: boolean,
  localServed: boolean,
): Promise<StorageFact | undefined> {
  const { items } = await client.resource(resources.storageClasses).list({ signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (items.length === 0 && !wanted) return undefined;
  const found = items.find(isDefault);
  const { provisioner = '' } = found ?? {};
  const { name } = found?.metadata ?? {};
  if (provisioner === LOCAL_PROVISIONER) return { defaultClass: name, provisioner, served: localServed };
  const drivers = await client.resource(resources.csiDrivers).list({ signal: AbortSignal.timeout(TIMEOUT_MS) });
  const served = drivers.items.some(({ metadata }) => metadata?.name === provisioner);
  return { defaultClass: name, provisioner, served };
}

/** Counts the nodes with metrics; undefined if metrics.k8s.io is not served. */
export async function probeMetrics(client: ApiClient): Promise<{ readonly nodes: number } | undefined> {
  const items = await listAt<KubeObject>(client, METRICS);
  return items === undefined ? undefined : { nodes: items.length };
}

async function listAt<T>(client: ApiClient, path: string): Promise<readonly T[] | undefined> {
  try {
    const options = { signal: AbortSignal.timeout(TIMEOUT_MS) };
    const { items = [] } = await client.request<{ items?: readonly T[] }>('GET', path, undefined, options);
    return items;
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}

const isDefault = ({ metadata }: StorageClass): boolean =>
  [DEFAULT_CLASS, BETA_DEFAULT_CLASS].some((name) => metadata?.annotations?.[name] === 'true');
