/**
 * Files that the kubelet keeps on its host. Implemented by `src/io/kubelet-files`. Errors are those of the file system.
 */

/** Directories and files of pods, below the kubelet's own directories. */
export interface PodFiles {
  /** Makes the directory and its parents; one that is there keeps its mode. */
  makeDirectory(path: string, mode: number): Promise<void>;
  /** Names in a directory; none when there is no directory. */
  names(directory: string): Promise<readonly string[]>;
  /** Replaces the file at once, so that readers see the old or the new content; makes its directory. */
  replace(path: string, content: string): Promise<void>;
  /** Makes an empty file that every user of the container may write, and its directory. */
  makeMessageFile(path: string): Promise<void>;
  /** The first `maxBytes` of a file, which is cut to them; empty when it cannot be read. */
  takeMessage(path: string, maxBytes: number): Promise<string>;
  /** Puts a symbolic link to `target` at `path`, in place of what is there; makes its directory. */
  link(target: string, path: string): Promise<void>;
  /** Removes the links in a directory whose target does not exist. Never rejects. */
  removeDanglingLinks(directory: string): Promise<void>;
}

export interface ProjectedFile {
  readonly bytes: Uint8Array;
  readonly mode: number;
  /** Owner; root when absent. */
  readonly uid?: number;
}

/** By path relative to the volume. */
export type Payload = ReadonlyMap<string, ProjectedFile>;

/** As the `type` of a hostPath volume names it. */
export type HostPathKind = 'Directory' | 'File' | 'Socket' | 'CharDevice' | 'BlockDevice';

export interface VolumeFiles {
  /**
   * Makes the directory and its parents. Returns whether it was made now; its mode is then exactly `mode`, or 0755 less
   * the process's mask.
   */
  makeDirectory(path: string, mode?: number): Promise<boolean>;
  /** Makes an empty file and its directory where there is none. */
  makeFile(path: string): Promise<void>;
  /** Whether something has this name, be it a link that leads nowhere. */
  isPresent(path: string): Promise<boolean>;
  /** What a path leads to; undefined: nothing, or of another kind. */
  kindOf(path: string): Promise<HostPathKind | undefined>;
  /**
   * Gives a tree to a group that may write all of it and that new files belong to. Does not follow links. The policy
   * `OnRootMismatch` leaves a tree whose root belongs to the group already.
   */
  ownByGroup(path: string, gid: number, policy?: string): Promise<void>;
  /**
   * Puts a set of files into a directory so that readers see either all of the old or all of the new. Returns whether
   * anything changed. Throws for a path that would leave the volume. Source: pkg/volume/util/atomic_writer.go.
   */
  writeAtomically(
    directory: string,
    payload: Payload,
    options: { readonly gid?: number; readonly nowMs: number },
  ): Promise<boolean>;
  /**
   * Binds `subPath` of `volume` on `target` (made as file or directory to fit). Links on the way to the volume are
   * followed, those below it only inside it. A missing directory is made, as upstream does. What is bound there already
   * stays when it is the same file; a replaced file, such as a changed key of a config map, is bound again.
   */
  bindSubPath(volume: string, subPath: string, target: string): Promise<void>;
}

/** A log that is open for reading. */
export interface OpenLog {
  size(): Promise<number>;
  /** Fills `buffer` from `position` of the file; the number of bytes read. */
  read(buffer: Uint8Array, position: number): Promise<number>;
  /** Differs between files, whatever their names. */
  identity(): Promise<string>;
  close(): Promise<void>;
}

export interface LogFiles {
  /** Rejects with the code ENOENT when there is no such log. */
  open(path: string): Promise<OpenLog>;
  size(path: string): Promise<number>;
  names(directory: string): Promise<readonly string[]>;
  rename(from: string, to: string): Promise<void>;
  /** A file that is not there is fine. */
  remove(path: string): Promise<void>;
}

export interface ManifestFile {
  readonly sizeBytes: number;
  /** Differs when the file has changed. */
  readonly stamp: string;
}

/** Where static pods come from. */
export interface Manifests {
  /** Names in a directory; none when there is no such directory. */
  names(directory: string): Promise<readonly string[]>;
  /** Undefined: not a regular file. */
  look(path: string): Promise<ManifestFile | undefined>;
  read(path: string): Promise<string>;
  /** Follows no redirect. Rejects with the URL and status of an answer that is not a success. */
  fetch(url: string, timeoutMs: number): Promise<string>;
}

/**
 * The same for paths outside of the kubelet's own directories, whose file system may never answer. Operations reject
 * after a deadline and hold no thread of the process meanwhile.
 */
export type ForeignFiles = Pick<
  VolumeFiles,
  'makeDirectory' | 'makeFile' | 'isPresent' | 'kindOf' | 'ownByGroup' | 'bindSubPath'
>;

export interface KubeletFiles {
  readonly pods: PodFiles;
  readonly volumes: VolumeFiles;
  readonly foreign: ForeignFiles;
  readonly logs: LogFiles;
  readonly manifests: Manifests;
}
