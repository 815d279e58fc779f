import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Message, NodeId } from '../../core/raft/index.ts';
import type { MemberTable } from './peer-protocol.ts';

export interface NewcomerDeps {
  readonly id: NodeId;
  readonly log: Log;
  readonly others: readonly NodeId[];
  readonly ask: (member: NodeId) => Promise<MemberTable>;
  readonly step: (message: Message) => void;
  /** This member was there before and has forgotten it. */
  readonly wiped: (error: CodedError) => void;
}

/**
 * Stands before the raft machine of a member that believes to be new. One whose disk was wiped believes so too, and must not promise anything: so before it listens to
 * another member it asks whether that one has heard of it. It is over with the first word of a leader that has not.
 */
export class Newcomer {
  readonly #deps: NewcomerDeps;
  readonly #unproven: Set<NodeId>;
  readonly #asking = new Set<NodeId>();

  constructor(deps: NewcomerDeps) {
    this.#deps = deps;
    this.#unproven = new Set(deps.others);
  }

  /** Passes `message` on, or drops it: there will be others. */
  message(message: Message): void {
    const { from, type } = message;
    if (this.#unproven.has(from)) {
      void this.#prove(from);
      return;
    }
    if (type === 'append' || type === 'heartbeat' || type === 'snapshot') this.#unproven.clear();
    this.#deps.step(message);
  }

  async #prove(member: NodeId): Promise<void> {
    const { ask, id, wiped, log } = this.#deps;
    if (this.#asking.has(member)) return;
    this.#asking.add(member);
    try {
      const { members } = await ask(member);
      const known = members.find((each) => each.id === id);
      if (known !== undefined && known.name !== '' && this.#unproven.has(member)) wiped(wipedError(known.name));
      else this.#unproven.delete(member);
    } catch (error) {
      log.v(2, 'a member could not be asked', { member, cause: messageOf(error) });
    } finally {
      this.#asking.delete(member);
    }
  }
}

export function wipedError(name: string): CodedError {
  return new CodedError('wiped', `member ${name} has been part of the cluster before, and its data directory is empty`);
}
