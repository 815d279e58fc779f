/**
 * Log level: the kinds of entries that the log of a cluster may contain. A member cannot apply an entry of an unknown
 * kind, nor the entries after it, so a new kind is written only after every member has reported support for it. The
 * common level is stored in the log and never decreases. A member that does not support the common level stops with an
 * error. Changes of the stored format that older builds cannot read require a level too, see schema.ts. On managed
 * hosts the level rises only on request, after an update is committed on all hosts; until then each host can return to
 * the former build. Source: etcd server/etcdserver/server.go, monitorVersions (the cluster version).
 */

import { CodedError, messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock, Timer } from '../../../base/time/clock.ts';
import type { NodeId } from '../../core/raft/index.ts';
import type { Engine } from '../engine.ts';
import type { MemberTable } from '../peers/peer-protocol.ts';

/**
 * Level from which each kind of entry may be written. Builds that report no level support every kind that is not listed
 * here.
 */
export const LogLevel = {
  beginning: 1,
  /** From this level on, simple tokens are replicated to every member. */
  tokens: 2,
} as const;

/** The level that this build supports. */
export const NEWEST_LEVEL: number = LogLevel.tokens;

const RETRY_MS = 2000;

export interface LogLevelsDeps {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly log: Log;
  /** The level that this member supports. */
  readonly own: number;
  /** Whether the level rises only on request. */
  readonly onRequest: boolean;
  readonly fetchLevel: (member: NodeId) => Promise<Pick<MemberTable, 'level'>>;
}

export interface LevelReport {
  /** The level of the log. */
  readonly level: number;
  /** The level that the responding member supports. The leader responds to a request to raise the level. */
  readonly supported: number;
}

/** Raises the level of the log, on the leader, to the highest level that all members support. */
export class LogLevels {
  readonly #deps: LogLevelsDeps;
  #timer: Timer | undefined;
  #fetching = false;
  #lastCause = '';
  #stopped = false;

  constructor(deps: LogLevelsDeps) {
    this.#deps = deps;
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** Checks whether the log level can be raised. Call it when membership or leadership may have changed. */
  consider(): void {
    const { clock, onRequest } = this.#deps;
    if (onRequest || !this.#isWanted || this.#fetching) return;
    this.#timer?.cancel();
    this.#timer = clock.setTimer(0, () => void this.#keepRaising());
  }

  /** Raises the level to the highest level that all members support. Throws CodedError 'not-leader' on a follower. */
  async raise(): Promise<LevelReport> {
    this.#deps.engine.requireLeader();
    if (this.#isWanted) await this.#raise();
    return this.report;
  }

  get report(): LevelReport {
    const { engine, own } = this.#deps;
    return { level: engine.cluster.level, supported: own };
  }

  get #isWanted(): boolean {
    const { engine, own } = this.#deps;
    return !this.#stopped && engine.leads && engine.cluster.level < own;
  }

  async #keepRaising(): Promise<void> {
    if (!this.#isWanted) return;
    this.#fetching = true;
    const { clock, log } = this.#deps;
    try {
      await this.#raise();
    } catch (error) {
      log.v(2, 'raising the log level failed; retrying', { cause: messageOf(error) });
    } finally {
      this.#fetching = false;
    }
    if (this.#isWanted) this.#timer = clock.setTimer(RETRY_MS, () => void this.#keepRaising());
  }

  async #raise(): Promise<void> {
    const { engine, log } = this.#deps;
    const queried = engine.cluster.members.map(({ id }) => id).join();
    const level = await this.#common();
    // A member added in the meantime has not reported its level yet.
    const same = queried === engine.cluster.members.map(({ id }) => id).join();
    if (!same || level <= engine.cluster.level) return;
    await engine.command({ type: 'version', version: String(level) });
    log.info('raised the log level', { level });
  }

  /** The highest level that all members support. */
  async #common(): Promise<number> {
    const { engine, own, fetchLevel, log } = this.#deps;
    const others = engine.cluster.members.filter(({ id }) => id !== engine.replica.id);
    const levels = await Promise.all(
      others.map(async ({ id, name }) => {
        const level = await fetchLevel(id).then(
          (table) => table.level ?? LogLevel.beginning,
          () => LogLevel.beginning,
        );
        return { name: name || id, level };
      }),
    );
    const behind = levels.filter(({ level }) => level < own).map(({ name }) => name);
    const names = behind.join();
    if (names !== '' && names !== this.#lastCause)
      log.info('log level not raised: members run an older version or do not respond', {
        members: names,
      });
    this.#lastCause = names;
    return Math.min(own, ...levels.map(({ level }) => level));
  }
}

/** Throws CodedError 'too-old' when the log may hold entries that this member does not support. */
export function requireLevel(level: number, own: number): void {
  if (level <= own) return;
  throw new CodedError(
    'too-old',
    `the cluster's log is of level ${level}, but this version supports levels up to ${own}: the level was raised after all members were updated; start the newer version again`,
  );
}
