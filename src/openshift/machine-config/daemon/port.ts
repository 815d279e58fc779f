/** Ports of the machine config daemon to its host. */
import type { BootLoader, Tree, UnitFile } from '../core/ignition/port.ts';

/** Files on this host that configs manage, and their original contents. Calls are serialized. */
export interface HostFiles {
  /**
   * Completes or reverts a change that a power failure has interrupted. Returns the note that is then in effect;
   * undefined if there is none. Must be called first. Throws CodedErrors.
   */
  open(): Promise<unknown>;
  /**
   * Applies a tree in one transaction: writes its files, restores the originals of files that are no longer in it, and
   * replaces the note. Throws CodedErrors that name the file; nothing has changed then.
   */
  apply(tree: Tree, note: unknown): Promise<void>;
  /** Replaces the note only. */
  note(note: unknown): Promise<void>;
  /** Describes how the files differ from the applied tree, one line per file. File contents are not included. */
  differences(): Promise<readonly string[]>;
  /**
   * Returns true if an administrator has created `/run/machine-config-daemon-force`, and deletes this file. The caller
   * then restores the files that differ.
   */
  takeForce(): Promise<boolean>;
  /** Calls the listener when a file of the applied tree may have changed. Uses inotify and does not poll. */
  watch(listener: () => void): { close(): void };
  /**
   * Reads facts that are required to compute a tree of files: home directories, and the unit files named in `units`.
   */
  facts(units: readonly string[]): Promise<HostFileFacts>;
}

export interface HostFileFacts {
  readonly homeOf: (user: string) => string | undefined;
  /** Returns the unit file that the host has without any config; undefined if it has none. */
  readonly unitFile: (name: string) => UnitFile | undefined;
}

/** Service manager of the host. Each method throws CodedErrors. */
export interface HostUnits {
  daemonReload(): Promise<void>;
  reload(unit: string): Promise<void>;
  restart(unit: string): Promise<void>;
  /** Restarts the unit only if it is running. */
  tryRestart(unit: string): Promise<void>;
  /** Stops the unit. Succeeds if the unit does not exist. */
  stop(unit: string): Promise<void>;
  /** Reboots the machine. Resolves when the reboot has started. */
  reboot(): Promise<void>;
}

/** Kernel of the host and its boot loader. */
export interface HostKernel {
  /** Boot ID of the running kernel, which changes with every boot. */
  bootId(): Promise<string>;
  arguments(): Promise<string>;
  loader(): Promise<BootLoaderFile | UnknownBootLoader>;
  /**
   * Runs the boot loader's generator after its file has changed. Does nothing for boot loaders without a generator.
   * Throws CodedErrors.
   */
  install(): Promise<void>;
}

export interface BootLoaderFile {
  readonly kind: BootLoader;
  readonly file: string;
  /** Content of the file; empty if it does not exist yet. */
  readonly text: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

export interface UnknownBootLoader {
  /** File in which an administrator can change the kernel arguments. */
  readonly file: string;
}
