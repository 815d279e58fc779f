/** Applies committed entries: proposals of this member as the leader, and proposals of other leaders. */

import { messageOf } from '../../base/errors.ts';
import type { Clock } from '../../base/time/clock.ts';
import { splitEvents } from '../core/messages/event.ts';
import { MvccError } from '../core/mvcc/errors.ts';
import type { DecidedRevision } from '../core/mvcc/machine.ts';
import type { ConfChange, ConfState, Entry } from '../core/raft/index.ts';
import { EntryKind } from '../disk/port.ts';
import type { AppliedState } from './applied.ts';
import type { Compactor } from './maintenance/compactor.ts';
import type { Leases } from './maintenance/leases.ts';
import { type Command, decodeCommand, toStored } from './peers/entry-codec.ts';
import type { Pending } from './pending.ts';
import type { Proposer } from './proposer.ts';
import type { StoreView } from './store-view.ts';

/** The replicated state of users and permissions. */
export interface AuthState {
  /** Applies a committed command. Returns whether the state has changed. */
  apply(command: Uint8Array): boolean;
  /** Whether a command may change permissions. */
  changesPermissions(command: Uint8Array): boolean;
  export(): Uint8Array;
  import(state: Uint8Array): void;
}

/** Names under which the cluster membership and the users with their permissions are stored. */
export const Document = { cluster: 'cluster', auth: 'auth' } as const;

export interface ApplierDeps {
  readonly view: StoreView;
  readonly proposer: Proposer;
  readonly leases: Leases;
  readonly applied: AppliedState;
  readonly compactor: Pick<Compactor, 'compacted'>;
  readonly auth: () => AuthState;
  readonly clock: Clock;
  readonly onPublish: (revisions: readonly DecidedRevision[]) => void;
  readonly onMembers: () => void;
}

export class Applier {
  readonly #deps: ApplierDeps;
  /** Own revisions that are applied and not visible yet. */
  readonly #settle: Pending[] = [];
  /** Newest revision that an applied entry created. */
  revision = 0;
  /** Bytes of entries applied since the applied index was last written. */
  bytes = 0;
  /** Index of the last configuration change applied here. */
  #confApplied = 0;

  constructor(deps: ApplierDeps) {
    this.#deps = deps;
  }

  get confApplied(): number {
    return this.#confApplied;
  }

  apply(entries: readonly Entry[], conf: ConfState | undefined): void {
    const { proposer } = this.#deps;
    let published = 0;
    for (const entry of entries) {
      const own = proposer.committed(entry.index, entry.term);
      if (own !== undefined) {
        proposer.undecided.committed(entry.index, entry.term);
        if (own.decided !== undefined) published = own.decided.revision;
        else if (published > 0) {
          this.#publish(published);
          published = 0;
        }
        this.#applyOwn(own);
      } else {
        if (published > 0) this.#publish(published);
        published = 0;
        if (entry.kind === 'data' && proposer.pending > 0) proposer.lose();
        // Proposals that this member made before it lost leadership.
        const lost = proposer.undecided.committed(entry.index, entry.term);
        if (entry.kind === 'data') this.#applyForeign(entry, lost);
        else if (entry.kind === 'conf') this.#applyConf(entry.index, entry.change, conf);
      }
      if (entry.kind === 'data') this.bytes += entry.data.length;
    }
    if (published > 0) this.#publish(published);
  }

  #publish(revision: number): void {
    const { view, proposer } = this.#deps;
    view.machine.stored(revision);
    proposer.show(revision);
    for (const own of this.#settle.splice(0)) own.resolve();
  }

  /** Own proposals are acknowledged when their revision is visible: it is on this disk and on a quorum. */
  #applyOwn(own: Pending): void {
    if (own.lease !== undefined) this.#deps.applied.revoked(own.lease.id);
    if (own.decided !== undefined) {
      this.revision = own.decided.revision;
      this.#settle.push(own);
      return;
    }
    if (own.lease !== undefined) {
      own.resolve();
      return;
    }
    try {
      this.#applyCommand(own.command as Command, own.index);
      own.resolve();
    } catch (error) {
      own.reject(error instanceof Error ? error : new Error(messageOf(error)));
    }
  }

  /**
   * Applies an entry that is not a pending proposal of this leader. `lost`: proposals that this member made before it
   * lost leadership and that became this entry.
   */
  #applyForeign(entry: Entry, lost: readonly Pending[]): void {
    const { view, leases, applied, onPublish } = this.#deps;
    const stored = toStored(entry);
    if (stored.kind === EntryKind.command) {
      try {
        const command = decodeCommand(stored.body);
        this.#applyCommand(command, stored.index);
        if (command.type === 'checkpoint') leases.adoptRemaining(command.leases);
        for (const pending of lost) pending.resolve();
      } catch (error) {
        // Every member rejects the command in the same way.
        if (!(error instanceof MvccError)) throw error;
        for (const pending of lost) pending.reject(error);
      }
      return;
    }
    const { machine } = view;
    const accepted = machine.accept(stored.revision, splitEvents(stored.body));
    machine.stored(stored.revision);
    this.revision = stored.revision;
    if (stored.lease !== 0n) {
      machine.leases.remove(stored.lease);
      applied.revoked(stored.lease);
    }
    onPublish([accepted]);
    for (const pending of lost) pending.resolve();
  }

  #applyCommand(command: Command, index: number): void {
    const { view, leases, applied, compactor, auth, onMembers } = this.#deps;
    const { cluster } = view;
    switch (command.type) {
      case 'grant':
        leases.applyGrant(command.id, command.ttlSeconds);
        return;
      case 'revoke':
        leases.applyRevoke(command.id);
        return;
      case 'checkpoint':
        leases.applyCheckpoint(command.leases);
        return;
      case 'compact':
        view.machine.compact(command.revision);
        applied.compactedAt(command.revision);
        compactor.compacted(index);
        return;
      case 'auth':
        if (auth().apply(command.command)) applied.document(Document.auth, auth().export());
        return;
      case 'alarm':
        cluster.setAlarm(command.raised, command.member, command.alarm);
        break;
      case 'attributes':
        cluster.setAttributes(command.member, command.name, command.clientUrls);
        break;
      case 'peerUrls':
        cluster.setPeerUrls(command.member, command.peerUrls);
        break;
      case 'version':
        cluster.version = command.version;
        break;
    }
    applied.document(Document.cluster, cluster.encode());
    onMembers();
  }

  #applyConf(index: number, change: ConfChange, conf: ConfState | undefined): void {
    const { view, applied, clock, onMembers } = this.#deps;
    const { cluster } = view;
    cluster.applyConf(change, conf);
    applied.document(Document.cluster, cluster.encode());
    this.#confApplied = index;
    // A removed member waits until its removal is on disk. If it lost the removal in a crash, it could request votes
    // from removed members.
    clock.setTimer(0, () => {
      if (!view.stopped) view.replica.requestWrite();
    });
    onMembers();
  }
}
