/** Machines, their sets and health checks, hosts and offers of hosts, as far as rules name their fields. */
import type { NodeAddress, ObjectReference, Taint } from 'kubernetes-types/core/v1';
import type { LabelSelector } from 'kubernetes-types/meta/v1';
import type { KubeObject } from '../meta/object.ts';

export const MACHINE_GROUP = 'machine.openshift.io';
export const MACHINE_VERSION = 'v1beta1';
export const HOST_GROUP = 'metal3.io';
export const HOST_VERSION = 'v1alpha1';
export const OFFER_GROUP = 'machine.hyperedge.dev';
export const OFFER_VERSION = 'v1alpha1';
/** Where hosts that offer themselves appear, and machines are looked for. */
export const MACHINE_NAMESPACE = 'openshift-machine-api';

export const MACHINE_FINALIZER = 'machine.machine.openshift.io';
export const HOST_FINALIZER = 'baremetalhost.metal3.io';
/** On a Node: `namespace/name` of its Machine. */
export const MACHINE_ANNOTATION = 'machine.openshift.io/machine';
/** On a Machine: deleted first when its set scales down. */
export const DELETE_ANNOTATION = 'machine.openshift.io/delete-machine';
/** On a Machine: its Node is not drained. */
export const EXCLUDE_DRAIN_ANNOTATION = 'machine.openshift.io/exclude-node-draining';
/** On a Machine: `namespace/name` of its BareMetalHost. */
export const HOST_ANNOTATION = 'metal3.io/BareMetalHost';
export const ROLE_LABEL = 'machine.openshift.io/cluster-api-machine-role';
export const STATE_ANNOTATION = 'machine.openshift.io/instance-state';
/** On a BareMetalHost: the keys and the machine-id of the host that has offered itself. */
export const OFFER_ANNOTATION = `${OFFER_GROUP}/offer-key`;
export const SEALING_ANNOTATION = `${OFFER_GROUP}/sealing-key`;
export const MACHINE_ID_ANNOTATION = `${OFFER_GROUP}/machine-id`;
/** On a BareMetalHost: the address that offered it, of IPv6 its /64. */
export const SOURCE_ANNOTATION = `${OFFER_GROUP}/offered-from`;
/** On a BareMetalHost: what the host joins with, encrypted for its sealing key. */
export const SEALED_ANNOTATION = `${OFFER_GROUP}/sealed-join`;
/** On a BareMetalHost: what the host reported last, `blank` or `joined`. */
export const REPORTED_ANNOTATION = `${OFFER_GROUP}/reported`;

export const PROVIDER_API_VERSION = 'hyperedge.dev/v1';
export const PROVIDER_KIND = 'BareMetalMachineProviderSpec';
export const MACHINE_ROLES = ['master', 'etcd', 'node'] as const;
export type MachineRole = (typeof MACHINE_ROLES)[number];

export const DELETE_POLICIES = ['Random', 'Newest', 'Oldest'] as const;

/** `spec.providerSpec.value` of a Machine. */
export interface ProviderSpec {
  apiVersion?: string;
  kind?: string;
  /** Hosts that the machine may claim; default: every one. */
  hostSelector?: LabelSelector;
  /** Default: node. */
  roles?: string[];
  /** Pool of machine configuration, a label of the Node; default by the roles. */
  pool?: string;
}

export interface LifecycleHook {
  name?: string;
  owner?: string;
}

export interface MachineCondition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  severity?: string;
  lastTransitionTime?: string;
  reason?: string;
  message?: string;
}

export interface MachineSpec {
  metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> };
  lifecycleHooks?: { preDrain?: LifecycleHook[]; preTerminate?: LifecycleHook[] };
  taints?: Taint[];
  providerSpec?: { value?: ProviderSpec };
  providerID?: string;
}

export type MachinePhase = 'Provisioning' | 'Provisioned' | 'Running' | 'Deleting' | 'Failed';

export interface MachineStatus {
  nodeRef?: ObjectReference;
  lastUpdated?: string;
  errorReason?: string;
  errorMessage?: string;
  providerStatus?: object;
  addresses?: NodeAddress[];
  lastOperation?: { description?: string; lastUpdated?: string; state?: string; type?: string };
  phase?: MachinePhase;
  conditions?: MachineCondition[];
}

export interface Machine extends KubeObject {
  spec?: MachineSpec;
  status?: MachineStatus;
}

export interface MachineSet extends KubeObject {
  spec?: {
    replicas?: number;
    minReadySeconds?: number;
    deletePolicy?: string;
    selector?: LabelSelector;
    template?: {
      metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> };
      spec?: MachineSpec;
    };
  };
  status?: MachineSetStatus;
}

export interface MachineSetStatus {
  replicas?: number;
  fullyLabeledReplicas?: number;
  readyReplicas?: number;
  availableReplicas?: number;
  observedGeneration?: number;
  errorReason?: string;
  errorMessage?: string;
}

export interface UnhealthyCondition {
  type?: string;
  status?: string;
  timeout?: string;
}

export interface MachineHealthCheck extends KubeObject {
  spec?: {
    selector?: LabelSelector;
    unhealthyConditions?: UnhealthyCondition[];
    maxUnhealthy?: number | string;
    nodeStartupTimeout?: string;
    remediationTemplate?: ObjectReference;
  };
  status?: MachineHealthCheckStatus;
}

export interface MachineHealthCheckStatus {
  expectedMachines?: number;
  currentHealthy?: number;
  remediationsAllowed?: number;
  conditions?: MachineCondition[];
}

export interface HostHardware {
  hostname?: string;
  systemVendor?: { manufacturer?: string; productName?: string; serialNumber?: string };
  ramMebibytes?: number;
  cpu?: { arch?: string; model?: string; clockMegahertz?: number; count?: number; flags?: string[] };
  nics?: { name?: string; model?: string; mac?: string; ip?: string; speedGbps?: number }[];
  storage?: { name?: string; type?: string; sizeBytes?: number; model?: string; serialNumber?: string }[];
  firmware?: { bios?: { date?: string; vendor?: string; version?: string } };
}

export const HOST_STATES = [
  '',
  'unmanaged',
  'registering',
  'inspecting',
  'available',
  'provisioning',
  'provisioned',
  'externally provisioned',
  'deprovisioning',
  'deleting',
] as const;
export type HostState = (typeof HOST_STATES)[number];

export interface BareMetalHost extends KubeObject {
  spec?: {
    online?: boolean;
    bmc?: { address?: string; credentialsName?: string; disableCertificateVerification?: boolean };
    bootMACAddress?: string;
    consumerRef?: ObjectReference;
    description?: string;
    externallyProvisioned?: boolean;
    hardwareProfile?: string;
    taints?: Taint[];
    automatedCleaningMode?: string;
  };
  status?: HostStatus;
}

export interface HostStatus {
  operationalStatus?: string;
  errorType?: string;
  errorMessage?: string;
  errorCount?: number;
  lastUpdated?: string;
  hardwareProfile?: string;
  hardware?: HostHardware;
  provisioning?: { state?: HostState; ID?: string };
  goodCredentials?: { credentials?: { name?: string; namespace?: string }; credentialsVersion?: string };
  poweredOn?: boolean;
}

/** What a blank host sends, without credentials; signed with its own key. */
export interface HostOffer extends KubeObject {
  spec?: {
    name?: string;
    machineID?: string;
    /** Ed25519 and X25519 public keys, base64url of their 32 bytes. */
    signingKey?: string;
    sealingKey?: string;
    /** `blank`: belongs to no cluster; `joined`: runs as a node. */
    state?: string;
    hardware?: HostHardware;
    /** Ed25519, base64url, of `offerText`. */
    signature?: string;
  };
  status?: HostOfferStatus;
}

export interface HostOfferStatus {
  phase?: OfferPhase;
  host?: string;
  /** Present while the phase is Claimed. */
  sealedJoin?: string;
  machine?: string;
  /** Of the host: what happens to its data when it is released. */
  cleaning?: string;
}

export type OfferPhase = 'Waiting' | 'Claimed' | 'Joined' | 'Released';

/** What the signature of an offer covers. */
export function offerText({
  name,
  machineID,
  signingKey,
  sealingKey,
  state,
  hardware,
}: HostOffer['spec'] & object): string {
  return JSON.stringify(['hostoffer/v1', name, machineID, signingKey, sealingKey, state, sorted(hardware)]);
}

/** Independent of the order of keys, which neither side keeps. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value ?? null;
  return Object.entries(value)
    .filter(([, each]) => each !== undefined)
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([key, each]) => [key, sorted(each)]);
}
