/** What the machine config daemon needs of its host. */
import type { JsonValue } from '../../../api/meta/object.ts';
import type { BootLoader, Tree, UnitFile } from '../../../core/ignition/port.ts';

/** The files that configs have made of this host, and the originals. Calls are made one at a time. */
export interface HostFiles {
  /**
   * Finishes or undoes what a power cut has interrupted, and returns the note of the last change that is in force.
   * Throws CodedErrors.
   */
  open(): Promise<JsonValue | undefined>;
  /**
   * Makes the tree true, restores the originals of files that are not in it any more, and replaces the note: all of it
   * or, when it throws, nothing. Throws CodedErrors that name the file.
   */
  apply(tree: Tree, note: JsonValue): Promise<void>;
  /** Replaces the note alone. */
  note(note: JsonValue): Promise<void>;
  /** What differs from the applied tree, one line a file, without contents. */
  differences(): Promise<readonly string[]>;
  /**
   * True once after an administrator has made `/run/machine-config-daemon-force`, which is removed: files that differ
   * are restored.
   */
  takeForce(): Promise<boolean>;
  /** Calls when a file of the applied tree may have changed; follows `apply`. No polling. */
  watch(listener: () => void): { close(): void };
  /** Facts that a tree depends on. */
  facts(units: readonly string[]): Promise<HostFileFacts>;
}

export interface HostFileFacts {
  readonly homeOf: (user: string) => string | undefined;
  /** Of the units that were asked for, as they are without any config. */
  readonly unitFile: (name: string) => UnitFile | undefined;
}

/** Units of the host's service manager. Each throws CodedErrors. */
export interface HostUnits {
  daemonReload(): Promise<void>;
  reload(unit: string): Promise<void>;
  restart(unit: string): Promise<void>;
  /** Only when it runs. */
  tryRestart(unit: string): Promise<void>;
  /** A unit that is not there is fine. */
  stop(unit: string): Promise<void>;
  /** Reboots the machine; resolves when that has begun. */
  reboot(): Promise<void>;
}

/** The boot loader whose arguments this host may change. */
export interface HostKernel {
  /** Differs after each boot. */
  bootId(): Promise<string>;
  /** Arguments of the running kernel. */
  arguments(): Promise<string>;
  loader(): Promise<BootLoaderFile | UnknownBootLoader>;
  /** Makes what the boot loader reads from its changed file; nothing for most. Throws CodedErrors. */
  install(): Promise<void>;
}

export interface BootLoaderFile {
  readonly kind: BootLoader;
  readonly file: string;
  /** Empty where there is no such file yet. */
  readonly text: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

export interface UnknownBootLoader {
  /** Where an administrator changes the arguments. */
  readonly file: string;
}
