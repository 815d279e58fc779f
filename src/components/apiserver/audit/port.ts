/** Where audit events go. Implemented by `src/io/audit` and by the webhook of this room. */
export interface AuditSink {
  /** Takes one event, as JSON on one line. Never waits and never throws: what cannot be kept is dropped, counted and logged. */
  accept(event: string): void;
  /** Writes what is still waiting, as far as that can be done in a few seconds. */
  close(): Promise<void>;
}
