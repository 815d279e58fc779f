/** Types of dynamic resource allocation, with the fields that are used here. Source: k8s.io/api/resource/v1. */
import type { NodeSelector } from '../generated/core/v1.ts';
import type { Condition } from '../generated/meta/v1.ts';
import type { KubeObject } from '../meta/object.ts';

export interface DeviceSelector {
  cel?: { expression?: string };
}

export interface DeviceToleration {
  key?: string;
  operator?: string;
  value?: string;
  effect?: string;
}

interface OneRequest {
  deviceClassName?: string;
  adminAccess?: boolean;
  selectors?: DeviceSelector[];
  allocationMode?: string;
  count?: number;
  tolerations?: DeviceToleration[];
  capacity?: { requests?: Record<string, Amount> };
}

export type ExactRequest = OneRequest;

export interface SubRequest extends OneRequest {
  name?: string;
}

export interface DeviceRequest {
  name?: string;
  exactly?: ExactRequest;
  firstAvailable?: SubRequest[];
}

export interface DeviceConfiguration {
  requests?: string[];
  opaque?: { driver?: string; parameters?: unknown };
}

export interface AllocatedConfiguration extends DeviceConfiguration {
  source?: string;
}

export interface DeviceConstraint {
  requests?: string[];
  matchAttribute?: string;
  distinctAttribute?: string;
}

export interface ClaimSpec {
  devices?: { requests?: DeviceRequest[]; constraints?: DeviceConstraint[]; config?: DeviceConfiguration[] };
}

export interface AllocatedDevice {
  request?: string;
  driver?: string;
  pool?: string;
  device?: string;
  shareID?: string;
  adminAccess?: boolean;
}

/** Device that was allocated for a request. */
export interface AllocationResult extends AllocatedDevice {
  tolerations?: DeviceToleration[];
  /** Capacity that this allocation uses. Set if several claims share the device. */
  consumedCapacity?: Record<string, Amount>;
  bindingConditions?: string[];
  bindingFailureConditions?: string[];
}

export interface DeviceStatus extends AllocatedDevice {
  conditions?: Condition[];
  data?: unknown;
  networkData?: { interfaceName?: string; ips?: string[]; hardwareAddress?: string };
}

export interface ResourceClaim extends KubeObject {
  spec?: ClaimSpec;
  status?: {
    allocation?: {
      devices?: { results?: AllocationResult[]; config?: AllocatedConfiguration[] };
      nodeSelector?: NodeSelector;
      allocationTimestamp?: string;
    };
    reservedFor?: { apiGroup?: string; resource?: string; name?: string; uid?: string }[];
    devices?: DeviceStatus[];
  };
}

export interface ResourceClaimTemplate extends KubeObject {
  spec?: { metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> }; spec?: ClaimSpec };
}

export interface DeviceClass extends KubeObject {
  spec?: { selectors?: DeviceSelector[]; config?: DeviceConfiguration[]; extendedResourceName?: string };
}

interface NodeChoice {
  nodeName?: string;
  nodeSelector?: NodeSelector;
  allNodes?: boolean;
}

export interface DeviceTaint {
  key?: string;
  value?: string;
  effect?: string;
  timeAdded?: string;
}

/** Amounts of a capacity that a claim can request. Quantities are in JSON form. */
export interface RequestPolicy {
  default?: Amount;
  validValues?: Amount[];
  validRange?: { min?: Amount; max?: Amount; step?: Amount };
}

export type Amount = string | number;

export interface DeviceCapacity {
  value?: Amount;
  requestPolicy?: RequestPolicy;
}

export interface Device extends NodeChoice {
  name?: string;
  attributes?: Record<string, Record<string, unknown>>;
  capacity?: Record<string, DeviceCapacity>;
  consumesCounters?: { counterSet?: string; counters?: Record<string, unknown> }[];
  taints?: DeviceTaint[];
  bindsToNode?: boolean;
  bindingConditions?: string[];
  bindingFailureConditions?: string[];
  allowMultipleAllocations?: boolean;
  nodeAllocatableResourceMappings?: Record<string, unknown>;
}

export interface DeviceTaintRule extends KubeObject {
  spec?: { deviceSelector?: { driver?: string; pool?: string; device?: string }; taint?: DeviceTaint };
  status?: { conditions?: Condition[] };
}

export interface ResourceSlice extends KubeObject {
  spec?: NodeChoice & {
    driver?: string;
    pool?: { name?: string; generation?: number; resourceSliceCount?: number };
    devices?: Device[];
    perDeviceNodeSelection?: boolean;
    sharedCounters?: { name?: string; counters?: Record<string, unknown> }[];
  };
}
