/** State of the daemon on disk. It is saved in the same transaction as the files that it describes. */
import type { DisruptionPolicies, MachineConfigSpec } from '../core/ignition/index.ts';

/** Config on the host. If `name` is unset, the host has no config. */
export interface AppliedConfig {
  readonly name?: string;
  readonly spec?: MachineConfigSpec;
}

export interface Note {
  /** Config whose files are on the host. */
  readonly applied: AppliedConfig;
  /** Present while `applied` is on trial. If the Node does not become Ready, the host returns to `from`. */
  readonly trial?: {
    readonly from: AppliedConfig;
    /** Boot ID of the kernel at the time of the change. */
    readonly bootId: string;
    /** Disruption policies at the time of the change. They are saved so that a rollback needs no API server. */
    readonly policies: DisruptionPolicies;
    /** Config before the change, if it was itself on trial and therefore differs from `from`. */
    readonly before?: AppliedConfig;
    /** Addresses of the Node before the change. The host must keep them. */
    readonly addresses?: readonly string[];
    /**
     * Whether the change may disconnect the host later. The Node must then stay Ready for a while before the trial
     * ends.
     */
    readonly mayCutOff?: boolean;
    /**
     * Whether everything except the reboot is done. If unset after a boot, a power failure may have interrupted the
     * change.
     */
    readonly readyToBoot?: boolean;
    /**
     * Whether all steps are done and the Node has become Ready. The trial continues, because the host may still become
     * disconnected.
     */
    readonly settling?: boolean;
  };
  /** Config that this host has rolled back. It is not tried again until the Node desires another config. */
  readonly failed?: { readonly name: string; readonly reason: string };
}

export type ConfigTrial = NonNullable<Note['trial']>;

export const NO_NOTE: Note = { applied: {} };

export const noteOf = (value: unknown): Note => (value === undefined || value === null ? NO_NOTE : (value as Note));
