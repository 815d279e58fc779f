/** Watches a host with a new config until it has stayed Ready for long enough. The old config is kept until then. */
import { messageOf } from '../../../base/errors.ts';
import type { MachineConfigDaemonOptions } from './deps.ts';
import type { ConfigTrial } from './host-record.ts';
import { awaitSettled } from './trial.ts';

export interface Settling {
  /** Undefined until it is known. `failed`: reason for a rollback. */
  readonly outcome: { readonly failed: string | undefined } | undefined;
  stop(): void;
}

/** `ended` is called once, unless it is stopped before. */
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
