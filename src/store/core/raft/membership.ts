import { RaftError } from './errors.ts';
import { jointReached, jointVote, type VoteResult } from './quorum.ts';
import type { ConfChange, ConfState, ConfStep, NodeId } from './types.ts';

/** More voters slow down writes without a noticeable gain in safety. */
export const MAX_VOTERS = 7;
const MAX_LEARNERS = 16;

/**
 * An immutable configuration: voters and learners. `after` returns the next configuration. Any quorum of a
 * configuration and any quorum of the next configuration share a voter, which makes the change safe (thesis §4.1,
 * §4.3).
 */
export class Membership {
  readonly incoming: ReadonlySet<NodeId>;
  /** Empty unless the configuration is joint. */
  readonly outgoing: ReadonlySet<NodeId>;
  readonly learners: ReadonlySet<NodeId>;
  readonly learnersNext: ReadonlySet<NodeId>;

  constructor(conf: ConfState) {
    this.incoming = new Set(conf.voters);
    this.outgoing = new Set(conf.outgoing);
    this.learners = new Set(conf.learners);
    this.learnersNext = new Set(conf.learnersNext);
  }

  get joint(): boolean {
    return this.outgoing.size > 0;
  }

  isVoter(id: NodeId): boolean {
    return this.incoming.has(id) || this.outgoing.has(id);
  }

  has(id: NodeId): boolean {
    return this.isVoter(id) || this.learners.has(id);
  }

  /** All member IDs, sorted, so that actions on all members have the same order everywhere. */
  ids(): NodeId[] {
    return [...new Set([...this.incoming, ...this.outgoing, ...this.learners])].sort();
  }

  reached(by: (id: NodeId) => number): number {
    return jointReached(this.incoming, this.outgoing, by);
  }

  voteResult(votes: ReadonlyMap<NodeId, boolean>): VoteResult {
    return jointVote(this.incoming, this.outgoing, votes);
  }

  conf(): ConfState {
    return {
      voters: [...this.incoming].sort(),
      outgoing: [...this.outgoing].sort(),
      learners: [...this.learners].sort(),
      learnersNext: [...this.learnersNext].sort(),
    };
  }

  /**
   * Returns the configuration after `change`. Throws `BadConfChange` if the change is not valid for this configuration.
   */
  after(change: ConfChange): Membership {
    const next = change.steps.length === 0 ? this.#left() : this.#stepped(change.steps);
    const voters = next.voters.length;
    if (voters === 0 || voters > MAX_VOTERS)
      throw refused(`a cluster has 1 to ${MAX_VOTERS} voters; the change would result in ${voters}`);
    if (next.learners.length + next.learnersNext.length > MAX_LEARNERS)
      throw refused(`a cluster has at most ${MAX_LEARNERS} learners`);
    return new Membership(next);
  }

  #left(): ConfState {
    if (!this.joint) throw refused('there is no joint configuration to leave');
    return {
      voters: [...this.incoming],
      outgoing: [],
      learners: [...this.learners, ...this.learnersNext],
      learnersNext: [],
    };
  }

  #stepped(steps: readonly ConfStep[]): ConfState {
    if (this.joint) throw refused('the joint configuration must be left first');
    if (new Set(steps.map((step) => step.id)).size !== steps.length) throw refused('a member occurs twice');
    const voters = new Set(this.incoming);
    const learners = new Set(this.learners);
    const learnersNext = new Set<NodeId>();
    const joint = steps.length > 1;
    for (const { op, id } of steps) {
      if (id === '') throw refused('a member has no name');
      const wasVoter = voters.delete(id);
      const wasLearner = learners.delete(id);
      if (op === 'addVoter') voters.add(id);
      // A voter of the outgoing half cannot become a learner before the joint configuration is left.
      else if (op === 'addLearner') (wasVoter && joint ? learnersNext : learners).add(id);
      else if (!wasVoter && !wasLearner) throw refused(`member ${id} is not in the configuration`);
    }
    return {
      voters: [...voters],
      outgoing: joint ? [...this.incoming] : [],
      learners: [...learners],
      learnersNext: [...learnersNext],
    };
  }
}

function refused(why: string): RaftError {
  return new RaftError('BadConfChange', why);
}
