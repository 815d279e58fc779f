/**
 * Administration of this host over the network: state of the store, snapshots, uploads, and restarts of components.
 * Implemented by `src/host/remote`. Errors are CodedErrors: 'absent', 'not-found', 'busy', 'conflict', 'too-large',
 * 'no-space', 'rejected'.
 */
import type { Readable } from 'node:stream';

export interface SnapshotFile {
  readonly name: string;
  /** Revision in the file name; 0 if the name contains none. */
  readonly revision: number;
  readonly takenAt: string;
  readonly bytes: number;
}

export interface SnapshotReport {
  readonly directory: string;
  /** Interval of scheduled snapshots, such as `24h`; absent if no snapshots are scheduled. */
  readonly every?: string;
  /** Maximum number of scheduled snapshots; older ones are deleted. */
  readonly keep: number;
  /**
   * Directory of scheduled snapshots if it differs from `directory`. Snapshots in this directory cannot be downloaded.
   */
  readonly scheduledDirectory?: string;
  /** Whether a snapshot is being saved. */
  readonly isSaving: boolean;
  /** Newest first. */
  readonly snapshots: readonly SnapshotFile[];
}

export interface OpenSnapshot {
  readonly name: string;
  readonly bytes: number;
  readonly content: Readable;
  /** Allows the next download to start. Must be called when this download has ended. */
  close(): void;
}

export type UploadKind = 'image' | 'bundle';

export interface Upload {
  readonly kind: UploadKind;
  readonly body: Readable;
  /** Size from the Content-Length header; undefined if the client did not send one. */
  readonly bytes: number | undefined;
  /** Name of the imported image; undefined to use the names in the archive. */
  readonly name: string | undefined;
  /** Whether to accept a release that is older than the cluster's version. */
  readonly force: boolean;
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
  /** Most recent restart that has ended; absent if none has ended since the host process started. */
  readonly last?: ComponentRestart;
}

export interface StartedRestart {
  readonly restart: ComponentRestart;
  /** Resolves with the result when the restart has succeeded or failed. Never rejects. */
  readonly ended: Promise<ComponentRestart>;
}

export interface HostAdministration {
  /** Status of the store's members and of the gossip ring. If a status is unknown, it contains the reason. */
  store(): Promise<object>;
  snapshots(): Promise<SnapshotReport>;
  /** Saves a snapshot. Saving continues if the client disconnects. */
  saveSnapshot(): Promise<object>;
  /** Number of bytes written so far for the snapshot that is being saved. */
  savedBytes(): Promise<number>;
  openSnapshot(name: string): Promise<OpenSnapshot>;
  uploadLimits(): Promise<UploadLimits>;
  /** Receives the body into a private file and imports the file. Aborting `signal` ends the transfer and the import. */
  importUpload(upload: Upload, signal: AbortSignal, onReceived: () => void): Promise<object>;
  restarts(): Promise<RestartReport>;
  /**
   * Starts a restart, which continues if the client disconnects. Rejects if the restart cannot start; the component
   * then keeps running.
   */
  restart(component: string): Promise<StartedRestart>;
  /** Ends running saves and uploads, and removes their temporary files. */
  stop(): Promise<void>;
}
