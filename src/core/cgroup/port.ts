/** A mounted cgroup hierarchy. */
export interface Hierarchy {
  /** Absolute mount point. */
  readonly mount: string;
  readonly version: 'v1' | 'v2';
  /** v1: those mounted here (`cpu`, `cpuacct`, `name=systemd`). v2: those in cgroup.controllers. */
  readonly controllers: readonly string[];
}

export type CgroupOperation =
  | { readonly op: 'mkdir'; readonly directory: string }
  /**
   * Takes the parent's value where the file is still empty: a v1 cpuset accepts no process before it has cpus and mems.
   */
  | { readonly op: 'inherit'; readonly directory: string; readonly file: string }
  /** `optional`: a kernel without this knob, or a cgroup we may not delegate from, is no reason to stop. */
  | {
      readonly op: 'write';
      readonly directory: string;
      readonly file: string;
      readonly value: string;
      readonly optional: boolean;
    };

/** Reading and writing the mounted hierarchies; `io/cgroupfs`. */
export interface CgroupFileSystem {
  /** What is mounted, from /proc/self/mountinfo. */
  hierarchies(): Promise<readonly Hierarchy[]>;
  /** In order. Throws `CodedError('cgroup-write')` naming the file when a write that is not optional fails. */
  perform(operations: readonly CgroupOperation[]): Promise<void>;
  /** Names of the directories below; empty when there is none such. */
  list(directory: string): Promise<readonly string[]>;
  /** undefined when there is no such file. */
  read(directory: string, file: string): Promise<string | undefined>;
  /** Kills every process inside, then removes the directory with all below it. What is gone is fine. */
  removeTree(directory: string): Promise<void>;
}

/**
 * A property of a unit under its D-Bus name; those that limit resources are unsigned 64-bit numbers. Source:
 * org.freedesktop.systemd1(5).
 */
export interface UnitProperty {
  readonly name: string;
  readonly value: bigint;
}

/** Slices of the service manager; `io/systemd`. Only with the systemd driver. */
export interface SliceManager {
  /** Starts the slice (its parents come with it) and sets its run-time properties. Idempotent. */
  ensure(slice: string, properties: readonly UnitProperty[]): Promise<void>;
  /** Stops it with all units inside. A slice that is not there is fine. */
  stop(slice: string): Promise<void>;
}
