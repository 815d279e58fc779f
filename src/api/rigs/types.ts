/** Rigs and claims on them, as far as rules name their fields. */
import type { Condition, LabelSelector } from 'kubernetes-types/meta/v1';
import type { KubeObject } from '../meta/object.ts';

export const RIG_GROUP = 'rig.hyperedge.dev';
export const RIG_VERSION = 'v1alpha1';
/** Fixtures are resources of nodes below it. */
export const FIXTURE_PREFIX = `${RIG_GROUP}/`;
/** On a pod: the claim of its namespace whose rig it uses. */
export const CLAIM_ANNOTATION = `${RIG_GROUP}/claim`;
/** Of scheduling gates, before the name of the claim. */
export const GATE_PREFIX = `${RIG_GROUP}/`;
/** Holds a deleted claim until its pods have ended. */
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
