/** Local ephemeral storage limits of pods. Source: pkg/kubelet/eviction/eviction_manager.go localStorageEviction. */
import { containerStorageMessage, emptyDirMessage, podStorageMessage } from './messages.ts';

/** A limit in bytes and as written in the spec. */
export interface Limit {
  readonly bytes: number;
  readonly text: string;
}

export interface LocalStorage {
  /**
   * emptyDir volumes on disk or in huge pages. Those of medium Memory are absent, because the kernel enforces their
   * limits.
   */
  readonly volumes: readonly {
    readonly name: string;
    /** Whether the volume counts towards the pod's ephemeral storage. */
    readonly onDisk: boolean;
    readonly limit: Limit | undefined;
    readonly used: number;
  }[];
  /** Bytes of files that all containers of the pod share. */
  readonly shared: number;
  /** Usage of each container: writable layer and logs. */
  readonly containers: readonly { readonly name: string; readonly limit: Limit | undefined; readonly used: number }[];
}

/**
 * Message of the eviction; undefined if no limit is exceeded. Volumes are checked first, then the pod as a whole, then
 * its containers.
 */
export function exceededLimit({ volumes, shared, containers }: LocalStorage): string | undefined {
  for (const { name, limit, used } of volumes)
    if (limit !== undefined && used > limit.bytes) return emptyDirMessage(name, limit.text);
  const limits = containers.flatMap(({ limit }) => (limit === undefined ? [] : [limit.bytes]));
  if (limits.length > 0) {
    const limit = limits.reduce((sum, bytes) => sum + bytes, 0);
    const onDisk = volumes.filter((volume) => volume.onDisk);
    const used = [...onDisk, ...containers].reduce((sum, each) => sum + each.used, shared);
    if (used > limit) return podStorageMessage(limit);
  }
  for (const { name, limit, used } of containers)
    if (limit !== undefined && used > limit.bytes) return containerStorageMessage(name, limit.text);
  return undefined;
}
