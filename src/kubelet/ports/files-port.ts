/**
 * Ports for the files that the kubelet keeps on its host. Implemented by `src/kubelet/io/files`. Errors are those of
 * the file system.
 */

export interface PodFiles {
  /** Creates the directory and its parents. An existing directory keeps its mode. */
  makeDirectory(path: string, mode: number): Promise<void>;
  /** Returns an empty list when the directory does not exist. */
  names(directory: string): Promise<readonly string[]>;
  /** Replaces the file atomically: readers see either the old or the new content. Creates its directory. */
  replace(path: string, content: string): Promise<void>;
  /** Like `replace`, but also flushes the file to disk, so that it survives a power failure. */
  replaceDurably(path: string, content: string): Promise<void>;
  /** Creates an empty file that every user of the container may write, and its directory. */
  makeMessageFile(path: string): Promise<void>;
  /** Returns the first `maxBytes` of a file and truncates the file to them. Returns '' when the file cannot be read. */
  takeMessage(path: string, maxBytes: number): Promise<string>;
  /** Creates or replaces the symbolic link `path` to `target`, and creates its directory. */
  link(target: string, path: string): Promise<void>;
  removeDanglingLinks(directory: string): Promise<void>;
}

export interface ProjectedFile {
  readonly bytes: Uint8Array;
  readonly mode: number;
  /** Owner. Default: root. */
  readonly uid?: number;
}

/** File contents by path relative to the volume. */
export type Payload = ReadonlyMap<string, ProjectedFile>;

export type HostPathKind = 'Directory' | 'File' | 'Socket' | 'CharDevice' | 'BlockDevice';

export interface VolumeFiles {
  /**
   * Creates the directory and its parents. Returns whether it was created by this call; its mode is then exactly
   * `mode`, or 0755 without the bits of the process's umask.
   */
  makeDirectory(path: string, mode?: number): Promise<boolean>;
  /** Creates an empty file and its directory unless the file exists. */
  makeFile(path: string): Promise<void>;
  /** Whether the path exists. A dangling symbolic link counts as present. */
  isPresent(path: string): Promise<boolean>;
  /** Kind of the file that a path leads to. Undefined when it does not exist or has another kind. */
  kindOf(path: string): Promise<HostPathKind | undefined>;
  /**
   * Makes a directory tree writable for a group; new files in the tree also belong to the group. Does not follow links.
   * With the policy `OnRootMismatch`, a tree whose root already belongs to the group is left unchanged.
   */
  ownByGroup(path: string, gid: number, policy?: string): Promise<void>;
  /**
   * Writes a set of files so that readers see either all of the old or all of the new files. Returns whether anything
   * changed. Throws for a path that would leave the volume. Source: pkg/volume/util/atomic_writer.go.
   */
  writeAtomically(
    directory: string,
    payload: Payload,
    options: { readonly gid?: number; readonly nowMs: number },
  ): Promise<boolean>;
  /**
   * Bind-mounts `subPath` of `volume` on `target`, which is created as a file or directory to match the source.
   * Symbolic links in the path of the volume are followed. Symbolic links inside the volume are followed only if their
   * target is inside the volume. A missing directory is created, as upstream does. An existing mount of the same file
   * is kept; a replaced file, such as a changed key of a config map, is mounted again.
   */
  bindSubPath(volume: string, subPath: string, target: string): Promise<void>;
}

export interface OpenLog {
  size(): Promise<number>;
  /** Reads into `buffer` from `position` of the file. Returns the number of bytes read. */
  read(buffer: Uint8Array, position: number): Promise<number>;
  /** Identifier of the file itself, independent of its name. */
  identity(): Promise<string>;
  close(): Promise<void>;
}

export interface LogFiles {
  /** Rejects with the code ENOENT when the log does not exist. */
  open(path: string): Promise<OpenLog>;
  size(path: string): Promise<number>;
  names(directory: string): Promise<readonly string[]>;
  rename(from: string, to: string): Promise<void>;
  /** Succeeds when the file does not exist. */
  remove(path: string): Promise<void>;
}

export interface ManifestFile {
  readonly sizeBytes: number;
  /** Version stamp that differs after the file has changed. */
  readonly stamp: string;
}

/** Reads static pod manifests from the host and from a URL. */
export interface Manifests {
  /** Returns an empty list when the directory does not exist. */
  names(directory: string): Promise<readonly string[]>;
  /** Returns undefined when the path is not a regular file. */
  look(path: string): Promise<ManifestFile | undefined>;
  read(path: string): Promise<string>;
  /**
   * Does not follow redirects. Rejects with the URL and status of an unsuccessful response, and when the response is
   * larger than `maxBytes`.
   */
  fetch(url: string, options: { readonly timeoutMs: number; readonly maxBytes: number }): Promise<string>;
}

/**
 * `VolumeFiles` for paths outside the kubelet's own directories, whose file system may hang. Operations reject after a
 * deadline and do not block a thread of the process.
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
