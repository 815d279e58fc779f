/** Paths of the kinds that pages show. Kinds that are not listed here are found by discovery. */

import type { DaemonSet, Deployment, ReplicaSet, StatefulSet } from '../../../api/generated/apps/v1.ts';
import type { CronJob, Job } from '../../../api/generated/batch/v1.ts';
import type { Lease } from '../../../api/generated/coordination/v1.ts';
import type {
  ConfigMap,
  Event,
  Namespace,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  ResourceQuota,
  Secret,
  Service,
} from '../../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../api/generated/discovery/v1.ts';
import type { Ingress, NetworkPolicy } from '../../../api/generated/networking/v1.ts';
import type { KubeObject, ResourceType } from '../../../api/meta/object.ts';

/** An object of any kind. Its fields have no types, so each page checks the fields that it shows. */
export type AnyObject = KubeObject & { readonly [field: string]: unknown };

const type = <T extends KubeObject>(
  group: string,
  version: string,
  kind: string,
  plural: string,
  scope: 'Namespaced' | 'Cluster' = 'Namespaced',
): ResourceType<T> => ({ group, version, kind, plural, namespaced: scope === 'Namespaced' });

export const PODS = type<Pod>('', 'v1', 'Pod', 'pods');
export const NODES = type<Node>('', 'v1', 'Node', 'nodes', 'Cluster');
export const EVENTS = type<Event>('', 'v1', 'Event', 'events');
export const NAMESPACES = type<Namespace>('', 'v1', 'Namespace', 'namespaces', 'Cluster');
/** Namespaces that the user may read. */
export const PROJECTS = type<AnyObject>('project.openshift.io', 'v1', 'Project', 'projects', 'Cluster');
export const SERVICES = type<Service>('', 'v1', 'Service', 'services');
export const CONFIG_MAPS = type<ConfigMap>('', 'v1', 'ConfigMap', 'configmaps');
export const SECRETS = type<Secret>('', 'v1', 'Secret', 'secrets');
export const CLAIMS = type<PersistentVolumeClaim>('', 'v1', 'PersistentVolumeClaim', 'persistentvolumeclaims');
export const VOLUMES = type<PersistentVolume>('', 'v1', 'PersistentVolume', 'persistentvolumes', 'Cluster');
export const QUOTAS = type<ResourceQuota>('', 'v1', 'ResourceQuota', 'resourcequotas');
export const DEPLOYMENTS = type<Deployment>('apps', 'v1', 'Deployment', 'deployments');
export const REPLICA_SETS = type<ReplicaSet>('apps', 'v1', 'ReplicaSet', 'replicasets');
export const STATEFUL_SETS = type<StatefulSet>('apps', 'v1', 'StatefulSet', 'statefulsets');
export const DAEMON_SETS = type<DaemonSet>('apps', 'v1', 'DaemonSet', 'daemonsets');
export const JOBS = type<Job>('batch', 'v1', 'Job', 'jobs');
export const CRON_JOBS = type<CronJob>('batch', 'v1', 'CronJob', 'cronjobs');
export const ENDPOINT_SLICES = type<EndpointSlice>('discovery.k8s.io', 'v1', 'EndpointSlice', 'endpointslices');
export const INGRESSES = type<Ingress>('networking.k8s.io', 'v1', 'Ingress', 'ingresses');
export const POLICIES = type<NetworkPolicy>('networking.k8s.io', 'v1', 'NetworkPolicy', 'networkpolicies');
export const LEASES = type<Lease>('coordination.k8s.io', 'v1', 'Lease', 'leases');
export const ROUTES = type<AnyObject>('route.openshift.io', 'v1', 'Route', 'routes');
export const CLUSTER_VERSIONS = type<AnyObject>(
  'config.openshift.io',
  'v1',
  'ClusterVersion',
  'clusterversions',
  'Cluster',
);
export const CLUSTER_OPERATORS = type<AnyObject>(
  'config.openshift.io',
  'v1',
  'ClusterOperator',
  'clusteroperators',
  'Cluster',
);
export const CONFIG_POOLS = type<AnyObject>(
  'machineconfiguration.openshift.io',
  'v1',
  'MachineConfigPool',
  'machineconfigpools',
  'Cluster',
);
export const BARE_METAL_HOSTS = type<AnyObject>('metal3.io', 'v1alpha1', 'BareMetalHost', 'baremetalhosts');
export const MACHINE_CONFIGS = type<AnyObject>(
  'machineconfiguration.openshift.io',
  'v1',
  'MachineConfig',
  'machineconfigs',
  'Cluster',
);
export const CATALOGS = type<AnyObject>('operators.coreos.com', 'v1alpha1', 'CatalogSource', 'catalogsources');
export const SUBSCRIPTIONS = type<AnyObject>('operators.coreos.com', 'v1alpha1', 'Subscription', 'subscriptions');
export const INSTALL_PLANS = type<AnyObject>('operators.coreos.com', 'v1alpha1', 'InstallPlan', 'installplans');
export const INSTALLED_OPERATORS = type<AnyObject>(
  'operators.coreos.com',
  'v1alpha1',
  'ClusterServiceVersion',
  'clusterserviceversions',
);
export const RIGS = type<AnyObject>('rig.hyperedge.dev', 'v1alpha1', 'Rig', 'rigs', 'Cluster');
export const RIG_CLAIMS = type<AnyObject>('rig.hyperedge.dev', 'v1alpha1', 'RigClaim', 'rigclaims');

/** The value at a path of fields, or undefined. */
export function fieldAt(value: unknown, ...path: readonly (string | number)[]): unknown {
  let current = value;
  for (const step of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, step)) return undefined;
    current = (current as Record<string | number, unknown>)[step];
  }
  return current;
}

export function textAt(value: unknown, ...path: readonly (string | number)[]): string {
  const found = fieldAt(value, ...path);
  return typeof found === 'string' ? found : typeof found === 'number' ? String(found) : '';
}

export function numberAt(value: unknown, fallback: number, ...path: readonly (string | number)[]): number {
  const found = fieldAt(value, ...path);
  return typeof found === 'number' ? found : fallback;
}

export function listAt(value: unknown, ...path: readonly (string | number)[]): readonly AnyObject[] {
  const found = fieldAt(value, ...path);
  return Array.isArray(found) ? (found as AnyObject[]) : [];
}

export interface ConditionView {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly since: string;
}

export function conditionsOf(object: unknown): readonly ConditionView[] {
  return listAt(object, 'status', 'conditions').map((each) => ({
    type: textAt(each, 'type'),
    status: textAt(each, 'status'),
    reason: textAt(each, 'reason'),
    message: textAt(each, 'message'),
    since: textAt(each, 'lastTransitionTime'),
  }));
}

export function conditionOf(object: unknown, name: string): ConditionView | undefined {
  return conditionsOf(object).find(({ type: each }) => each === name);
}

/** A secret's value as text; for binary data, a text with its size. */
export function decodeSecret(value: string): string {
  try {
    const bytes = Uint8Array.from(atob(value), (character) => character.charCodeAt(0));
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return `binary value, ${value.length} characters of base64`;
  }
}
