import { CodedError, messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Message, NodeId } from '../../../core/raft/index.ts';
import type { MemberTable } from '../replication/peer-protocol.ts';

export interface NewcomerDeps {
  readonly id: NodeId;
  readonly log: Log;
  /** Who was there beside this one when it began, or was taken in; nobody where it has a log. */
  readonly others: readonly NodeId[];
  /** Its log is as empty as at the beginning. */
  readonly isNew: () => boolean;
  readonly ask: (member: NodeId) => Promise<MemberTable>;
  readonly step: (message: Message) => void;
  /** This member was there before and has forgotten it. */
  readonly wiped: (error: CodedError) => void;
}

/**
 * Stands before the raft machine of a member that believes to be new. One whose disk was wiped believes so too, and must not promise anything: so before it listens to
 * another member it asks whether that one has heard of it; one that it has not heard of itself has come to the cluster later, perhaps in the place of one that
 * it has. It is over when it has something in its log.
 */
export class Newcomer {
  readonly #deps: NewcomerDeps;
  readonly #proven = new Set<NodeId>();
  readonly #asking = new Set<NodeId>();

  constructor(deps: NewcomerDeps) {
    this.#deps = deps;
  }

  get #isOver(): boolean {
    const { others, isNew } = this.#deps;
    return others.length === 0 || !isNew();
  }

  /** Passes `message` on, or drops it: there will be others. */
  message(message: Message): void {
    const { from } = message;
    if (this.#isOver || this.#proven.has(from)) this.#deps.step(message);
    else void this.#prove(from);
  }

  async #prove(member: NodeId): Promise<void> {
    const { id, wiped, log } = this.#deps;
    if (this.#asking.has(member)) return;
    this.#asking.add(member);
    try {
      const { members } = await this.#ask(member);
      const known = members.find((each) => each.id === id);
      // Where it is not a member any more it is told so on the connection.
      if (this.#isOver || known === undefined) return;
      if (known.name !== '') wiped(wipedError(known.name));
      else this.#proven.add(member);
    } catch (error) {
      log.v(2, 'a member could not be asked', { member, cause: messageOf(error) });
    } finally {
      this.#asking.delete(member);
    }
  }

  /** What `member` says, wherever it is. Rejects when it cannot be found or does not answer. */
  async #ask(member: NodeId): Promise<MemberTable> {
    const { others, ask } = this.#deps;
    if (others.includes(member)) return ask(member);
    // It answers where another one of those was, if anywhere that is known here.
    for (const other of others) {
      const table = await ask(other).catch(() => undefined);
      if (table?.members.some(({ id }) => id === member)) return table;
    }
    throw new CodedError('peer-unreachable', `nobody who answers knows member ${member}`);
  }
}

export function wipedError(name: string): CodedError {
  return new CodedError('wiped', `member ${name} has been part of the cluster before, and its data directory is empty`);
}
