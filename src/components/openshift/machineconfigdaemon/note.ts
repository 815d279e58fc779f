/** What the daemon remembers on disk, together with the files that it speaks of. */
import type { JsonValue } from '../../../api/meta/object.ts';
import type { DisruptionPolicies, MachineConfigSpec } from '../../../core/ignition/index.ts';

/** Undefined names: the host has no config. */
export interface AppliedConfig {
  readonly name?: string;
  readonly spec?: MachineConfigSpec;
}

export interface Note {
  /** Whose files stand on the host. */
  readonly applied: AppliedConfig;
  /** Present: `applied` is on trial, and the host goes back to this one when it does not become Ready. */
  readonly trial?: {
    readonly from: AppliedConfig;
    /** Of the boot in which the files were changed. */
    readonly bootId: string;
    /** Of the time of the change: a host goes back without the API server. */
    readonly policies: DisruptionPolicies;
    /** What stood on the host just before the change, where that was on trial itself and is not `from`. */
    readonly before?: AppliedConfig;
    /** Addresses of the Node that the host had before the change: it must not lose them. */
    readonly addresses?: readonly string[];
    /** The change may cut the host off later on: it must stay Ready for a while before the trial ends. */
    readonly mayCutOff?: boolean;
    /** The next boot has its kernel arguments. Absent: a power cut may have come before the boot loader knew them. */
    readonly readyToBoot?: boolean;
    /** Its steps are done and the Node was Ready after them; it may be cut off still. */
    readonly settling?: boolean;
  };
  /** A config that this host has gone back from; it is not tried again until another is desired. */
  readonly failed?: { readonly name: string; readonly reason: string };
}

export type ConfigTrial = NonNullable<Note['trial']>;

export const NO_NOTE: Note = { applied: {} };

export const noteOf = (value: JsonValue | undefined): Note =>
  value === undefined || value === null ? NO_NOTE : (value as unknown as Note);

export const jsonOf = (note: Note): JsonValue => note as unknown as JsonValue;
