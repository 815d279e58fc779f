/** Limits of pods on the node's own disk. Source: pkg/kubelet/eviction/eviction_manager.go localStorageEviction. */
import { containerStorageMessage, emptyDirMessage, podStorageMessage } from './messages.ts';

/** A limit in bytes, and as it was written. */
export interface Limit {
  readonly bytes: number;
  readonly text: string;
}

export interface LocalStorage {
  /** On disk; those in memory are held to their limit by the kernel. */
  readonly volumes: readonly { readonly name: string; readonly limit: Limit | undefined; readonly used: number }[];
  /** What belongs to no container alone. */
  readonly shared: number;
  /** Writable layer and logs. */
  readonly containers: readonly { readonly name: string; readonly limit: Limit | undefined; readonly used: number }[];
}

/**
 * The message of the eviction; undefined: all limits are kept. Volumes first, then the pod as a whole, then its
 * containers.
 */
export function exceededLimit({ volumes, shared, containers }: LocalStorage): string | undefined {
  for (const { name, limit, used } of volumes)
    if (limit !== undefined && used > limit.bytes) return emptyDirMessage(name, limit.text);
  const limits = containers.flatMap(({ limit }) => (limit === undefined ? [] : [limit.bytes]));
  if (limits.length > 0) {
    const limit = limits.reduce((sum, bytes) => sum + bytes, 0);
    const used = [...volumes, ...containers].reduce((sum, each) => sum + each.used, shared);
    if (used > limit) return podStorageMessage(limit);
  }
  for (const { name, limit, used } of containers)
    if (limit !== undefined && used > limit.bytes) return containerStorageMessage(name, limit.text);
  return undefined;
}
