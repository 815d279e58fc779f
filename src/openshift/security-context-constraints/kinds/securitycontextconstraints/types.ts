/** Types of security.openshift.io/v1. Source: openshift/api security/v1 of release 4.10. */
import type { SELinuxOptions } from '../../../../api/generated/core/v1.ts';
import type { KubeObject } from '../../../../api/meta/object.ts';

/** Range of IDs that includes `min` and `max`. */
export interface IdRange {
  min?: number;
  max?: number;
}

export interface GroupStrategy {
  type?: string;
  ranges?: IdRange[];
}

export interface UserStrategy {
  type?: string;
  uid?: number;
  uidRangeMin?: number;
  uidRangeMax?: number;
}

export interface SelinuxStrategy {
  type?: string;
  seLinuxOptions?: SELinuxOptions;
}

export interface SecurityContextConstraints extends KubeObject {
  priority?: number;
  allowPrivilegedContainer?: boolean;
  defaultAddCapabilities?: string[];
  requiredDropCapabilities?: string[];
  allowedCapabilities?: string[];
  allowHostDirVolumePlugin?: boolean;
  volumes?: string[];
  allowedFlexVolumes?: { driver?: string }[];
  allowHostNetwork?: boolean;
  allowHostPorts?: boolean;
  allowHostPID?: boolean;
  allowHostIPC?: boolean;
  defaultAllowPrivilegeEscalation?: boolean;
  allowPrivilegeEscalation?: boolean;
  seLinuxContext?: SelinuxStrategy;
  runAsUser?: UserStrategy;
  supplementalGroups?: GroupStrategy;
  fsGroup?: GroupStrategy;
  readOnlyRootFilesystem?: boolean;
  users?: string[];
  groups?: string[];
  seccompProfiles?: string[];
  allowedUnsafeSysctls?: string[];
  forbiddenSysctls?: string[];
}
