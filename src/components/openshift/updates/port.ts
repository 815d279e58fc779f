/** The files of an update on this host. Implemented by `src/io/releases`; the restart by `src/roles/host`. */
import type { ReleaseFile } from '../../../api/releases/manifest.ts';
import type { SwitchRecord } from '../../../core/updates/port.ts';

export interface HostExecutables {
  record(): Promise<SwitchRecord | undefined>;
  /** Atomic and on disk when it resolves. */
  writeRecord(record: SwitchRecord): Promise<void>;
  /** Counts a start of the guard during the trial of this id; resolves with the starts until now. */
  countStart(id: string): Promise<number>;
  /** The version that the link names; undefined: the executable is a file of its own. */
  link(): Promise<string | undefined>;
  /** Atomic and on disk when it resolves. Rejects when there is no executable of that version. */
  setLink(version: string): Promise<void>;
  /** An executable of this version is kept; with a digest only one of that content. */
  has(version: string, sha256: string | undefined): Promise<boolean>;
  /** Keeps the running executable and the guard's under their version. */
  keepRunning(version: string): Promise<void>;
  /** Places a verified file as the executable of a version, on disk when it resolves. */
  place(version: string, path: string): Promise<void>;
  /** Removes executables of other versions. */
  prune(keep: readonly string[]): Promise<void>;
  /** Starts the guard, where no service manager does. */
  startGuard(): Promise<void>;
  /** The host process starts again, with the executable that the link names; pods keep running. */
  restart(): Promise<void>;
}

/** Files of releases on this host, by digest. */
export interface ReleaseFiles {
  /** Undefined: it is not there, or not whole. */
  pathOf(sha256: string): Promise<string | undefined>;
  /** From the masters; resolves with the path. Rejects with a CodedError naming what each master said. */
  fetch(file: Pick<ReleaseFile, 'sha256' | 'size'>): Promise<string>;
  /** Removes all others. */
  retain(digests: readonly string[]): Promise<void>;
}
