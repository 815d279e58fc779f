/** What volumes need of the host beside directories. Implemented by `src/io/volume-tools`. */

/** Errors name the tool that failed, or the one that is not installed and what to install. */
export interface VolumeTools {
  /** Undefined: there is no such file. */
  read(path: string): Promise<string | undefined>;
  removeFile(path: string): Promise<void>;
  /** Only when it is empty; none is fine. */
  removeEmptyDirectory(path: string): Promise<void>;
  /** mount(8) with a type; makes nothing. */
  mount(mount: MountCall): Promise<void>;
  /** Unmounts what lies on top of `target`; nothing mounted is fine. */
  unmount(target: string): Promise<void>;
  /** Lets mounts that containers make below a directory reach the host. Idempotent. */
  shareMounts(directory: string): Promise<void>;
  /** Undoes `shareMounts` once nothing is mounted below the directory. */
  unshareMounts(directory: string): Promise<void>;
  /** A sparse file of at least `bytes`, readable by root only. Never shrinks one that is there. */
  makeImage(path: string, bytes: number): Promise<void>;
  /** The loop device of a file; attached now unless it is already. */
  attachLoop(file: string, readOnly: boolean): Promise<string>;
  /** Lets the loop device of a file follow its size. */
  resizeLoop(file: string): Promise<void>;
  detachLoop(file: string): Promise<void>;
  /**
   * Limits what a directory holds by its file system's project quota. False: its file system is not mounted with
   * project quotas, or the host has not the tools.
   */
  limitDirectory(directory: string, bytes: number): Promise<boolean>;
  /** Logs in to a target and returns the device of its unit. Source: open-iscsi iscsiadm(8). */
  iscsiLogin(target: IscsiTarget): Promise<string>;
  iscsiLogout(target: Pick<IscsiTarget, 'portals' | 'iqn'>): Promise<void>;
  /** Makes a file system on a device that has none; then mounts it. */
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
  /** Names and passwords; undefined: without authentication. */
  readonly chap?: IscsiChap;
}

/** Settings of iscsiadm by name; none: that step is without authentication. */
export interface IscsiChap {
  readonly discovery: Readonly<Record<string, string>>;
  readonly session: Readonly<Record<string, string>>;
}
