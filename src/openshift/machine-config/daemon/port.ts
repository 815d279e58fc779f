/** Ports of the machine config daemon to its host. */
import type { BootLoader, Tree, UnitFile } from '../core/ignition/port.ts';

/** Files that configs have written on this host, and the original files. Calls are serialized. */
export interface HostFiles {
  /**
   * Completes or reverts a change that a power failure has interrupted, and returns the note of the effective change,
   * undefined if there is none. Throws CodedErrors.
   */
  open(): Promise<unknown>;
  /**
   * Writes the tree, restores the originals of files that are no longer in it, and replaces the note, all or nothing.
   * Throws CodedErrors that name the file.
   */
  apply(tree: Tree, note: unknown): Promise<void>;
  /** Replaces only the note. */
  note(note: unknown): Promise<void>;
  /** Differences from the applied tree, one line per file, without contents. */
  differences(): Promise<readonly string[]>;
  /**
   * Returns true once after an administrator has created `/run/machine-config-daemon-force`, and deletes that file.
   * Differing files are then restored.
   */
  takeForce(): Promise<boolean>;
  /**
   * Calls the listener when a file of the tree that was last applied may have changed. Uses inotify and does not poll.
   */
  watch(listener: () => void): { close(): void };
  /** Facts about the host, such as home directories and unit files, that are needed to compute a tree of files. */
  facts(units: readonly string[]): Promise<HostFileFacts>;
}

export interface HostFileFacts {
  readonly homeOf: (user: string) => string | undefined;
  /** Requested units as they are without any config. */
  readonly unitFile: (name: string) => UnitFile | undefined;
}

/** Units of the host's service manager. Each method throws CodedErrors. */
export interface HostUnits {
  daemonReload(): Promise<void>;
  reload(unit: string): Promise<void>;
  restart(unit: string): Promise<void>;
  /** Restarts the unit only if it runs. */
  tryRestart(unit: string): Promise<void>;
  /** Succeeds when the unit does not exist. */
  stop(unit: string): Promise<void>;
  /** Reboots the machine. Resolves when the reboot has started. */
  reboot(): Promise<void>;
}

/** Boot loader whose kernel arguments this host may change. */
export interface HostKernel {
  /** Changes with every boot. */
  bootId(): Promise<string>;
  arguments(): Promise<string>;
  loader(): Promise<BootLoaderFile | UnknownBootLoader>;
  /**
   * Generates the boot loader's input from its changed file. Most boot loaders need no such step. Throws CodedErrors.
   */
  install(): Promise<void>;
}

export interface BootLoaderFile {
  readonly kind: BootLoader;
  readonly file: string;
  /** Empty when the file does not exist yet. */
  readonly text: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

export interface UnknownBootLoader {
  /** File in which an administrator changes the arguments. */
  readonly file: string;
}
