/** What the log's owner and its worker thread say to each other. Requests are answered in order, by number. */
import type { Discard, LeaseRecord, LogSize, LogState } from '../../components/etcd/port.ts';

/** Rows in one piece of memory, handed over instead of copied. */
export interface PackedRows {
  readonly revisions: readonly number[];
  readonly lengths: readonly number[];
  readonly data: Uint8Array;
}

export interface CommitBody {
  readonly rows: PackedRows;
  readonly leasesGranted: readonly LeaseRecord[];
  readonly leasesRevoked: readonly bigint[];
  readonly discards: readonly Discard[];
  readonly compacted: number | undefined;
  readonly reserved: number | undefined;
}

export type WorkerRequest =
  | { readonly kind: 'open'; readonly directory: string; readonly nativeBinding: string | undefined }
  | { readonly kind: 'load'; readonly after: number }
  | { readonly kind: 'commit'; readonly body: CommitBody }
  | { readonly kind: 'read'; readonly revisions: readonly number[] }
  | { readonly kind: 'hash'; readonly revision: number }
  | { readonly kind: 'size' }
  | { readonly kind: 'defragment' }
  | { readonly kind: 'snapshot' }
  | { readonly kind: 'close' };

export interface WorkerAnswers {
  readonly open: LogState;
  readonly load: PackedRows;
  readonly commit: undefined;
  readonly read: ReadonlyArray<Uint8Array | undefined>;
  readonly hash: number;
  readonly size: LogSize;
  readonly defragment: undefined;
  /** The path of the copy; the owner removes it. */
  readonly snapshot: string;
  readonly close: undefined;
}

export interface WorkerFailure {
  readonly code: string;
  readonly message: string;
  /** The file cannot be trusted with anything more. */
  readonly fatal: boolean;
}

export type WorkerReply =
  | { readonly id: number; readonly value: WorkerAnswers[keyof WorkerAnswers] }
  | { readonly id: number; readonly failure: WorkerFailure };

export interface NumberedRequest {
  readonly id: number;
  readonly request: WorkerRequest;
}
