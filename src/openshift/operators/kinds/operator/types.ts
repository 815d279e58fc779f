/** Types of operator.openshift.io with the fields that this cluster uses. */
import type { KubeObject } from '../../../../api/meta/object.ts';

export interface OperatorCondition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  lastTransitionTime?: string;
  reason?: string;
  message?: string;
}

/** Progress of a static pod's revisions on one master. */
export interface NodeStatus {
  nodeName: string;
  currentRevision?: number;
  targetRevision?: number;
  lastFailedRevision?: number;
  lastFailedTime?: string;
  lastFailedReason?: string;
  lastFailedCount?: number;
  lastFallbackCount?: number;
  lastFailedRevisionErrors?: string[];
}

export interface OperatorSpec {
  managementState?: string;
  logLevel?: string;
  operatorLogLevel?: string;
  unsupportedConfigOverrides?: unknown;
  observedConfig?: unknown;
}

export interface OperatorObject extends KubeObject {
  spec?: OperatorSpec;
  status?: { observedGeneration?: number; conditions?: OperatorCondition[] };
}

export interface StaticPodOperator extends OperatorObject {
  spec?: OperatorSpec & {
    forceRedeploymentReason?: string;
    failedRevisionLimit?: number;
    succeededRevisionLimit?: number;
    useMoreSecureServiceCA?: boolean;
  };
  status?: {
    observedGeneration?: number;
    conditions?: OperatorCondition[];
    version?: string;
    readyReplicas?: number;
    latestAvailableRevision?: number;
    latestAvailableRevisionReason?: string;
    nodeStatuses?: NodeStatus[];
  };
}

export interface DisruptionAction {
  type?: string;
  reload?: { serviceName?: string };
  restart?: { serviceName?: string };
}

export interface DisruptionPolicies {
  files?: { path?: string; actions?: DisruptionAction[] }[];
  units?: { name?: string; actions?: DisruptionAction[] }[];
  sshkey?: { actions?: DisruptionAction[] };
}

export interface MachineConfiguration extends OperatorObject {
  spec?: StaticPodOperator['spec'] & { nodeDisruptionPolicy?: DisruptionPolicies };
  status?: OperatorObject['status'] & { nodeDisruptionPolicyStatus?: { clusterPolicies?: DisruptionPolicies } };
}
