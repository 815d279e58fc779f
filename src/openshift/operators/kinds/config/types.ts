/** Objects of config.openshift.io that controllers write. Source: openshift/api config/v1 of release 4.10. */
import type { KubeObject } from '../../../../api/meta/object.ts';

export type ConditionStatus = 'True' | 'False' | 'Unknown';

export interface OperatorCondition {
  readonly type: string;
  readonly status: ConditionStatus;
  readonly lastTransitionTime: string;
  readonly reason?: string;
  readonly message?: string;
}

export interface OperandVersion {
  readonly name: string;
  readonly version: string;
}

export interface RelatedObject {
  readonly group: string;
  readonly resource: string;
  readonly namespace?: string;
  readonly name: string;
}

export interface ClusterOperator extends KubeObject {
  spec?: object;
  status?: {
    conditions?: readonly OperatorCondition[];
    versions?: readonly OperandVersion[];
    relatedObjects?: readonly RelatedObject[];
  };
}

export interface SchedulerConfig extends KubeObject {
  spec?: { mastersSchedulable?: boolean };
}

export interface Release {
  readonly version: string;
  readonly image: string;
  readonly url?: string;
  readonly channels?: readonly string[];
}

export interface UpdateHistory {
  readonly state: 'Completed' | 'Partial';
  readonly startedTime: string;
  /** Null or absent while the update is in progress. */
  readonly completionTime?: string | null;
  readonly version: string;
  readonly image: string;
  readonly verified: boolean;
  readonly acceptedRisks?: string;
}

export interface ClusterVersionStatus {
  desired: Release;
  history: readonly UpdateHistory[];
  observedGeneration: number;
  versionHash: string;
  conditions: readonly OperatorCondition[];
  /** Always null, as in OpenShift without an update service. */
  availableUpdates: readonly Release[] | null;
}

export interface ClusterVersion extends KubeObject {
  spec?: {
    clusterID: string;
    channel?: string;
    upstream?: string;
    desiredUpdate?: { readonly version?: string; readonly image?: string; readonly force?: boolean };
  };
  status?: Partial<ClusterVersionStatus>;
}
