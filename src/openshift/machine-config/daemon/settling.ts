/**
 * Observes whether the Node stays Ready with a new config for long enough. Until then, the daemon can still roll back.
 */
import { messageOf } from '../../../base/errors.ts';
import type { MachineConfigDaemonOptions } from './deps.ts';
import type { ConfigTrial } from './host-record.ts';
import { awaitSettled } from './trial.ts';

export interface Settling {
  /**
   * Result of the observation; undefined until it is known. `failed`: reason for a rollback, undefined if there is
   * none.
   */
  readonly outcome: { readonly failed: string | undefined } | undefined;
  stop(): void;
}

/** Starts the observation. `ended` is called once when the outcome is known, unless `stop` is called before. */
export function watchSettling(options: MachineConfigDaemonOptions, trial: ConfigTrial, ended: () => void): Settling {
  const stopping = new AbortController();
  const { signal } = stopping;
  const state: { outcome: Settling['outcome'] } = { outcome: undefined };
  const end = (failed: string | undefined): void => {
    if (signal.aborted) return;
    state.outcome = { failed };
    ended();
  };
  awaitSettled(options, { addresses: trial.addresses ?? [], signal }).then(
    () => end(undefined),
    (error: unknown) => end(messageOf(error)),
  );
  return {
    get outcome() {
      return state.outcome;
    },
    stop: () => stopping.abort(),
  };
}
