/** State of the daemon on disk, saved together with the files that it describes. */
import type { DisruptionPolicies, MachineConfigSpec } from '../core/ignition/index.ts';

/** Config on the host. Without a name the host has no config. */
export interface AppliedConfig {
  readonly name?: string;
  readonly spec?: MachineConfigSpec;
}

export interface Note {
  /** Config whose files are on the host. */
  readonly applied: AppliedConfig;
  /** Present while `applied` is on trial. The host returns to `from` when it does not become Ready. */
  readonly trial?: {
    readonly from: AppliedConfig;
    /** Boot ID at the time of the change. */
    readonly bootId: string;
    /** Policies at the time of the change, so that a rollback needs no API server. */
    readonly policies: DisruptionPolicies;
    /** Config before the change, if it was itself on trial and differs from `from`. */
    readonly before?: AppliedConfig;
    /** Node addresses before the change, which the host must keep. */
    readonly addresses?: readonly string[];
    /** Whether the change may disconnect the host later. It must then stay Ready for a while before the trial ends. */
    readonly mayCutOff?: boolean;
    /** Whether the boot loader has the new kernel arguments. Absent: a power failure may have come before the write. */
    readonly readyToBoot?: boolean;
    /** Whether the steps are done and the Node has been Ready since. It may still become disconnected. */
    readonly settling?: boolean;
  };
  /** Config that this host has rolled back. It is not retried until another config is desired. */
  readonly failed?: { readonly name: string; readonly reason: string };
}

export type ConfigTrial = NonNullable<Note['trial']>;

export const NO_NOTE: Note = { applied: {} };

export const noteOf = (value: unknown): Note => (value === undefined || value === null ? NO_NOTE : (value as Note));
