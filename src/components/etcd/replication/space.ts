/** Free space of this member's disk: writes that grow the store are rejected while there is none. */
import type { TxnRequest } from '../../../api/etcd/kv.ts';
import type { Clock, Timer } from '../../../base/clock.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { StoreLog } from '../port.ts';
import type { StoreView } from './store-view.ts';

export interface DiskSpaceDeps {
  readonly view: Pick<StoreView, 'stopped'>;
  readonly storage: Pick<StoreLog, 'recoverSpace'>;
  readonly clock: Clock;
  readonly log: Log;
  /** The disk is full; called repeatedly while it is. */
  readonly onFull: () => void;
}

const SPACE_RETRY_MS = 1000;

export class DiskSpace {
  readonly #deps: DiskSpaceDeps;
  #full = false;
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
    if (full) {
      this.#deps.log.error('disk is full; rejecting writes until space is free');
      this.#deps.onFull();
      this.#awaitSpace();
    } else this.#deps.log.info('disk has free space again; accepting writes');
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
