/** Types of pod security policies. Source: k8s.io/api/policy/v1beta1 of the last release with this kind. */
import type { ObjectMeta } from '../../../../api/meta/object.ts';

export interface Strategy {
  rule?: string;
  ranges?: { min?: number; max?: number }[];
}

export interface PolicySpec {
  privileged?: boolean;
  readOnlyRootFilesystem?: boolean;
  defaultAddCapabilities?: string[];
  requiredDropCapabilities?: string[];
  allowedCapabilities?: string[];
  volumes?: string[];
  seLinux?: Strategy;
  runAsUser?: Strategy;
  runAsGroup?: Strategy;
  supplementalGroups?: Strategy;
  fsGroup?: Strategy;
  defaultAllowPrivilegeEscalation?: boolean;
  allowPrivilegeEscalation?: boolean;
  allowedHostPaths?: { pathPrefix?: string; readOnly?: boolean }[];
  allowedFlexVolumes?: { driver?: string }[];
  allowedCSIDrivers?: { name?: string }[];
  allowedUnsafeSysctls?: string[];
  forbiddenSysctls?: string[];
  allowedProcMountTypes?: string[];
  runtimeClass?: { allowedRuntimeClassNames?: string[]; defaultRuntimeClassName?: string };
}

export interface PodSecurityPolicy {
  apiVersion?: string;
  kind?: string;
  metadata?: ObjectMeta;
  spec?: PolicySpec;
}
