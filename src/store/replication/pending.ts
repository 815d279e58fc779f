import type { Lease } from '../core/mvcc/leases.ts';
import type { DecidedRevision } from '../core/mvcc/machine.ts';
import { type Command, encodeCommand, encodeRevision } from './peers/entry-codec.ts';

interface Waiter {
  resolve(): void;
  reject(error: Error): void;
}

/** Uncommitted proposal of this leader. Its waiters are notified when the outcome is known. */
export class Pending {
  readonly decided: DecidedRevision | undefined;
  readonly command: Command | undefined;
  /** Lease that the proposal revokes. */
  readonly lease: Lease | undefined;
  readonly relaxed: boolean;
  readonly bytes: number;
  index = 0;
  term = 0;
  #waiters: Waiter[] = [];

  private constructor(
    decided: DecidedRevision | undefined,
    command: Command | undefined,
    lease: Lease | undefined,
    relaxed: boolean,
  ) {
    this.decided = decided;
    this.command = command;
    this.lease = lease;
    this.relaxed = relaxed;
    let bytes = 0;
    for (const { field } of decided?.changes ?? []) bytes += field.length;
    this.bytes = bytes;
  }

  static revision(decided: DecidedRevision, { relaxed }: { readonly relaxed: boolean }, lease?: Lease): Pending {
    return new Pending(decided, undefined, lease, relaxed);
  }

  /** `lease`: the lease that the command revokes. */
  static command(command: Command, lease?: Lease): Pending {
    return new Pending(undefined, command, lease, false);
  }

  get waited(): number {
    return this.#waiters.length;
  }

  encode(): Uint8Array {
    if (this.decided !== undefined) return encodeRevision(this.decided, this.lease?.id ?? 0n);
    return encodeCommand(this.command as Command);
  }

  /**
   * Resolves when the proposal is committed and applied; rejects when the proposal failed or its outcome is unknown.
   */
  wait(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject });
    });
  }

  resolve(): void {
    for (const waiter of this.#waiters) waiter.resolve();
  }

  reject(error: Error): void {
    for (const waiter of this.#waiters) waiter.reject(error);
  }
}
