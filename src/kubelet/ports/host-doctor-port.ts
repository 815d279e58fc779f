/** Checks of this host. Implemented by `src/host/doctor`. */
export interface HostDoctor {
  /**
   * Runs all checks in a process of their own and resolves with the report as JSON, without secrets. Rejects after an
   * abort, when the process has been killed.
   */
  report(signal: AbortSignal): Promise<string>;
}
