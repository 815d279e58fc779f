import type { Lease } from '../../core/mvcc/leases.ts';
import type { DecidedRevision } from '../../core/mvcc/machine.ts';
import type { Discard, LogBatch } from './port.ts';

export interface Waiter {
  readonly revision: number;
  /** Waits for the batch itself, not only for its revision to be visible. */
  readonly disk: boolean;
  resolve(): void;
  reject(error: Error): void;
}

export interface BatchRow {
  readonly decided: DecidedRevision;
  readonly relaxed: boolean;
}

/** What goes to disk together, and who waits for it. */
export class Batch {
  readonly rows: BatchRow[] = [];
  readonly granted: Lease[] = [];
  readonly revoked: Lease[] = [];
  readonly discards: Discard[] = [];
  waiters: Waiter[] = [];
  compacted: number | undefined;
  reserved: number | undefined;
  bytes = 0;

  get empty(): boolean {
    return (
      this.rows.length === 0 &&
      this.granted.length === 0 &&
      this.revoked.length === 0 &&
      this.discards.length === 0 &&
      this.compacted === undefined &&
      this.reserved === undefined
    );
  }

  get lastRevision(): number {
    return this.rows.at(-1)?.decided.revision ?? 0;
  }

  add(decided: DecidedRevision, relaxed: boolean): void {
    this.rows.push({ decided, relaxed });
    for (const change of decided.changes) this.bytes += change.field.length;
  }

  /** Takes over from a batch that was refused what is still owed: visible writes and housekeeping. */
  keep(refused: Batch, visible: number): void {
    for (const row of refused.rows) if (row.decided.revision <= visible) this.add(row.decided, row.relaxed);
    this.discards.push(...refused.discards);
    if (refused.compacted !== undefined) this.compacted = refused.compacted;
  }

  /** Answers those who only wait for a revision to be visible. */
  resolveUpTo(visible: number): void {
    if (this.waiters.length === 0) return;
    const left: Waiter[] = [];
    for (const waiter of this.waiters) {
      if (waiter.disk || waiter.revision > visible) left.push(waiter);
      else waiter.resolve();
    }
    this.waiters = left;
  }

  fail(error: Error): void {
    const waiters = this.waiters;
    this.waiters = [];
    for (const waiter of waiters) waiter.reject(error);
  }

  toLog(): LogBatch {
    return {
      rows: this.rows.map(({ decided }) => ({ revision: decided.revision, events: eventsOf(decided) })),
      leasesGranted: this.granted.map((lease) => ({ id: lease.id, ttlSeconds: lease.ttlSeconds })),
      leasesRevoked: this.revoked.map((lease) => lease.id),
      discards: this.discards,
      ...(this.compacted === undefined ? {} : { compacted: this.compacted }),
      ...(this.reserved === undefined ? {} : { reserved: this.reserved }),
    };
  }
}

function eventsOf(decided: DecidedRevision): Uint8Array {
  const [first] = decided.changes;
  if (decided.changes.length === 1 && first !== undefined) return first.field;
  return Buffer.concat(decided.changes.map((change) => change.field));
}
