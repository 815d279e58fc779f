import { CodedError } from '../../base/errors.ts';

interface Read {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Reads whose commit index is known but not applied yet. */
interface Confirmed {
  readonly index: number;
  readonly reads: readonly Read[];
}

/** Linearizable reads of a replica in ReadIndex rounds. All reads of one turn share a round. */
export class ReadIndexQueue {
  readonly #runId: string;
  readonly #request: (context: string) => void;
  readonly #onFailed: () => void;
  #rounds = 0;
  #next: Read[] | undefined;
  readonly #requested = new Map<string, Read[]>();
  #confirmed: Confirmed[] = [];

  /**
   * `runId` is unique for every start of the process. `request` starts a round, which ends with `confirmed` or
   * `aborted`. `onFailed` is called for every aborted round.
   */
  constructor(runId: string, request: (context: string) => void, onFailed: () => void) {
    this.#runId = runId;
    this.#request = request;
    this.#onFailed = onFailed;
  }

  /**
   * Resolves when the commit index of the next round was applied. Rejects with CodedError 'no-leader', or by `fail`.
   */
  add(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#next === undefined) {
        this.#next = [];
        // Reads that arrive in the same turn share one ReadIndex round.
        queueMicrotask(() => this.#start());
      }
      this.#next.push({ resolve, reject });
    });
  }

  #start(): void {
    const reads = this.#next ?? [];
    this.#next = undefined;
    this.#rounds += 1;
    const context = `${this.#runId}-${this.#rounds}`;
    this.#requested.set(context, reads);
    this.#request(context);
  }

  /** Permits the round's reads once `index` is applied. */
  confirmed(context: string, index: number): void {
    const reads = this.#requested.get(context);
    this.#requested.delete(context);
    if (reads !== undefined) this.#confirmed.push({ index, reads });
  }

  aborted(context: string, why: string): void {
    const reads = this.#requested.get(context) ?? [];
    this.#requested.delete(context);
    this.#onFailed();
    for (const read of reads) read.reject(new CodedError('no-leader', why));
  }

  applied(index: number): void {
    if (this.#confirmed.length === 0) return;
    const waiting: Confirmed[] = [];
    for (const round of this.#confirmed) {
      if (round.index > index) waiting.push(round);
      else for (const read of round.reads) read.resolve();
    }
    this.#confirmed = waiting;
  }

  /** Rejects all reads. */
  fail(error: Error): void {
    for (const reads of [...this.#requested.values(), this.#next ?? [], ...this.#confirmed.map(({ reads }) => reads)])
      for (const read of reads) read.reject(error);
    this.#requested.clear();
    this.#next = undefined;
    this.#confirmed = [];
  }
}
