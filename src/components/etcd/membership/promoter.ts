/** Completes the membership of replacements and joining members, which no administrator promotes. */
import type { Clock, Timer } from '../../../base/clock.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Engine } from '../replication/engine.ts';
import type { Member } from './cluster.ts';

const PROMOTE_MS = 200;
/** Entries that a learner may lag behind when it is promoted: what a busy leader writes in a moment. */
const MAX_LAG = 500;
/** A joining member that has not answered for so long is removed; a repeated join adds it again. */
const SILENT_MS = 120_000;

/** On the leader: promotes them when they have caught up, and removes joining members that fall silent before. */
export class Promoter {
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #log: Log;
  /** When each joining member was last seen, by id. */
  readonly #seenMs = new Map<string, number>();
  #timer: Timer | undefined;
  #stopped = false;

  constructor(engine: Engine, clock: Clock, log: Log) {
    this.#engine = engine;
    this.#clock = clock;
    this.#log = log;
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** Membership or leadership may have changed. */
  consider(): void {
    if (this.#stopped || this.#timer !== undefined || !this.#engine.leads || this.#waiting.length === 0) {
      if (!this.#engine.leads) this.#seenMs.clear();
      return;
    }
    this.#timer = this.#clock.setTimer(PROMOTE_MS, () => {
      void this.#settle().finally(() => {
        this.#timer = undefined;
        this.consider();
      });
    });
  }

  get #waiting(): readonly Member[] {
    const { cluster } = this.#engine;
    return cluster.members.filter(({ id, replacement, joining }) => (replacement || joining) && cluster.isLearner(id));
  }

  async #settle(): Promise<void> {
    const { replica } = this.#engine;
    const { progress, lastIndex } = replica.raft.status();
    for (const member of this.#waiting) {
      const { id, name } = member;
      const { active, state, match } = progress.get(id) ?? { active: false, state: 'probe', match: 0 };
      if (name === '' || !active || state !== 'replicate' || match < lastIndex - MAX_LAG) {
        if (member.joining) await this.#removeSilent(member, active && match > 0);
        continue;
      }
      try {
        await this.#engine.changeConf({ steps: [{ op: 'addVoter', id }] });
        this.#log.info('learner promoted', { name, member: id, reason: member.joining ? 'joined' : 'replacement' });
        this.#warnEven();
      } catch (error) {
        this.#log.v(2, 'promoting a learner failed; retrying', { member: id, cause: messageOf(error) });
      }
    }
  }

  async #removeSilent({ id, name, peerUrls }: Member, isHeard: boolean): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    const seenMs = this.#seenMs.get(id);
    if (seenMs === undefined || isHeard) this.#seenMs.set(id, nowMs);
    else if (nowMs - seenMs >= SILENT_MS) {
      try {
        await this.#engine.changeConf({ steps: [{ op: 'remove', id }] });
        this.#seenMs.delete(id);
        this.#log.warn('removed a member that fell silent while it joined', {
          name,
          member: id,
          peerUrls: peerUrls.join(),
        });
      } catch (error) {
        this.#log.v(2, 'removing a silent member failed; retrying', { member: id, cause: messageOf(error) });
      }
    }
  }

  #warnEven(): void {
    const voters = this.#engine.cluster.conf.voters.length;
    if (voters % 2 === 0)
      this.#log.warn('the store has an even number of members, which survives no more failures than one fewer', {
        members: voters,
      });
  }
}
