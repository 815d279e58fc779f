/** The audit sink. Implemented by `src/io/audit` and by the webhook of this room. */
export interface AuditSink {
  /** Answers wait until what is recorded of them has been written. */
  readonly blocks?: boolean;
  /** Larger events go without bodies, and not at all when they are larger still; undefined: no limit. Bytes. */
  readonly maxEventBytes?: number;
  /**
   * Takes one event, as JSON on one line. Never throws: an event that cannot be stored is dropped, counted and logged.
   * Undefined: the request does not wait. Otherwise the
   * promise, which never rejects, says whether the request may be served.
   */
  accept(event: string): Promise<boolean> | undefined;
  /** Writes what is still waiting, as far as that can be done in a few seconds. */
  close(): Promise<void>;
}

/**
 * `batch`: requests never wait; `blocking`: answers wait; `blocking-strict`: and a request is refused when its first
 * event cannot be kept.
 */
export type AuditMode = 'batch' | 'blocking' | 'blocking-strict';
