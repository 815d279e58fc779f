/** Types of rigs and rig claims, with the fields that are used here. */
import type { Condition, LabelSelector } from '../../api/generated/meta/v1.ts';
import type { KubeObject } from '../../api/meta/object.ts';

export const RIG_GROUP = 'rig.hyperedge.dev';
export const RIG_VERSION = 'v1alpha1';
/** Prefix of the extended resources for fixtures. */
export const FIXTURE_PREFIX = `${RIG_GROUP}/`;
/** Pod annotation with the name of a rig claim in the pod's namespace. The pod uses the rig of this claim. */
export const CLAIM_ANNOTATION = `${RIG_GROUP}/claim`;
/** Prefix of scheduling gates. The name of the claim follows the prefix. */
export const GATE_PREFIX = `${RIG_GROUP}/`;
/** Finalizer that keeps a deleted claim until its pods have terminated. */
export const RELEASE_FINALIZER = `${RIG_GROUP}/release`;

export const DEFAULT_LEASE = '1h';
export const POWER_ACTIONS = ['on', 'off', 'cycle'] as const;
export type PowerAction = (typeof POWER_ACTIONS)[number];

export interface RigFixture {
  name?: string;
  fixture?: string;
  role?: string;
}

export interface RigPowerAction {
  command?: string;
  fixture?: string;
  channel?: number;
}

export const USE_ENDS = ['Released', 'Expired', 'Deleted'] as const;
/** Bounds of `status.history`. */
export const HISTORY_LIMITS = { entries: 50, characters: 256 } as const;

/** One use of a rig. It is open while `endedAt` is unset. */
export interface RigUse {
  namespace?: string;
  name?: string;
  /** UID of the claim. */
  uid?: string;
  requester?: string;
  /** Node of the rig when the use began. Undefined in records of releases that did not store the node. */
  node?: string;
  grantedAt?: string;
  endedAt?: string;
  /** Why the use ended. `Deleted`: the claim disappeared before the controller observed its release. */
  reason?: (typeof USE_ENDS)[number];
}

export interface Rig extends KubeObject {
  spec?: {
    node?: string;
    fixtures?: RigFixture[];
    maxLease?: string;
    console?: { fixture?: string; baudRate?: number };
    power?: Partial<Record<PowerAction, RigPowerAction>>;
  };
  status?: {
    node?: string;
    holder?: { namespace?: string; name?: string; requester?: string };
    queue?: number;
    expiresAt?: string;
    /** Newest first. */
    history?: RigUse[];
  };
}

export type ClaimPhase = 'Queued' | 'Granted' | 'Released' | 'Expired';

export interface RigClaim extends KubeObject {
  spec?: { rigName?: string; selector?: LabelSelector; duration?: string };
  status?: {
    phase?: ClaimPhase;
    requester?: string;
    position?: number;
    rig?: string;
    grantedAt?: string;
    expiresAt?: string;
    conditions?: Condition[];
  };
}
