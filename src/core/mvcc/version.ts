/** Where the value of a version is kept; see `Version.pool`. */
export const PoolId = { none: 0, current: 1, past: 2 } as const;
export type PoolId = (typeof PoolId)[keyof typeof PoolId];

/**
 * What one transaction did to one key. The value lives in the encoded key-value, which may have been dropped from
 * memory.
 */
export interface Version {
  readonly key: string;
  readonly revision: number;
  /** Position within its revision. */
  readonly sub: number;
  readonly createRevision: number;
  /** 1 for the put that created the key; 0 marks a delete. */
  readonly version: number;
  readonly lease: bigint;
  /** The encoded `KeyValue` with tag and length, as `EncodedEvent` has it, while it is in memory. */
  kv: Buffer | undefined;
  /** Bytes of `kv`, known even when it is not in memory. */
  readonly size: number;
  /** Kept by the cache of values. */
  pool: PoolId;
}

/** All versions of one key that are not compacted away, oldest first. */
export interface KeyHistory {
  readonly key: string;
  readonly versions: Version[];
}

export function isDelete(version: Version): boolean {
  return version.version === 0;
}

/** The version in force at `revision`, a delete included; undefined when the key had never been written by then. */
export function versionAt(history: KeyHistory, revision: number): Version | undefined {
  const { versions } = history;
  for (let i = versions.length - 1; i >= 0; i -= 1) {
    const version = versions[i] as Version;
    if (version.revision <= revision) return version;
  }
  return undefined;
}

/** The key's value at `revision`; undefined when it does not exist then. */
export function liveAt(history: KeyHistory | undefined, revision: number): Version | undefined {
  if (history === undefined) return undefined;
  const version = versionAt(history, revision);
  return version === undefined || isDelete(version) ? undefined : version;
}
