import type { CgroupNode } from './tree.ts';

/**
 * Puts a desired cgroup tree into effect. Implementations: `io/cgroupfs` (writes below the mounted hierarchies) and `io/systemd`
 * (slices through the service manager). Which of the two a host uses is its cgroup driver; never both.
 */
export interface CgroupManager {
  readonly driver: 'cgroupfs' | 'systemd';
  /** What the host has mounted; found by `start`. */
  readonly version: 'v1' | 'v2' | 'hybrid';
  /** Finds the hierarchies and makes sure the root of the tree can hold limits. */
  start(): Promise<void>;
  /** Creates what is missing and brings the limits up to date, parents before children. Idempotent. */
  apply(nodes: readonly CgroupNode[]): Promise<void>;
  /** Kills what is left inside, then removes the cgroup with everything below it. What is gone already is fine. */
  remove(node: Pick<CgroupNode, 'path'>): Promise<void>;
  /** UIDs of the pods that have a cgroup, in the form they have in the directory's name, decoded. */
  listPods(): Promise<readonly string[]>;
  /** The name that the container runtime understands for this node: a path for cgroupfs, a slice name for systemd. */
  runtimeParent(node: Pick<CgroupNode, 'path'>): string;
  /** Usage of a node of the tree; undefined when it does not exist. */
  stats(node: Pick<CgroupNode, 'path'>): Promise<CgroupStats | undefined>;
}

export interface CgroupStats {
  readonly cpuUsageNanoSeconds: number;
  readonly memoryUsageBytes: number;
  /** Usage less inactive file pages. */
  readonly memoryWorkingSetBytes: number;
  readonly memoryRssBytes: number;
  readonly pids: number;
}
