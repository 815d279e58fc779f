/**
 * Types of machines, MachineSets, health checks, BareMetalHosts and host offers, with the fields that this cluster
 * uses.
 */
import type { NodeAddress, ObjectReference, Taint } from '../../../api/generated/core/v1.ts';
import type { LabelSelector } from '../../../api/generated/meta/v1.ts';
import type { KubeObject } from '../../../api/meta/object.ts';

export const MACHINE_GROUP = 'machine.openshift.io';
export const MACHINE_VERSION = 'v1beta1';
export const HOST_GROUP = 'metal3.io';
export const HOST_VERSION = 'v1alpha1';
export const OFFER_GROUP = 'machine.hyperedge.dev';
export const OFFER_VERSION = 'v1alpha1';
/** Namespace of machines and of hosts that offer themselves. */
export const MACHINE_NAMESPACE = 'openshift-machine-api';

export const MACHINE_FINALIZER = 'machine.machine.openshift.io';
export const HOST_FINALIZER = 'baremetalhost.metal3.io';
/** Node annotation: `namespace/name` of the Machine. */
export const MACHINE_ANNOTATION = 'machine.openshift.io/machine';
/** Machine annotation: the MachineSet deletes this machine first when it scales down. */
export const DELETE_ANNOTATION = 'machine.openshift.io/delete-machine';
/** Machine annotation: the machine's Node is not drained before the machine is deleted. */
export const EXCLUDE_DRAIN_ANNOTATION = 'machine.openshift.io/exclude-node-draining';
/** Machine annotation: `namespace/name` of the BareMetalHost that the machine has claimed. */
export const HOST_ANNOTATION = 'metal3.io/BareMetalHost';
export const ROLE_LABEL = 'machine.openshift.io/cluster-api-machine-role';
export const STATE_ANNOTATION = 'machine.openshift.io/instance-state';
/** BareMetalHost annotations: public keys and machine-id that the host has sent in its offer. */
export const OFFER_ANNOTATION = `${OFFER_GROUP}/offer-key`;
export const SEALING_ANNOTATION = `${OFFER_GROUP}/sealing-key`;
export const MACHINE_ID_ANNOTATION = `${OFFER_GROUP}/machine-id`;
/** BareMetalHost annotation: address from which the offer was sent; for IPv6 only the /64 prefix. */
export const SOURCE_ANNOTATION = `${OFFER_GROUP}/offered-from`;
/** BareMetalHost annotation: join credentials, encrypted for the host's sealing key. */
export const SEALED_ANNOTATION = `${OFFER_GROUP}/sealed-join`;
/** BareMetalHost annotation: last reported state of the host, `blank` or `joined`. */
export const REPORTED_ANNOTATION = `${OFFER_GROUP}/reported`;

export const PROVIDER_API_VERSION = 'hyperedge.dev/v1';
export const PROVIDER_KIND = 'BareMetalMachineProviderSpec';
export const MACHINE_ROLES = ['master', 'etcd', 'node'] as const;
export type MachineRole = (typeof MACHINE_ROLES)[number];

export const DELETE_POLICIES = ['Random', 'Newest', 'Oldest'] as const;

export interface ProviderSpec {
  apiVersion?: string;
  kind?: string;
  /** Selects the hosts that the machine may claim. Default: all hosts. */
  hostSelector?: LabelSelector;
  /** Roles of the host in the cluster. Default: node. */
  roles?: string[];
  /** Machine config pool of the Node, which is set as a label. Default: derived from the roles. */
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

/** Offer of a blank host. The client is not authenticated, but the offer is signed with the key of the host. */
export interface HostOffer extends KubeObject {
  spec?: {
    name?: string;
    machineID?: string;
    /** Public keys of the host: 32 bytes in base64url. The signing key is for Ed25519, the sealing key for X25519. */
    signingKey?: string;
    sealingKey?: string;
    /** State of the host. `blank`: it is in no cluster. `joined`: it runs as a node. */
    state?: string;
    hardware?: HostHardware;
    /** Ed25519 signature of `offerText` in base64url. */
    signature?: string;
  };
  status?: HostOfferStatus;
}

export interface HostOfferStatus {
  phase?: OfferPhase;
  host?: string;
  /** Sealed join token. Set while the phase is Claimed. */
  sealedJoin?: string;
  machine?: string;
  /** How the host must clean its data when it is released. */
  cleaning?: string;
}

export type OfferPhase = 'Waiting' | 'Claimed' | 'Joined' | 'Released';

/** Text that is signed in an offer. */
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

/** Sorts the keys of objects, because their order may differ between host and server. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value ?? null;
  return Object.entries(value)
    .filter(([, each]) => each !== undefined)
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([key, each]) => [key, sorted(each)]);
}
