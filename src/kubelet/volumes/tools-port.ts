/** Host operations for volumes beyond directories. Implemented by `src/kubelet/io/volume-tools`. */

/** Errors contain the tool that failed, or the missing tool and the package to install. */
export interface VolumeTools {
  /** Returns undefined when the file does not exist. */
  read(path: string): Promise<string | undefined>;
  removeFile(path: string): Promise<void>;
  /** Removes only an empty directory. Succeeds when it does not exist. */
  removeEmptyDirectory(path: string): Promise<void>;
  /** Calls mount(8) with a type. Does not create the target. */
  mount(mount: MountCall): Promise<void>;
  /** Unmounts all mounts at `target`, but none below it. Succeeds when there is none. */
  unmount(target: string): Promise<void>;
  /** Makes mounts that containers create below a directory visible on the host. Idempotent. */
  shareMounts(directory: string): Promise<void>;
  /** Reverts `shareMounts`, after no mount is left below the directory. */
  unshareMounts(directory: string): Promise<void>;
  /** Creates a sparse file of at least `bytes`, readable by root only. Never shrinks an existing file. */
  makeImage(path: string, bytes: number): Promise<void>;
  /**
   * Calls `create` if `path` does not exist. Throws if this host has created `path` before, so that a volume whose file
   * system is not mounted is not replaced by an empty one.
   */
  createOnce(path: string, create: () => Promise<unknown>): Promise<void>;
  /** Returns the loop device of a file. Attaches one if there is none. */
  attachLoop(file: string, options: { readonly readOnly: boolean }): Promise<string>;
  /** Adjusts the loop device to the size of its file. */
  resizeLoop(file: string): Promise<void>;
  detachLoop(file: string): Promise<void>;
  /**
   * Limits the size of a directory with the project quota of its file system. Returns false when the file system is not
   * mounted with project quotas or the host lacks the tools.
   */
  limitDirectory(directory: string, bytes: number): Promise<boolean>;
  /** Logs in to a target and returns the device of its LUN. Source: open-iscsi iscsiadm(8). */
  iscsiLogin(target: IscsiTarget): Promise<string>;
  /** Names of the targets with which the host has a session. Source: open-iscsi iscsiadm(8). */
  iscsiSessions(): Promise<readonly string[]>;
  iscsiLogout(target: Pick<IscsiTarget, 'portals' | 'iqn'>): Promise<void>;
  /** Creates a file system on an empty device, and mounts it. */
  formatAndMount(device: string, target: string, fsType: string, readOnly: boolean): Promise<void>;
}

export interface MountCall {
  readonly type: string;
  readonly source: string;
  readonly target: string;
  readonly options: readonly string[];
}

export interface IscsiTarget {
  readonly portals: readonly string[];
  readonly iqn: string;
  readonly lun: number;
  readonly interface: string;
  /** Names and passwords. If undefined, there is no authentication. */
  readonly chap?: IscsiChap;
}

/** Settings of iscsiadm by name. An empty record means no authentication for that step. */
export interface IscsiChap {
  readonly discovery: Readonly<Record<string, string>>;
  readonly session: Readonly<Record<string, string>>;
}
