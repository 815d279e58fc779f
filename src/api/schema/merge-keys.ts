/**
 * Merge rules of lists, maps and structs of the built-in types: upstream's markers `patchStrategy`, `patchMergeKey`,
 * `listType`, `listMapKey`, `mapType` and `structType`, which are published as OpenAPI vendor extensions. Lists without
 * an entry are atomic for server-side apply and are replaced by strategic merge.
 */
import type { JsonValue } from '../meta/object.ts';
import type { PatchStrategy } from './node.ts';

export interface FieldFacts {
  /** Items are identified by fields (map), by their value (set) or not at all (atomic). */
  readonly listType?: 'atomic' | 'set' | 'map';
  readonly mapKeys?: readonly string[];
  readonly patchStrategy?: readonly PatchStrategy[];
  readonly patchMergeKey?: string;
  /** Whether field managers own a map or struct as a whole. */
  readonly atomic?: boolean;
}

const merge = ['merge'] as const;

/** A list of objects whose items are identified by `keys`. Strategic merge uses the first key. */
const keyed = (...keys: [string, ...string[]]): FieldFacts => ({
  listType: 'map',
  mapKeys: keys,
  patchStrategy: merge,
  patchMergeKey: keys[0],
});
/** Like `keyed`, for server-side apply only. */
const keyedForApply = (...keys: string[]): FieldFacts => ({ listType: 'map', mapKeys: keys });
const keyedRetaining = (key: string): FieldFacts => ({ ...keyed(key), patchStrategy: ['merge', 'retainKeys'] });
const set: FieldFacts = { listType: 'set' };
const mergedSet: FieldFacts = { listType: 'set', patchStrategy: merge };
const atomic: FieldFacts = { atomic: true };

const containerFacts = (type: string): Record<string, FieldFacts> => ({
  [`${type}.env`]: keyed('name'),
  [`${type}.ports`]: keyed('containerPort', 'protocol'),
  [`${type}.volumeDevices`]: keyed('devicePath'),
  [`${type}.volumeMounts`]: keyed('mountPath'),
});

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';
const CORE = 'io.k8s.api.core.v1';
const APPS = 'io.k8s.api.apps.v1';

/** Merge rules by package and `Type.field`. */
const FIELD_FACTS: Readonly<Record<string, Readonly<Record<string, FieldFacts>>>> = {
  [META]: {
    'ObjectMeta.finalizers': mergedSet,
    'ObjectMeta.ownerReferences': keyed('uid'),
  },
  [CORE]: {
    ...containerFacts('Container'),
    ...containerFacts('EphemeralContainer'),
    'ContainerRestartRuleOnExitCodes.values': set,
    'ContainerStatus.allocatedResourcesStatus': keyed('name'),
    'ContainerStatus.volumeMounts': keyed('mountPath'),
    'ComponentStatus.conditions': keyed('type'),
    'NamespaceStatus.conditions': keyed('type'),
    'NodeAllocatableResourceClaimStatus.containers': set,
    'NodeSpec.podCIDRs': mergedSet,
    'NodeStatus.addresses': keyed('type'),
    'NodeStatus.conditions': keyed('type'),
    'PersistentVolumeClaimStatus.conditions': keyed('type'),
    'PersistentVolumeSpec.claimRef': { atomic: false },
    'PodSpec.containers': keyed('name'),
    'PodSpec.ephemeralContainers': keyed('name'),
    'PodSpec.hostAliases': keyed('ip'),
    'PodSpec.imagePullSecrets': keyed('name'),
    'PodSpec.initContainers': keyed('name'),
    'PodSpec.nodeSelector': atomic,
    'PodSpec.resourceClaims': keyedRetaining('name'),
    'PodSpec.schedulingGates': keyed('name'),
    'PodSpec.topologySpreadConstraints': keyed('topologyKey', 'whenUnsatisfiable'),
    'PodSpec.volumes': keyedRetaining('name'),
    'PodStatus.conditions': keyed('type'),
    'PodStatus.hostIPs': { listType: 'atomic', patchStrategy: merge, patchMergeKey: 'ip' },
    'PodStatus.podIPs': keyed('ip'),
    'PodStatus.resourceClaimStatuses': keyedRetaining('name'),
    'ReplicationControllerSpec.selector': atomic,
    'ReplicationControllerStatus.conditions': keyed('type'),
    'ResourceRequirements.claims': keyedForApply('name'),
    'ResourceStatus.resources': keyedForApply('resourceID'),
    'ServiceAccount.secrets': keyed('name'),
    'ServiceSpec.ports': keyed('port', 'protocol'),
    'ServiceSpec.selector': atomic,
    'ServiceStatus.conditions': keyed('type'),
  },
  [APPS]: {
    'DaemonSetStatus.conditions': keyed('type'),
    'DeploymentSpec.strategy': { patchStrategy: ['retainKeys'] },
    'DeploymentStatus.conditions': keyed('type'),
    'ReplicaSetStatus.conditions': keyed('type'),
    'StatefulSetStatus.conditions': keyed('type'),
  },
  'io.k8s.api.admissionregistration.v1': {
    'MutatingWebhook.matchConditions': keyed('name'),
    'MutatingWebhookConfiguration.webhooks': keyed('name'),
    'MutatingAdmissionPolicySpec.matchConditions': keyed('name'),
    'ValidatingAdmissionPolicySpec.matchConditions': keyed('name'),
    'ValidatingAdmissionPolicySpec.variables': keyed('name'),
    'ValidatingAdmissionPolicyBindingSpec.validationActions': set,
    'ValidatingAdmissionPolicyStatus.conditions': keyedForApply('type'),
    'ValidatingWebhook.matchConditions': keyed('name'),
    'ValidatingWebhookConfiguration.webhooks': keyed('name'),
  },
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1': {
    'CustomResourceDefinitionStatus.conditions': keyedForApply('type'),
    'JSONSchemaProps.x-kubernetes-validations': keyed('rule'),
  },
  'io.k8s.api.autoscaling.v2': { 'HorizontalPodAutoscalerStatus.conditions': keyed('type') },
  'io.k8s.api.batch.v1': {
    'JobStatus.conditions': { listType: 'atomic', patchStrategy: merge, patchMergeKey: 'type' },
    'PodFailurePolicyOnExitCodesRequirement.values': set,
    'UncountedTerminatedPods.failed': set,
    'UncountedTerminatedPods.succeeded': set,
  },
  'io.k8s.api.flowcontrol.v1': {
    'NonResourcePolicyRule.nonResourceURLs': set,
    'NonResourcePolicyRule.verbs': set,
    'ResourcePolicyRule.apiGroups': set,
    'ResourcePolicyRule.namespaces': set,
    'ResourcePolicyRule.resources': set,
    'ResourcePolicyRule.verbs': set,
    'FlowSchemaStatus.conditions': keyed('type'),
    'PriorityLevelConfigurationStatus.conditions': keyed('type'),
  },
  'io.k8s.api.node.v1': { 'Scheduling.nodeSelector': atomic },
  'io.k8s.api.policy.v1': {
    'PodDisruptionBudgetSpec.selector': { patchStrategy: ['replace'] },
    'PodDisruptionBudgetStatus.conditions': keyed('type'),
  },
  'io.k8s.api.resource.v1': {
    'AllocatedDeviceStatus.conditions': keyedForApply('type'),
    'ResourceClaimStatus.devices': keyedForApply('driver', 'device', 'pool', 'shareID'),
    'ResourceClaimStatus.reservedFor': keyed('uid'),
  },
  'io.k8s.api.storage.v1': {
    'CSIDriverSpec.volumeLifecycleModes': set,
    'CSINodeSpec.drivers': keyed('name'),
  },
  'io.k8s.api.certificates.v1': { 'CertificateSigningRequestStatus.conditions': keyedForApply('type') },
  'io.k8s.api.networking.v1': { 'ServiceCIDRStatus.conditions': keyed('type') },
  'io.k8s.api.discovery.v1': { 'Endpoint.addresses': set },
  'io.k8s.api.discovery.v1beta1': { 'Endpoint.addresses': set },
  'io.k8s.kube-aggregator.pkg.apis.apiregistration.v1': { 'APIServiceStatus.conditions': keyed('type') },
};

/** Structs that server-side apply owns and replaces as a whole, by package. */
const ATOMIC_TYPES: Readonly<Record<string, readonly string[]>> = {
  [META]: ['LabelSelector', 'OwnerReference'],
  [CORE]: [
    'ConfigMapKeySelector',
    'EndpointAddress',
    'EndpointPort',
    'FileKeySelector',
    'LocalObjectReference',
    'NodeSelector',
    'NodeSelectorTerm',
    'ObjectFieldSelector',
    'ObjectReference',
    'ResourceFieldSelector',
    'ScopeSelector',
    'SecretKeySelector',
    'SecretReference',
    'TopologySelectorTerm',
    'TypedLocalObjectReference',
  ],
  'io.k8s.api.admissionregistration.v1': [
    'MatchResources',
    'NamedRuleWithOperations',
    'ParamKind',
    'ParamRef',
    'Variable',
  ],
  'io.k8s.api.autoscaling.v1': ['CrossVersionObjectReference'],
  'io.k8s.api.networking.v1': ['ServiceBackendPort'],
  'io.k8s.api.discovery.v1': ['EndpointPort'],
  'io.k8s.api.rbac.v1': ['RoleRef', 'Subject'],
};

/** Defaults of key fields that an item omits. */
const KEY_DEFAULTS: Readonly<Record<string, Readonly<Record<string, JsonValue>>>> = {
  [`${CORE}.ContainerPort`]: { protocol: 'TCP' },
  [`${CORE}.ServicePort`]: { protocol: 'TCP' },
};

const NO_FACTS: FieldFacts = {};
const NO_DEFAULTS: Readonly<Record<string, JsonValue>> = {};

/** Merge rules of a field of the type `typeName`, for example `io.k8s.api.core.v1.PodSpec`. */
export function fieldFacts(typeName: string, field: string): FieldFacts {
  const [pkg, type] = splitTypeName(typeName);
  const facts = FIELD_FACTS[pkg];
  const key = `${type}.${field}`;
  return facts !== undefined && Object.hasOwn(facts, key) ? (facts[key] ?? NO_FACTS) : NO_FACTS;
}

export function isAtomicType(typeName: string): boolean {
  const [pkg, type] = splitTypeName(typeName);
  return ATOMIC_TYPES[pkg]?.includes(type) ?? false;
}

export function keyDefaults(typeName: string): Readonly<Record<string, JsonValue>> {
  return KEY_DEFAULTS[typeName] ?? NO_DEFAULTS;
}

/** Every `package.Type.field` and `package.Type` in this table, for the test that checks that they exist. */
export function mergeKeyFacts(): { readonly fields: readonly string[]; readonly types: readonly string[] } {
  const join = (table: Readonly<Record<string, readonly string[]>>): string[] =>
    Object.entries(table).flatMap(([pkg, names]) => names.map((name) => `${pkg}.${name}`));
  const fieldNames = Object.fromEntries(Object.entries(FIELD_FACTS).map(([pkg, facts]) => [pkg, Object.keys(facts)]));
  return { fields: join(fieldNames), types: join(ATOMIC_TYPES) };
}

function splitTypeName(typeName: string): [pkg: string, type: string] {
  const dot = typeName.lastIndexOf('.');
  return [typeName.slice(0, dot), typeName.slice(dot + 1)];
}
