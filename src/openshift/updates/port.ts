/**
 * Port for the files of an update on this host. Implemented by `src/openshift/updates/io`; the restart by `src/host`.
 */
import type { ReleaseFile } from '../../api/releases/manifest.ts';
import type { SwitchRecord } from './core/port.ts';

export interface HostExecutables {
  record(): Promise<SwitchRecord | undefined>;
  /** Atomic. Resolves when the record is on disk. */
  writeRecord(record: SwitchRecord): Promise<void>;
  /** Counts a start of the guard during the trial with this ID. Resolves with the number of starts. */
  countStart(id: string): Promise<number>;
  /** Version that the link points to. Undefined when the executable is a regular file. */
  link(): Promise<string | undefined>;
  /** Atomic. Resolves when the link is on disk. Rejects when there is no executable of that version. */
  setLink(version: string): Promise<void>;
  /** Whether an executable of this version is stored, with this digest if one is given. */
  has(version: string, sha256: string | undefined): Promise<boolean>;
  /** Stores the running executable and the guard's under their version. */
  keepRunning(version: string): Promise<void>;
  /** Stores a verified file as the executable of a version. Resolves when it is on disk. */
  place(version: string, path: string): Promise<void>;
  /** Removes executables of other versions. */
  prune(keep: readonly string[]): Promise<void>;
  /** Starts the guard on hosts whose service manager does not. */
  startGuard(): Promise<void>;
  /** Restarts the host process with the executable that the link points to. Pods keep running. */
  restart(): Promise<void>;
}

/** Files of releases on this host, by digest. */
export interface ReleaseFiles {
  /** Returns undefined when the file is missing or incomplete. */
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
