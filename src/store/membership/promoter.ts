/** Completes the membership of replacements and joining members, which no administrator promotes. */

import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { Engine } from '../replication/engine.ts';
import type { Member } from './cluster.ts';

const PROMOTE_MS = 200;
/** Check interval while a learner waits for another member to join. */
const HELD_MS = 2_000;
/** Maximum lag of a learner at promotion: about as many entries as a busy leader writes in a moment. */
const MAX_LAG = 500;
/** A joining member that has not responded for this time is removed. A repeated join adds it again. */
const SILENT_MS = 120_000;

/**
 * On the leader: promotes learners that have caught up, and removes joining members that stop responding before that. A
 * joining member whose vote would make the number of voters even stays a learner until another learner can be promoted
 * with it: an even number of voters tolerates no more failures than the next lower odd number, but has one more member
 * that can fail.
 */
export class Promoter {
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #log: Log;
  /** Time at which each joining member was last active, by ID. */
  readonly #seenMs = new Map<string, number>();
  /** ID of the learner that was logged as waiting for another member to join. */
  #held = '';
  #isHolding = false;
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

  /** Checks which members to promote or remove. Call it when membership or leadership may have changed. */
  consider(): void {
    if (this.#stopped || this.#timer !== undefined || !this.#engine.leads || this.#waiting.length === 0) {
      if (!this.#engine.leads) this.#seenMs.clear();
      return;
    }
    this.#timer = this.#clock.setTimer(this.#isHolding ? HELD_MS : PROMOTE_MS, () => {
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
    const { cluster, replica } = this.#engine;
    const { progress, lastIndex } = replica.raft.status();
    const ready: Member[] = [];
    for (const member of this.#waiting) {
      const { id, name } = member;
      const { active, state, match } = progress.get(id) ?? { active: false, state: 'probe', match: 0 };
      if (name !== '' && active && state === 'replicate' && match >= lastIndex - MAX_LAG) ready.push(member);
      // A member that has started may be off for longer, like a voter.
      else if (member.joining && name === '') await this.#removeUnresponsive(member, active && match > 0);
    }
    const replacements = ready.filter(({ replacement }) => replacement);
    for (const each of replacements) await this.#promote([each]);
    const joined = ready.filter(({ replacement }) => !replacement);
    const isOdd = cluster.conf.voters.length % 2 === 1;
    const [first, second] = joined;
    this.#isHolding = isOdd && first !== undefined && this.#waiting.length === 1;
    if (first === undefined) return;
    if (!isOdd) await this.#promote([first]);
    else if (second !== undefined) await this.#promote([first, second]);
    else this.#reportHeld(first);
  }

  /** Promotes two members in one joint step, so that the number of voters is never even in between. */
  async #promote(members: readonly Member[]): Promise<void> {
    try {
      await this.#engine.changeConf({ steps: members.map(({ id }) => ({ op: 'addVoter' as const, id })) });
      for (const { id, name, joining } of members)
        this.#log.info('learner promoted', { name, member: id, reason: joining ? 'joined' : 'replacement' });
    } catch (error) {
      const ids = members.map(({ id }) => id).join();
      this.#log.v(2, 'promoting a learner failed; retrying', { members: ids, cause: messageOf(error) });
    }
  }

  #reportHeld({ id, name }: Member): void {
    if (this.#held === id) return;
    this.#held = id;
    this.#log.info('member stays a learner until another master joins', {
      name,
      member: id,
      voters: this.#engine.cluster.conf.voters.length,
    });
  }

  async #removeUnresponsive({ id, name, peerUrls }: Member, isResponsive: boolean): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    const seenMs = this.#seenMs.get(id);
    if (seenMs === undefined || isResponsive) this.#seenMs.set(id, nowMs);
    else if (nowMs - seenMs >= SILENT_MS) {
      try {
        await this.#engine.changeConf({ steps: [{ op: 'remove', id }] });
        this.#seenMs.delete(id);
        this.#log.warn('removed a joining member that stopped responding', {
          name,
          member: id,
          peerUrls: peerUrls.join(),
        });
      } catch (error) {
        this.#log.v(2, 'removing a member that does not respond failed; retrying', {
          member: id,
          cause: messageOf(error),
        });
      }
    }
  }
}
