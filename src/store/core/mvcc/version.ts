/** Cache pool of a version's value; see `Version.pool`. */
export const PoolId = { none: 0, current: 1, past: 2 } as const;
export type PoolId = (typeof PoolId)[keyof typeof PoolId];

/**
 * Change of one key by one transaction. The value is in the encoded key-value, which may have been dropped from memory.
 */
export interface Version {
  readonly key: string;
  readonly revision: number;
  /** Position within its revision. */
  readonly sub: number;
  readonly createRevision: number;
  /** 1 for the put that created the key; 0 for a delete. */
  readonly version: number;
  readonly lease: bigint;
  /** The encoded `KeyValue` with tag and length, as `EncodedEvent` contains it; undefined while not in memory. */
  kv: Buffer | undefined;
  /** Length of `kv` in bytes, also known while it is not in memory. */
  readonly size: number;
  /** Cache pool that holds `kv`. Only the value cache sets this field. */
  pool: PoolId;
}

/** All versions of one key that were not compacted, oldest first. */
export interface KeyHistory {
  readonly key: string;
  readonly versions: Version[];
}

export function isDelete(version: Version): boolean {
  return version.version === 0;
}

/** Latest version at or before `revision`, including deletes; undefined if the key was not written by then. */
export function versionAt(history: KeyHistory, revision: number): Version | undefined {
  const { versions } = history;
  for (let i = versions.length - 1; i >= 0; i -= 1) {
    const version = versions[i] as Version;
    if (version.revision <= revision) return version;
  }
  return undefined;
}

/** Version of the key at `revision`; undefined if the key did not exist then. */
export function liveAt(history: KeyHistory | undefined, revision: number): Version | undefined {
  if (history === undefined) return undefined;
  const version = versionAt(history, revision);
  return version === undefined || isDelete(version) ? undefined : version;
}
