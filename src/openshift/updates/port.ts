/**
 * Port for the files of an update on this host. `src/openshift/updates/io` implements the port, except for the restart,
 * which `src/host` implements.
 */
import type { ReleaseFile } from '../../api/releases/manifest.ts';
import type { SwitchRecord } from './core/port.ts';

export interface HostExecutables {
  /** Undefined if the host was never updated. Throws CodedError 'damaged' and 'unreadable'. */
  record(): Promise<SwitchRecord | undefined>;
  /** Replaces the record atomically. Resolves when the record is on disk. */
  writeRecord(record: SwitchRecord): Promise<void>;
  /** Increases the number of guard starts during the trial with this ID. Resolves with the number. */
  countStart(id: string): Promise<number>;
  /** Version to which the link points. Undefined if the executable is a regular file. */
  link(): Promise<string | undefined>;
  /** Replaces the link atomically. Resolves when it is on disk. Rejects if there is no executable of the version. */
  setLink(version: string): Promise<void>;
  /**
   * Whether an executable of this version is stored. If a digest is given, the executable must also have this digest.
   */
  has(version: string, sha256: string | undefined): Promise<boolean>;
  /** Stores copies of the running executable and of the guard's executable under their version. */
  keepRunning(version: string): Promise<void>;
  /** Stores a verified file as the executable of a version. Resolves when it is on disk. */
  place(version: string, path: string): Promise<void>;
  /** Removes the executables of all versions that are not in `keep`. */
  prune(keep: readonly string[]): Promise<void>;
  /** Starts the guard on hosts whose service manager does not. */
  startGuard(): Promise<void>;
  /** Restarts the host process with the executable that the link points to. Pods keep running. */
  restart(): Promise<void>;
}

/** Files of releases on this host, by digest. */
export interface ReleaseFiles {
  /** Returns the path of the file with this digest. Undefined if the file is missing or incomplete. */
  pathOf(sha256: string): Promise<string | undefined>;
  /**
   * Fetches the file from the masters and resolves with its path. Rejects with a CodedError that contains each master's
   * error.
   */
  fetch(file: Pick<ReleaseFile, 'sha256' | 'size'>): Promise<string>;
  /**
   * Removes all other files. A file that is not in `withdrawn`, the digests of releases that were announced before, is
   * removed only after an hour, because it may belong to an import in progress.
   */
  retain(digests: readonly string[], withdrawn: ReadonlySet<string>): Promise<void>;
}
