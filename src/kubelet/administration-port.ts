/**
 * Administration of this host over the network: state of the store, snapshots, uploads, and restarts of components.
 * Implemented by `src/host/remote`. Errors are CodedErrors: 'absent', 'not-found', 'busy', 'conflict', 'too-large',
 * 'no-space', 'rejected'.
 */
import type { Readable } from 'node:stream';

export interface SnapshotFile {
  readonly name: string;
  /** 0 if the name has no revision. */
  readonly revision: number;
  readonly takenAt: string;
  readonly bytes: number;
}

export interface SnapshotReport {
  readonly directory: string;
  /** Interval of the schedule, such as `24h`; absent if the schedule is off. */
  readonly every?: string;
  /** Number of snapshots that the schedule keeps. */
  readonly keep: number;
  /** Directory of the schedule if it is another one. Its files are not served. */
  readonly scheduledDirectory?: string;
  /** A snapshot is being saved. */
  readonly isSaving: boolean;
  /** Newest first. */
  readonly snapshots: readonly SnapshotFile[];
}

export interface OpenSnapshot {
  readonly name: string;
  readonly bytes: number;
  readonly content: Readable;
  /** Frees the place of the download. */
  close(): void;
}

export type UploadKind = 'image' | 'bundle';

export interface Upload {
  readonly kind: UploadKind;
  readonly body: Readable;
  /** Announced size. */
  readonly bytes: number | undefined;
  /** Image name instead of those in the archive. */
  readonly name: string | undefined;
}

export interface UploadLimits {
  readonly isBusy: boolean;
  readonly maxBytes: number;
  /** Largest archive for which the disk has space. */
  readonly freeBytes: number;
}

export interface ComponentRestart {
  readonly id: string;
  readonly component: string;
  readonly startedAt: string;
  /** Absent while the restart is in progress. */
  readonly endedAt?: string;
  /** Reason why the component is not ready; absent after success. */
  readonly error?: string;
}

export interface RestartReport {
  /** Names of the components that run on this host. */
  readonly components: readonly string[];
  readonly current?: ComponentRestart;
  /** The restart that ended last since the host process has started. */
  readonly last?: ComponentRestart;
}

export interface StartedRestart {
  readonly restart: ComponentRestart;
  /** Never rejects. */
  readonly ended: Promise<ComponentRestart>;
}

export interface HostAdministration {
  /** Members of the store, and the gossip ring; for each the reason if it is unknown. */
  store(): Promise<object>;
  snapshots(): Promise<SnapshotReport>;
  /** Continues if the client disconnects. */
  saveSnapshot(): Promise<object>;
  /** Bytes of the snapshot that is being saved. */
  savedBytes(): Promise<number>;
  openSnapshot(name: string): Promise<OpenSnapshot>;
  uploadLimits(): Promise<UploadLimits>;
  /** Receives the body into a private file and imports it. Aborting `signal` ends both. */
  importUpload(upload: Upload, signal: AbortSignal, onReceived: () => void): Promise<object>;
  restarts(): Promise<RestartReport>;
  /** Continues if the client disconnects. Rejects before anything is stopped. */
  restart(component: string): Promise<StartedRestart>;
  /** Ends running work and removes its files. */
  stop(): Promise<void>;
}
