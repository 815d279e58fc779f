import { randomBytes } from 'node:crypto';
import { NEWEST_LEVEL } from '../replication/maintenance/log-level.ts';
import type { EtcdServerDeps, StoreBounds } from './server-port.ts';

/** etcd's defaults. */
const SLOW = { applyMs: 100, requestMs: 300 };
const TIMING = { heartbeatMs: 100, electionMs: 1000, adapts: true };
const RANDOM = { random: () => Math.random(), bytes: (length: number) => randomBytes(length) };

/** Default bounds on queues and caches. */
const BOUNDS: StoreBounds = {
  maxAppendBytes: 1 << 20,
  maxCommittedBytes: 4 << 20,
  maxInflightMessages: 256,
  maxInflightBytes: 16 << 20,
  maxUncommittedBytes: 64 << 20,
  maxCachedBytes: 4 << 20,
  maxPendingReads: 10_000,
  keepEntries: 5000,
};

/** Optional dependencies of a store with their defaults. */
export interface Settings {
  readonly random: NonNullable<EtcdServerDeps['random']>;
  readonly defer: NonNullable<EtcdServerDeps['defer']>;
  readonly slow: NonNullable<EtcdServerDeps['slow']>;
  readonly timing: NonNullable<EtcdServerDeps['timing']>;
  readonly bounds: StoreBounds;
  readonly logLevel: number;
  /** Unique for every start of the store. */
  readonly runId: string;
}

export function settingsOf(deps: EtcdServerDeps): Settings {
  const { random = RANDOM, slow = SLOW, timing = TIMING, logLevel = NEWEST_LEVEL } = deps;
  return {
    random,
    defer: deps.defer ?? ((run) => void setImmediate(run)),
    slow,
    timing,
    bounds: { ...BOUNDS, ...deps.bounds },
    logLevel,
    runId: Buffer.from(random.bytes(6)).toString('hex'),
  };
}
