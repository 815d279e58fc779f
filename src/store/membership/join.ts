import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Message, NodeId } from '../core/raft/index.ts';
import type { MemberTable } from '../replication/peers/peer-protocol.ts';

export interface JoinCheckDeps {
  readonly id: NodeId;
  readonly log: Log;
  /** Other members if this member started with an empty log, otherwise empty. */
  readonly otherMembers: readonly NodeId[];
  /** Whether this member's log is still empty. */
  readonly isNew: () => boolean;
  readonly fetchMembers: (member: NodeId) => Promise<MemberTable>;
  readonly step: (message: Message) => void;
  /** Called when this member was part of the cluster before and its disk was wiped. */
  readonly wiped: (error: CodedError) => void;
}

/**
 * Filters raft messages of a member with an empty log. A member whose disk was wiped also starts with an empty log and
 * must not vote, so it requests a peer's member table before it accepts messages of that peer. An unknown sender has
 * joined later, perhaps as the replacement of a known member. The check ends with the first entry in the log.
 */
export class JoinCheck {
  readonly #deps: JoinCheckDeps;
  readonly #proven = new Set<NodeId>();
  readonly #fetching = new Set<NodeId>();

  constructor(deps: JoinCheckDeps) {
    this.#deps = deps;
  }

  get #isOver(): boolean {
    const { otherMembers, isNew } = this.#deps;
    return otherMembers.length === 0 || !isNew();
  }

  /** Delivers `message`, or drops it because raft retries. */
  message(message: Message): void {
    const { from } = message;
    if (this.#isOver || this.#proven.has(from)) this.#deps.step(message);
    else void this.#prove(from);
  }

  async #prove(member: NodeId): Promise<void> {
    const { id, wiped, log } = this.#deps;
    if (this.#fetching.has(member)) return;
    this.#fetching.add(member);
    try {
      const { members } = await this.#fetch(member);
      const known = members.find((each) => each.id === id);
      // A removed member is notified on the peer stream.
      if (this.#isOver || known === undefined) return;
      if (known.name !== '') wiped(wipedError(known.name));
      else this.#proven.add(member);
    } catch (error) {
      log.v(2, 'peer query failed', { member, cause: messageOf(error) });
    } finally {
      this.#fetching.delete(member);
    }
  }

  /**
   * Requests the member table from `member` or, if its address is unknown, from a peer that lists it. Rejects when
   * neither responds.
   */
  async #fetch(member: NodeId): Promise<MemberTable> {
    const { otherMembers, fetchMembers } = this.#deps;
    if (otherMembers.includes(member)) return fetchMembers(member);
    // A replacement listens at the address of the member that it replaced.
    for (const other of otherMembers) {
      const table = await fetchMembers(other).catch(() => undefined);
      if (table?.members.some(({ id }) => id === member)) return table;
    }
    throw new CodedError('peer-unreachable', `no reachable peer knows member ${member}`);
  }
}

export function wipedError(name: string): CodedError {
  return new CodedError('wiped', `member ${name} has been part of the cluster before, and its data directory is empty`);
}

/** Cluster to which a host's store belonged before its data went missing. */
export interface FormerCluster {
  readonly id: string;
  readonly dataDirectory: string;
}

/**
 * Error for missing data: an empty store would hide the data of the cluster, which may be on a file system that is not
 * mounted yet.
 */
export function storeMissing({ id, dataDirectory }: FormerCluster): CodedError {
  return new CodedError(
    'store-missing',
    `${dataDirectory}: the store of cluster ${id} is missing; mount its file system, run hyperedge snapshot restore FILE, or give it up with hyperedge members new-cluster`,
  );
}
