/** Audit sink. Implemented by `src/apiserver/io/audit` and by the audit webhook in this folder. */
export interface AuditSink {
  /** True: responses wait until their events have been written. */
  readonly blocks?: boolean;
  /**
   * Maximum size of an event in bytes. A larger event loses its bodies, and is dropped if it is still too large.
   * Undefined: no limit.
   */
  readonly maxEventBytes?: number;
  /**
   * Takes one event as JSON on one line. Never throws: an event that cannot be stored is dropped, counted and logged.
   * Returns undefined if the request need not wait. Otherwise resolves to whether the request may be served.
   */
  accept(event: string): Promise<boolean> | undefined;
  /** Writes waiting events for at most a few seconds. */
  close(): Promise<void>;
}

/**
 * `batch`: requests never wait. `blocking`: responses wait for their events. `blocking-strict`: in addition, a request
 * is rejected when its first event cannot be stored.
 */
export type AuditMode = 'batch' | 'blocking' | 'blocking-strict';
