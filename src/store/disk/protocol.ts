/**
 * Messages between the log (sqlite-log.ts) and its worker thread (sqlite-worker.ts). A response has the number of its
 * request; responses of slow requests can arrive after those of later requests.
 */
import type { SnapshotPosition, SnapshotSummary } from '../administration/port.ts';
import type { JournalPart, JournalPlace } from './journal/journal.ts';
import type { CommitBody, PackedEntries } from './packed-entries.ts';
import type { LogSize, LogState, SnapshotHead, StoredHardState, StoreIdentity } from './port.ts';

export type WorkerRequest =
  | {
      readonly kind: 'open';
      readonly directory: string;
      readonly nativeBinding: string | undefined;
      readonly flush: boolean;
      /** The directory contains only a copy of a store's file. */
      readonly isCopy: boolean;
    }
  | { readonly kind: 'initialise'; readonly identity: StoreIdentity; readonly first: CommitBody }
  | { readonly kind: 'load'; readonly after: number; readonly upTo: number }
  /** Preallocates space for the journal. */
  | { readonly kind: 'prepare' }
  | { readonly kind: 'absorb'; readonly part: JournalPart }
  /** Commits directly to the database. The whole journal must have been absorbed. */
  | { readonly kind: 'commit'; readonly body: CommitBody; readonly sequence: number }
  /** Checks the free space and refills the reserve inside the database. */
  | { readonly kind: 'checkSpace' }
  | { readonly kind: 'recoverSpace' }
  | { readonly kind: 'entries'; readonly from: number; readonly maxBytes: number }
  | { readonly kind: 'read'; readonly revisions: readonly number[] }
  | { readonly kind: 'rows'; readonly after: number; readonly upTo: number }
  | { readonly kind: 'hash'; readonly revision: number }
  | { readonly kind: 'scrub'; readonly after: number }
  | { readonly kind: 'size' }
  | { readonly kind: 'defragment' }
  | { readonly kind: 'changeSchema'; readonly level: number }
  | { readonly kind: 'snapshot'; readonly upTo: number }
  | { readonly kind: 'summarize'; readonly path: string; readonly nativeBinding: string }
  | { readonly kind: 'snapshotPosition'; readonly path: string; readonly nativeBinding: string }
  | { readonly kind: 'lastIntact'; readonly path: string; readonly nativeBinding: string }
  | { readonly kind: 'receive'; readonly id: string }
  | { readonly kind: 'received'; readonly id: string; readonly rows: PackedEntries }
  | {
      readonly kind: 'install';
      readonly id: string;
      readonly head: SnapshotHead;
      readonly hardState: StoredHardState;
      readonly sequence: number;
    }
  /** `inOrder`: the journal has been absorbed completely. */
  | { readonly kind: 'close'; readonly inOrder: boolean };

export interface Opening {
  readonly state: LogState;
  readonly journal: JournalPlace;
}

export interface WorkerAnswers {
  readonly open: Opening;
  readonly initialise: undefined;
  readonly load: PackedEntries;
  readonly prepare: undefined;
  readonly absorb: { readonly full: boolean };
  readonly commit: { readonly full: boolean };
  readonly checkSpace: { readonly full: boolean; readonly reserveBytes: number };
  readonly recoverSpace: boolean;
  readonly entries: PackedEntries;
  /** Rows of the requested revisions that exist, in the requested order. */
  readonly read: PackedEntries;
  readonly rows: PackedEntries;
  readonly hash: number;
  readonly scrub: number;
  readonly size: LogSize;
  readonly defragment: undefined;
  readonly changeSchema: number;
  /** Path of the copy, which the owner must remove. */
  readonly snapshot: string;
  readonly summarize: SnapshotSummary;
  readonly snapshotPosition: SnapshotPosition;
  readonly lastIntact: number | undefined;
  readonly receive: number;
  readonly received: undefined;
  readonly install: Opening;
  readonly close: undefined;
}

export interface WorkerFailure {
  readonly code: string;
  readonly message: string;
  /** The file must not be used any more. */
  readonly fatal: boolean;
}

export type WorkerReply =
  | { readonly id: number; readonly value: WorkerAnswers[keyof WorkerAnswers] }
  | { readonly id: number; readonly failure: WorkerFailure };

export interface NumberedRequest {
  readonly id: number;
  readonly request: WorkerRequest;
}
