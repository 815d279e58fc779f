/**
 * Corruption checks: rows are read continuously for their checksums, and members compare the checksum of the whole
 * store. A member that differs from a majority replaces itself. Without a majority the CORRUPT alarm stops the cluster
 * until an operator disarms it.
 */

import { CodedError, messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock, Timer } from '../../../base/time/clock.ts';
import type { StoreLog } from '../../disk/port.ts';
import type { Engine } from '../engine.ts';
import type { Command } from '../peers/entry-codec.ts';
import type { StoreHash } from '../peers/peer-protocol.ts';
import type { Peers } from '../peers/peers.ts';
import { ALARM_CORRUPT } from './alarms.ts';

export interface CorruptionDeps {
  readonly engine: Engine;
  readonly storage: StoreLog;
  readonly clock: Clock;
  readonly log: Log;
  readonly peers: () => Peers | undefined;
  readonly command: (command: Command) => Promise<void>;
  /** Interval of the leader's comparison, like etcd's `--experimental-corrupt-check-time`. 0 means twelve hours. */
  readonly compareMs: number;
}

const DAY_MS = 24 * 3600_000;
const DEFAULT_COMPARE_MS = DAY_MS / 2;
const HASH_MS = 60_000;
const START_COMPARE_MS = 10_000;
/** Time for which this member waits until it has applied the revision to be compared. */
const BEHIND_MS = 5000;
/** Period in which all rows are read once. */
const SCRUB_MS = DAY_MS;
const SCRUB_BYTES = 1 << 20;
const SCRUB_STEP_MS = [1000, 3600_000] as const;
/** Member ID of an alarm raised when no majority agrees. Source: etcd corrupt.go. */
const NO_MAJORITY = '0';

export class CorruptionCheck {
  readonly #deps: CorruptionDeps;
  #compareTimer: Timer | undefined;
  #scrubTimer: Timer | undefined;
  #scrubbed = 0;
  #stopped = false;

  constructor(deps: CorruptionDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#armCompare();
    this.#armScrub();
  }

  stop(): void {
    this.#stopped = true;
    this.#compareTimer?.cancel();
    this.#scrubTimer?.cancel();
  }

  /**
   * Checksum of this store at `revision`, where 0 means the newest revision, and the compaction revision on which the
   * checksum depends. Throws MvccError, CodedError 'busy'.
   */
  async hashAt(revision: number): Promise<StoreHash> {
    const { engine, storage } = this.#deps;
    await this.#caughtUp(revision);
    const settled = await engine.settledRevision(revision);
    const { compacted } = engine.machine;
    const hash = await storage.hash(settled);
    // Compaction may have removed rows while they were read.
    if (engine.machine.compacted !== compacted)
      throw new CodedError('busy', 'the revision was compacted during the check');
    return { revision: settled, compacted, hash };
  }

  async #caughtUp(revision: number): Promise<void> {
    const { engine, clock } = this.#deps;
    const deadline = clock.monotonicMs() + BEHIND_MS;
    while (engine.machine.visible < revision && clock.monotonicMs() < deadline) {
      await new Promise<void>((resolve) => clock.setTimer(20, resolve));
    }
  }

  #armCompare(): void {
    const { clock, log, compareMs, engine } = this.#deps;
    if (this.#stopped) return;
    this.#compareTimer = clock.setTimer(compareMs > 0 ? compareMs : DEFAULT_COMPARE_MS, () => {
      const comparing = engine.leads ? this.compare() : Promise.resolve();
      comparing
        .catch((error: unknown) => log.v(2, 'corruption check failed', { cause: messageOf(error) }))
        .finally(() => this.#armCompare());
    });
  }

  /** Compares the members; runs on the leader. An alarm is raised after two comparisons that show a difference. */
  async compare(): Promise<void> {
    const { engine, log, command } = this.#deps;
    const first = await this.#dissenters();
    if (first === undefined || first.length === 0) return;
    const dissenters = await this.#dissenters();
    if (dissenters === undefined) return;
    for (const member of dissenters.filter((each) => first.includes(each))) {
      const known = engine.cluster.alarms.some((each) => each.member === member && each.alarm === ALARM_CORRUPT);
      if (known) continue;
      if (member === NO_MAJORITY) log.error('member data differs and no majority agrees');
      else log.error('member data differs from the majority', { member });
      await command({ type: 'alarm', raised: true, member, alarm: ALARM_CORRUPT });
    }
  }

  /**
   * Compares this store with those of the other members as soon as enough of them respond. Throws CodedError
   * 'dissents'.
   */
  async compareOwn(): Promise<void> {
    const { engine, clock, log } = this.#deps;
    const deadline = clock.monotonicMs() + START_COMPARE_MS;
    while (!this.#stopped && clock.monotonicMs() < deadline) {
      const dissenters = await this.#dissenters().catch(() => undefined);
      if (dissenters?.includes(engine.replica.id) || dissenters?.includes(NO_MAJORITY))
        throw new CodedError('dissents', 'the data of this member differs from the data of the other members');
      if (dissenters !== undefined) return;
      await new Promise<void>((resolve) => clock.setTimer(500, resolve));
    }
    log.warn('corruption check skipped; too few members respond');
  }

  /**
   * Voters whose checksum differs from that of a majority of all voters. `NO_MAJORITY` when no majority agrees.
   * Undefined when too few respond.
   */
  async #dissenters(): Promise<readonly string[] | undefined> {
    const { engine, peers, log } = this.#deps;
    const { id } = engine.replica;
    const { voters } = engine.cluster.conf;
    const own = await this.hashAt(0);
    const hashes = new Map([[id, own.hash]]);
    await Promise.all(
      voters.map(async (voter) => {
        const connected = peers();
        if (voter === id || connected === undefined) return;
        try {
          const theirs = await connected.hash(voter, own.revision, HASH_MS);
          if (theirs.compacted === own.compacted) hashes.set(voter, theirs.hash);
        } catch (error) {
          log.v(2, 'corruption check of a member failed', { member: voter, cause: messageOf(error) });
        }
      }),
    );
    if (hashes.size < 2) return undefined;
    return dissentingMembers(hashes, Math.floor(voters.length / 2) + 1);
  }

  /**
   * Schedules the next read of about a megabyte of rows, so that all rows are read once a day and a small store is read
   * once an hour.
   */
  #armScrub(): void {
    const { clock, storage, log } = this.#deps;
    if (this.#stopped) return;
    const next = async (): Promise<number> => {
      const { bytes } = await storage.size();
      const [least, most] = SCRUB_STEP_MS;
      return Math.min(most, Math.max(least, SCRUB_MS / Math.ceil(bytes / SCRUB_BYTES)));
    };
    next().then(
      (delayMs) => {
        if (this.#stopped) return;
        this.#scrubTimer = clock.setTimer(delayMs, () => {
          storage
            .scrub(this.#scrubbed)
            .then((after) => {
              this.#scrubbed = after;
            })
            // Corruption found by a read stops the store through `onFatal`.
            .catch((error: unknown) => log.v(2, 'checksum scan failed', { cause: messageOf(error) }))
            .finally(() => this.#armScrub());
        });
      },
      () => {},
    );
  }
}

/** Members that differ from the checksum of at least `majority` members; see `NO_MAJORITY`. Exported for its test. */
export function dissentingMembers(hashes: ReadonlyMap<string, number>, majority: number): readonly string[] {
  const counts = new Map<number, number>();
  for (const hash of hashes.values()) counts.set(hash, (counts.get(hash) ?? 0) + 1);
  if (counts.size === 1) return [];
  const right = [...counts].find(([, count]) => count >= majority)?.[0];
  if (right === undefined) return [NO_MAJORITY];
  return [...hashes].filter(([, hash]) => hash !== right).map(([member]) => member);
}
