/** Objects during a build, with their former names. */
import type { AnyObject } from '../core/objects.ts';

export interface Resource {
  object: AnyObject;
  /** Former names, oldest first. References may use any of them. */
  readonly names: string[];
  /** Whether the name gets a suffix that is computed from the content. */
  needsHash: boolean;
}

export const nameOfResource = ({ object }: Resource): string => object.metadata?.name ?? '';

export function groupVersionOf({ apiVersion = '' }: AnyObject): { readonly group: string; readonly version: string } {
  const [first = '', second] = apiVersion.split('/');
  return second === undefined ? { group: '', version: first } : { group: first, version: second };
}

/** Whether the resource has this name or had it before. */
export const isNamed = (resource: Resource, name: string): boolean =>
  nameOfResource(resource) === name || resource.names.includes(name);

/** Kinds without a namespace. Source: sigs.k8s.io/kustomize/kyaml/openapi. */
const CLUSTER_KINDS: ReadonlySet<string> = new Set([
  ...['APIService', 'CSIDriver', 'CSINode', 'CertificateSigningRequest', 'ClusterRole', 'ClusterRoleBinding'],
  ...['ClusterTrustBundle', 'ComponentStatus', 'CustomResourceDefinition', 'DeviceClass', 'FlowSchema', 'IPAddress'],
  ...['IngressClass', 'MutatingAdmissionPolicy', 'MutatingAdmissionPolicyBinding', 'MutatingWebhookConfiguration'],
  ...['Namespace', 'Node', 'PersistentVolume', 'PriorityClass', 'PriorityLevelConfiguration', 'ResourceSlice'],
  ...['RuntimeClass', 'ServiceCIDR', 'StorageClass', 'StorageVersion', 'ValidatingAdmissionPolicy'],
  ...[
    'ValidatingAdmissionPolicyBinding',
    'ValidatingWebhookConfiguration',
    'VolumeAttachment',
    'VolumeAttributesClass',
  ],
]);

export const isClusterKind = ({ kind = '' }: AnyObject): boolean => CLUSTER_KINDS.has(kind);

/** Path of the pod template in the kinds that have one. */
export const TEMPLATE_PATHS: Readonly<Record<string, readonly string[]>> = {
  Deployment: ['spec', 'template'],
  ReplicaSet: ['spec', 'template'],
  DaemonSet: ['spec', 'template'],
  StatefulSet: ['spec', 'template'],
  ReplicationController: ['spec', 'template'],
  Job: ['spec', 'template'],
  CronJob: ['spec', 'jobTemplate', 'spec', 'template'],
};

type Fields = Record<string, unknown>;
export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The mapping at the path; undefined if there is none. */
export function mappingAt(object: object, path: readonly string[]): Fields | undefined {
  let value: unknown = object;
  for (const key of path) value = isFields(value) ? value[key] : undefined;
  return isFields(value) ? value : undefined;
}

/** The mapping at the path. Missing mappings are created. */
export function createMappingAt(object: object, path: readonly string[]): Fields {
  let mapping = object as Fields;
  for (const key of path) {
    const next = mapping[key];
    const child = isFields(next) ? next : {};
    mapping[key] = child;
    mapping = child;
  }
  return mapping;
}
