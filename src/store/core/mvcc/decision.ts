/** Results and decisions of the store machine. */
import type { Version } from './version.ts';

/** Thrown for values that are not in memory. The caller reads their rows and repeats the operation with them. */
export class ValuesNeeded extends Error {
  readonly versions: readonly Version[];
  /** Number of values that the operation needs, including those in memory. */
  readonly among: number;
  constructor(versions: readonly Version[], among: number) {
    super('values needed');
    this.versions = versions;
    this.among = among;
  }
}

/** Values read back from the log for one operation. */
export type Pinned = ReadonlyMap<Version, Buffer>;

export interface Change {
  readonly version: Version;
  /** The version before the revision, if the key existed then. */
  readonly previous: Version | undefined;
  /** The encoded event. */
  readonly field: Buffer;
}

export interface DecidedRevision {
  readonly revision: number;
  readonly changes: readonly Change[];
}

export interface RangeAnswer {
  readonly kind: 'range';
  readonly versions: readonly Version[];
  /**
   * Encoded key-values, as `EncodedEvent` contains them, in the order of `versions`. Empty if only keys or the count
   * were requested.
   */
  readonly kvs: readonly Buffer[];
  readonly keysOnly: boolean;
  readonly more: boolean;
  readonly count: number;
}

export type Answer =
  | RangeAnswer
  | { readonly kind: 'put'; readonly previous: Buffer | undefined }
  | { readonly kind: 'delete'; readonly deleted: number; readonly previous: readonly Buffer[] }
  | TxnAnswer;

export interface TxnAnswer {
  readonly kind: 'txn';
  readonly succeeded: boolean;
  readonly answers: readonly Answer[];
}

/** Result of a transaction: its response and, if it wrote, the new revision. */
export interface Decision {
  readonly answer: TxnAnswer;
  readonly decided: DecidedRevision | undefined;
  /** Revision for the header of the response. */
  readonly revision: number;
}

export const NO_PINS: Pinned = new Map();
