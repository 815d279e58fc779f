/**
 * Free space of this member's disk. While there is none, writes that grow the store are rejected, except small ones
 * that ask for the reserve.
 */
import type { TxnRequest } from '../../../api/etcd/kv.ts';
import type { Clock, Timer } from '../../../base/clock.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { StoreLog } from '../port.ts';
import type { StoreView } from './store-view.ts';

export interface WriteOptions {
  readonly relaxed: boolean;
  /** Of a relaxed write: only its newest state matters, and it is repeated. It may wait for minutes for its flush. */
  readonly heartbeat?: boolean;
  /**
   * The write helps to free the disk or keeps a node alive: also accepted while the disk is full or the quota exceeded,
   * until the reserve is used up.
   */
  readonly reserve: boolean;
}

export interface DiskSpaceDeps {
  readonly view: Pick<StoreView, 'stopped'>;
  readonly storage: Pick<StoreLog, 'recoverSpace' | 'reserveBytes'>;
  readonly clock: Clock;
  readonly log: Log;
  /** The disk is full; called repeatedly while it is. */
  readonly onFull: () => void;
}

const SPACE_RETRY_MS = 1000;
/** The part of the reserve that one write may use, so that a large object does not use it up for all others. */
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
    } else this.#deps.log.info('disk has free space again; accepting writes');
  }

  /** Whether the reserve admits a write that would otherwise be rejected; takes its size from the reserve if so. */
  takeReserve(request: TxnRequest, { reserve }: WriteOptions): boolean {
    if (!reserve) return false;
    if (!this.#full) return true;
    const bytes = bytesOf(request);
    if (bytes > RESERVE_WRITE_BYTES || bytes > this.#reserveLeft) return false;
    this.#reserveLeft -= bytes;
    return true;
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
          if (!view.stopped) log.warn('could not check for free disk space', { cause: messageOf(error) });
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

/** A full disk still accepts requests that only delete: they free space. */
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
