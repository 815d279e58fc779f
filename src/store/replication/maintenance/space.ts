/**
 * Free space of this member's disk. When the disk is full, writes that grow the store are rejected, except small writes
 * that may use the reserve.
 */

import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock, Timer } from '../../../base/time/clock.ts';
import type { TxnRequest } from '../../core/messages/kv.ts';
import type { StoreLog } from '../../disk/port.ts';
import type { StoreView } from '../store-view.ts';

export interface WriteOptions {
  readonly relaxed: boolean;
  /**
   * Marks a relaxed write that its client repeats periodically, such as a heartbeat, so that the loss of the newest
   * value is harmless. The flush of such a write may be delayed by minutes.
   */
  readonly heartbeat?: boolean;
  /**
   * Whether the write helps to free the disk or keeps a node alive. Such writes are also accepted while the quota is
   * exceeded and, until the reserve is used up, while the disk is full.
   */
  readonly reserve: boolean;
}

export interface DiskSpaceDeps {
  readonly view: Pick<StoreView, 'stopped'>;
  readonly storage: Pick<StoreLog, 'recoverSpace' | 'reserveBytes'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Called repeatedly while the disk is full. */
  readonly onFull: () => void;
}

const SPACE_RETRY_MS = 1000;
/**
 * Maximum part of the reserve for one write, so that a large object does not use up the reserve for all other writes.
 */
const RESERVE_WRITE_BYTES = 64 << 10;

export class DiskSpace {
  readonly #deps: DiskSpaceDeps;
  #full = false;
  /** Bytes of writes that are still accepted while the disk is full. */
  #reserveLeft = 0;
  #timer: Timer | undefined;
  #recovering: Promise<void> | undefined;

  constructor(deps: DiskSpaceDeps) {
    this.#deps = deps;
  }

  get full(): boolean {
    return this.#full;
  }

  stop(): void {
    this.#timer?.cancel();
  }

  setFull(full: boolean): void {
    if (full === this.#full) return;
    this.#full = full;
    this.#reserveLeft = full ? this.#deps.storage.reserveBytes() : 0;
    if (full) {
      this.#deps.log.error('disk is full; rejecting writes until space is free');
      this.#deps.onFull();
      this.#awaitSpace();
    } else this.#deps.log.info('disk has free space; accepting writes again');
  }

  /** Whether the reserve admits a write that would otherwise be rejected. */
  admits(request: TxnRequest, { reserve }: WriteOptions): boolean {
    if (!reserve) return false;
    if (!this.#full) return true;
    const bytes = bytesOf(request);
    return bytes <= RESERVE_WRITE_BYTES && bytes <= this.#reserveLeft;
  }

  /** Deducts the size of an evaluated write from the reserve while the disk is full. Returns the bytes deducted. */
  takeReserve(request: TxnRequest): number {
    if (!this.#full) return 0;
    const bytes = bytesOf(request);
    this.#reserveLeft -= bytes;
    return bytes;
  }

  /** Returns the bytes of a write that was not written to the reserve. */
  giveBack(bytes: number): void {
    if (this.#full) this.#reserveLeft += bytes;
  }

  /** Checks for free space. Concurrent callers share one check. */
  recover(): Promise<void> {
    const { storage, view, log } = this.#deps;
    this.#recovering ??= storage
      .recoverSpace()
      .then(
        (recovered) => {
          if (recovered) this.setFull(false);
        },
        (error: unknown) => {
          if (!view.stopped) log.warn('free disk space not checked', { cause: messageOf(error) });
        },
      )
      .finally(() => {
        this.#recovering = undefined;
      });
    return this.#recovering;
  }

  #awaitSpace(): void {
    const { view, clock, onFull } = this.#deps;
    if (view.stopped) return;
    this.#timer = clock.setTimer(SPACE_RETRY_MS, () => {
      void this.recover().then(() => {
        if (!this.#full) return;
        onFull();
        this.#awaitSpace();
      });
    });
  }
}

/** Whether a request grows the store. A full disk still accepts requests that only delete, because they free space. */
export function writesMore(request: TxnRequest): boolean {
  const grows = (operations: TxnRequest['success']): boolean =>
    operations.some((operation) => operation.kind === 'put' || (operation.kind === 'txn' && writesMore(operation.txn)));
  return grows(request.success) || grows(request.failure);
}

function bytesOf(request: TxnRequest): number {
  let bytes = 0;
  for (const operation of [...request.success, ...request.failure]) {
    if (operation.kind === 'put') bytes += operation.put.key.length + operation.put.value.length;
    else if (operation.kind === 'txn') bytes += bytesOf(operation.txn);
  }
  return bytes;
}
