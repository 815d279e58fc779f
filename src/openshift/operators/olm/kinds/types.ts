/** Types of operators.coreos.com with the fields that controllers use. Source: operator-framework/api. */
import type { DeploymentSpec } from '../../../../api/generated/apps/v1.ts';
import type {
  Affinity,
  EnvFromSource,
  EnvVar,
  ObjectReference,
  ResourceRequirements,
  Toleration,
  Volume,
  VolumeMount,
} from '../../../../api/generated/core/v1.ts';
import type { Condition, LabelSelector } from '../../../../api/generated/meta/v1.ts';
import type { PolicyRule } from '../../../../api/generated/rbac/v1.ts';
import type { KubeObject } from '../../../../api/meta/object.ts';

export const OLM_GROUP = 'operators.coreos.com';

export interface CatalogSource extends KubeObject {
  spec?: {
    sourceType?: string;
    priority?: number;
    configMap?: string;
    address?: string;
    image?: string;
    updateStrategy?: { registryPoll?: { interval?: string } };
    displayName?: string;
    publisher?: string;
  };
  status?: CatalogSourceStatus;
}

export interface CatalogSourceStatus {
  message?: string;
  reason?: string;
  configMapReference?: {
    name: string;
    namespace: string;
    uid?: string;
    resourceVersion?: string;
    lastUpdateTime?: string;
  };
  connectionState?: { address?: string; lastObservedState: string; lastConnect?: string };
  latestImageRegistryPoll?: string;
  conditions?: Condition[];
}

export interface SubscriptionConfig {
  nodeSelector?: Record<string, string>;
  tolerations?: Toleration[];
  resources?: ResourceRequirements;
  envFrom?: EnvFromSource[];
  env?: EnvVar[];
  volumes?: Volume[];
  volumeMounts?: VolumeMount[];
  affinity?: Affinity;
  annotations?: Record<string, string>;
}

export interface SubscriptionCondition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

export interface Subscription extends KubeObject {
  spec?: {
    source?: string;
    sourceNamespace?: string;
    name?: string;
    channel?: string;
    startingCSV?: string;
    installPlanApproval?: string;
    config?: SubscriptionConfig;
  };
  status?: SubscriptionStatus;
}

export interface SubscriptionStatus {
  currentCSV?: string;
  installedCSV?: string;
  installplan?: { apiVersion: string; kind: string; name: string; uuid: string };
  state?: string;
  installPlanGeneration?: number;
  installPlanRef?: ObjectReference;
  catalogHealth?: { catalogSourceRef: ObjectReference; healthy: boolean; lastUpdated?: string }[];
  conditions?: SubscriptionCondition[];
  lastUpdated?: string;
}

export interface InstallPlanStep {
  resolving: string;
  resource: {
    sourceName: string;
    sourceNamespace: string;
    group: string;
    version: string;
    kind: string;
    name: string;
    manifest?: string;
  };
  optional?: boolean;
  status: string;
}

export interface InstallPlanCondition {
  type: string;
  status: string;
  lastUpdateTime?: string;
  lastTransitionTime?: string;
  reason?: string;
  message?: string;
}

export interface InstallPlan extends KubeObject {
  spec?: {
    source?: string;
    sourceNamespace?: string;
    clusterServiceVersionNames?: string[];
    approval?: string;
    approved?: boolean;
    generation?: number;
  };
  status?: {
    phase?: string;
    conditions?: InstallPlanCondition[];
    catalogSources?: string[];
    plan?: InstallPlanStep[];
    attenuatedServiceAccountRef?: ObjectReference;
    startTime?: string;
    message?: string;
  };
}

export interface StrategyPermissions {
  serviceAccountName?: string;
  rules?: PolicyRule[];
}

export interface StrategyDeployment {
  name?: string;
  spec?: DeploymentSpec;
  label?: Record<string, string>;
}

export interface CrdDescription {
  name?: string;
  version?: string;
  kind?: string;
  displayName?: string;
  description?: string;
}

export interface ApiServiceDescription {
  name?: string;
  group?: string;
  version?: string;
  kind?: string;
  deploymentName?: string;
  containerPort?: number;
}

export interface WebhookDescription {
  generateName?: string;
  type?: string;
  deploymentName?: string;
  containerPort?: number;
  targetPort?: number | string;
  rules?: { scope?: string }[];
  failurePolicy?: string;
  matchPolicy?: string;
  objectSelector?: LabelSelector;
  sideEffects?: string;
  timeoutSeconds?: number;
  admissionReviewVersions?: string[];
  reinvocationPolicy?: string;
  webhookPath?: string;
  conversionCRDs?: string[];
}

export interface InstallMode {
  type?: string;
  supported?: boolean;
}

export interface RequirementStatus {
  group: string;
  version: string;
  kind: string;
  name: string;
  status: string;
  message: string;
  uuid?: string;
  dependents?: { group: string; version: string; kind: string; status: string; message?: string }[];
}

export interface ClusterServiceVersionSpec {
  install?: {
    strategy?: string;
    spec?: {
      deployments?: StrategyDeployment[];
      permissions?: StrategyPermissions[];
      clusterPermissions?: StrategyPermissions[];
    };
  };
  version?: string;
  customresourcedefinitions?: { owned?: CrdDescription[]; required?: CrdDescription[] };
  apiservicedefinitions?: { owned?: ApiServiceDescription[]; required?: ApiServiceDescription[] };
  webhookdefinitions?: WebhookDescription[];
  nativeAPIs?: { group?: string; version?: string; kind?: string }[];
  minKubeVersion?: string;
  displayName?: string;
  provider?: { name?: string };
  installModes?: InstallMode[];
  replaces?: string;
  skips?: string[];
  cleanup?: { enabled?: boolean };
}

export interface ClusterServiceVersionStatus {
  phase?: string;
  message?: string;
  reason?: string;
  lastUpdateTime?: string;
  lastTransitionTime?: string;
  conditions?: {
    phase: string;
    message?: string;
    reason?: string;
    lastUpdateTime?: string;
    lastTransitionTime?: string;
  }[];
  requirementStatus?: RequirementStatus[];
  certsLastUpdated?: string;
  certsRotateAt?: string;
}

export interface ClusterServiceVersion extends KubeObject {
  spec?: ClusterServiceVersionSpec;
  status?: ClusterServiceVersionStatus;
}

export interface OperatorGroup extends KubeObject {
  spec?: {
    selector?: LabelSelector;
    targetNamespaces?: string[];
    serviceAccountName?: string;
    staticProvidedAPIs?: boolean;
    upgradeStrategy?: string;
  };
  status?: {
    namespaces?: string[];
    serviceAccountRef?: ObjectReference;
    lastUpdated?: string;
    conditions?: Condition[];
  };
}

export interface Operator extends KubeObject {
  status?: {
    components?: {
      labelSelector?: LabelSelector;
      refs?: { apiVersion: string; kind: string; name: string; namespace?: string }[];
    };
  };
}

export interface OperatorCondition extends KubeObject {
  spec?: { conditions?: Condition[]; serviceAccounts?: string[]; deployments?: string[]; overrides?: Condition[] };
  status?: { conditions?: Condition[] };
}

export interface PackageManifestStatus {
  catalogSource: string;
  catalogSourceDisplayName: string;
  catalogSourcePublisher: string;
  catalogSourceNamespace: string;
  provider: object;
  packageName: string;
  channels: object[];
  defaultChannel: string;
}

export interface PackageManifest extends KubeObject {
  status?: PackageManifestStatus;
}

/** Package of a catalog, from which the API server computes PackageManifests. Only controllers write it. */
export interface CatalogPackage extends KubeObject {
  labels?: Record<string, string>;
  priority?: number;
  manifest?: PackageManifestStatus;
}
