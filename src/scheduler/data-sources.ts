/** Data sources of the scheduler: required informers, and informers of kinds that a server may not serve. */
import type { ReplicaSet } from '../api/generated/apps/v1.ts';
import type {
  Namespace,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  ReplicationController,
  Service,
} from '../api/generated/core/v1.ts';
import type { PodDisruptionBudget } from '../api/generated/policy/v1.ts';
import type { CSIDriver, CSINode, CSIStorageCapacity, StorageClass } from '../api/generated/storage/v1.ts';
import { apiVersionOf, type KubeObject, type ResourceType } from '../api/meta/object.ts';
import { isApiError } from '../api/meta/status.ts';
import { safeSelector } from '../api/podspec/scheduling/pod-info.ts';
import { resources } from '../api/resources.ts';
import { type LabelSelector, matchesLabels, storedSelectorOfLabels } from '../base/selector.ts';
import type { ApiClient, Informer } from '../client/types.ts';
import type { ViewSupport } from './core/cluster.ts';
import type { PodGroup } from './core/pod-group.ts';
import type { DisruptionBudget } from './core/preemption.ts';
import type { SchedulerDeps } from './deps.ts';
import type { DeviceSources } from './devices/devices.ts';

export interface Sources {
  readonly pods: Informer<Pod>;
  readonly nodes: Informer<Node>;
  readonly namespaces: Informer<Namespace>;
  readonly services: Informer<Service>;
  readonly replicaSets: Informer<ReplicaSet>;
  readonly replicationControllers: Informer<ReplicationController>;
}

export function createSources(deps: SchedulerDeps): Sources {
  const { informers } = deps;
  return {
    pods: informers.informer(resources.pods),
    nodes: informers.informer(resources.nodes),
    namespaces: informers.informer(resources.namespaces),
    services: informers.informer(resources.services),
    replicaSets: informers.informer(resources.replicaSets),
    replicationControllers: informers.informer(resources.replicationControllers),
  };
}

export interface OptionalSources {
  readonly budgets: Informer<PodDisruptionBudget> | undefined;
  readonly claims: Informer<PersistentVolumeClaim> | undefined;
  readonly volumes: Informer<PersistentVolume> | undefined;
  readonly classes: Informer<StorageClass> | undefined;
  readonly csiNodes: Informer<CSINode> | undefined;
  readonly csiDrivers: Informer<CSIDriver> | undefined;
  readonly capacities: Informer<CSIStorageCapacity> | undefined;
  readonly devices: DeviceSources | undefined;
  /** Informer of pod groups. Their custom resource definition may be created at any time. */
  readonly podGroups: Informer<PodGroup> | undefined;
}

const CSI_NODES: ResourceType<CSINode> = {
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'CSINode',
  plural: 'csinodes',
  namespaced: false,
};

const POD_GROUPS: ResourceType<PodGroup> = {
  group: 'scheduling.x-k8s.io',
  version: 'v1alpha1',
  kind: 'PodGroup',
  plural: 'podgroups',
  namespaced: true,
};

export const noOptionalSources: OptionalSources = {
  budgets: undefined,
  claims: undefined,
  volumes: undefined,
  classes: undefined,
  csiNodes: undefined,
  csiDrivers: undefined,
  capacities: undefined,
  devices: undefined,
  podGroups: undefined,
};

/** Discovers which of the optional kinds the server serves, starts their informers and waits for them. */
export async function discoverOptionalSources(deps: SchedulerDeps): Promise<OptionalSources> {
  const open = <T extends KubeObject>(type: ResourceType<T>) => openOptional(deps, type);
  const [budgets, claims, volumes, classes, csiNodes, csiDrivers, capacities, podGroups, devices] = await Promise.all([
    open(resources.podDisruptionBudgets),
    open(resources.persistentVolumeClaims),
    open(resources.persistentVolumes),
    open(resources.storageClasses),
    open(CSI_NODES),
    open(resources.csiDrivers),
    open(resources.csiStorageCapacities),
    discoverPodGroups(deps),
    discoverDevices(deps),
  ]);
  return { budgets, claims, volumes, classes, csiNodes, csiDrivers, capacities, podGroups, devices };
}

async function discoverDevices(deps: SchedulerDeps): Promise<DeviceSources | undefined> {
  const [claims, slices, classes, rules, rigs] = await Promise.all([
    openOptional(deps, resources.resourceClaims),
    openOptional(deps, resources.resourceSlices),
    openOptional(deps, resources.deviceClasses),
    openOptional(deps, resources.deviceTaintRules),
    openOptional(deps, resources.rigs),
  ]);
  const all = claims !== undefined && slices !== undefined && classes !== undefined;
  return all ? { claims, slices, classes, rules, rigs } : undefined;
}

export const discoverPodGroups = (deps: SchedulerDeps): Promise<Informer<PodGroup> | undefined> =>
  openOptional(deps, POD_GROUPS);

async function openOptional<T extends KubeObject>(
  deps: SchedulerDeps,
  type: ResourceType<T>,
): Promise<Informer<T> | undefined> {
  if (!(await isServed(deps.client, type))) return undefined;
  const informer = deps.informers.informer(type);
  informer.start();
  await informer.synced;
  return informer;
}

async function isServed(client: ApiClient, type: ResourceType): Promise<boolean> {
  const root = type.group === '' ? '/api' : '/apis';
  try {
    const list = await client.request<{ resources?: { name: string; verbs?: string[] }[] }>(
      'GET',
      `${root}/${apiVersionOf(type)}`,
    );
    return list.resources?.some((each) => each.name === type.plural && each.verbs?.includes('watch') === true) === true;
  } catch (error) {
    if (isApiError(error, 'NotFound')) return false;
    throw error;
  }
}

/** Parts of a view that do not come from the cluster state. */
export function viewSupport(
  sources: Sources,
  more: OptionalSources,
  isReserved: (volume: string) => boolean = () => false,
): ViewSupport {
  const { claims, volumes, classes, csiNodes, csiDrivers, capacities } = more;
  return {
    namespaceLabels: (namespace) => sources.namespaces.get(namespace)?.metadata?.labels ?? {},
    volumes:
      claims === undefined || volumes === undefined
        ? undefined
        : {
            claim: (namespace, name) => claims.get(`${namespace}/${name}`),
            volume: (name) => volumes.get(name),
            volumes: () => volumes.list().filter(({ metadata }) => !isReserved(metadata?.name ?? '')),
            storageClass: (name) => classes?.get(name),
            csiNode: (name) => csiNodes?.get(name),
            capacity:
              csiDrivers === undefined || capacities === undefined
                ? undefined
                : { driver: (name) => csiDrivers.get(name), capacities: () => capacities.list() },
          },
    peersOf: (pod) => peersOf(sources, pod),
  };
}

/** Label selectors of the services and the controller to which the pod belongs. */
function peersOf(sources: Sources, pod: Pod): LabelSelector[] {
  const namespace = pod.metadata?.namespace ?? '';
  const selectors = sources.services
    .list(namespace)
    .filter((service) => Object.keys(service.spec?.selector ?? {}).length > 0)
    .map((service) => storedSelectorOfLabels(service.spec?.selector))
    .filter((selector) => matchesLabels(selector, pod.metadata?.labels));
  const controller = pod.metadata?.ownerReferences?.find((reference) => reference.controller === true);
  const key = `${namespace}/${controller?.name ?? ''}`;
  if (controller?.kind === 'ReplicaSet') {
    const set = sources.replicaSets.get(key);
    if (set !== undefined) selectors.push(safeSelector(set.spec?.selector));
  } else if (controller?.kind === 'ReplicationController') {
    const owner = sources.replicationControllers.get(key);
    if (owner !== undefined) selectors.push(storedSelectorOfLabels(owner.spec?.selector));
  }
  return selectors;
}

/** Budgets in the scheduler's form. They are kept, because all budgets are read for each pod. */
const readBudgets = new WeakMap<PodDisruptionBudget, DisruptionBudget>();

export function disruptionBudgets(more: OptionalSources): DisruptionBudget[] {
  return (more.budgets?.list() ?? []).map((budget) => {
    const known = readBudgets.get(budget);
    if (known !== undefined) return known;
    const read: DisruptionBudget = {
      namespace: budget.metadata?.namespace ?? '',
      selector: safeSelector(budget.spec?.selector),
      disruptionsAllowed: budget.status?.disruptionsAllowed ?? 0,
      disrupted: new Set(Object.keys(budget.status?.disruptedPods ?? {})),
    };
    readBudgets.set(budget, read);
    return read;
  });
}
