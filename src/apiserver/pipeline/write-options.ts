/** Options of writes and deletes, parsed from the query and body of a request. */

export interface WriteOptions {
  readonly dryRun: boolean;
  readonly validation: 'Ignore' | 'Warn' | 'Strict';
  readonly fieldManager: string;
  readonly force: boolean;
}

export interface DeleteOptions {
  readonly gracePeriodSeconds: number | undefined;
  readonly propagation: 'Foreground' | 'Background' | 'Orphan' | undefined;
  /** Deprecated form of the propagation policy. */
  readonly orphans?: boolean | undefined;
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly dryRun: boolean;
}
