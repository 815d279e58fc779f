/**
 * Which kinds of entries a cluster's log may hold. A member that does not know a kind cannot apply what comes behind it, so a kind that is new is not
 * written before every member has said that it knows it. The level that all have reached is in the log itself and never goes back; whoever has not
 * reached it ends and says so. Source: etcd server/etcdserver/server.go, monitorVersions, whose cluster version this is.
 */
import type { Clock, Timer } from '../../../base/clock.ts';
import { CodedError, messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { NodeId } from '../../../core/raft/index.ts';
import type { Engine } from './engine.ts';
import type { MemberTable } from './peer-protocol.ts';

/** From which level on the log may hold what. Of a build that does not say its level everything but what is listed here is known. */
export const LogLevel = {
  beginning: 1,
  /** Every member is told of simple tokens. */
  tokens: 2,
} as const;

/** What this build knows. */
export const NEWEST_LEVEL: number = LogLevel.tokens;

const RETRY_MS = 2000;

export interface LogLevelsDeps {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly log: Log;
  /** What this member knows. */
  readonly own: number;
  readonly ask: (member: NodeId) => Promise<Pick<MemberTable, 'level'>>;
}

/** Where this member leads, raises the level of the log to what all members know. */
export class LogLevels {
  readonly #deps: LogLevelsDeps;
  #timer: Timer | undefined;
  #asking = false;
  #complaint = '';
  #stopped = false;

  constructor(deps: LogLevelsDeps) {
    this.#deps = deps;
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** Members, or who leads, may have changed. */
  consider(): void {
    const { clock } = this.#deps;
    if (!this.#isWanted || this.#asking) return;
    this.#timer?.cancel();
    this.#timer = clock.setTimer(0, () => void this.#raise());
  }

  get #isWanted(): boolean {
    const { engine, own } = this.#deps;
    return !this.#stopped && engine.leads && engine.cluster.level < own;
  }

  async #raise(): Promise<void> {
    if (!this.#isWanted) return;
    this.#asking = true;
    const { engine, clock, log } = this.#deps;
    const asked = engine.cluster.members.map(({ id }) => id).join();
    try {
      const level = await this.#common();
      // Whoever has come meanwhile has not been asked.
      const same = asked === engine.cluster.members.map(({ id }) => id).join();
      if (same && level > engine.cluster.level) {
        await engine.command({ type: 'version', version: String(level) });
        log.info('all members know newer kinds of entries: they may be written from now on', { level });
      }
    } catch (error) {
      log.v(2, 'the level of the log could not be raised yet', { cause: messageOf(error) });
    } finally {
      this.#asking = false;
    }
    if (this.#isWanted) this.#timer = clock.setTimer(RETRY_MS, () => void this.#raise());
  }

  /** What all know. */
  async #common(): Promise<number> {
    const { engine, own, ask, log } = this.#deps;
    const others = engine.cluster.members.filter(({ id }) => id !== engine.replica.id);
    const levels = await Promise.all(
      others.map(async ({ id, name }) => {
        const level = await ask(id).then(
          (table) => table.level ?? LogLevel.beginning,
          () => LogLevel.beginning,
        );
        return { name: name || id, level };
      }),
    );
    const behind = levels.filter(({ level }) => level < own).map(({ name }) => name);
    const complaint = behind.join();
    if (complaint !== '' && complaint !== this.#complaint)
      log.info('newer kinds of entries wait for members of older builds, or that do not answer', {
        members: complaint,
      });
    this.#complaint = complaint;
    return Math.min(own, ...levels.map(({ level }) => level));
  }
}

/** Throws CodedError 'too-old' when the cluster's log may hold what this member does not know. */
export function requireLevel(level: number, own: number): void {
  if (level <= own) return;
  throw new CodedError(
    'too-old',
    `the cluster's log is of level ${level}, and this build knows up to ${own}: all members had been updated; start the newer build again`,
  );
}
