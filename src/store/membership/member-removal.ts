/**
 * Shutdown of a removed member. The other members may need this member's vote until the removal is on their disks,
 * because they may not know yet that the removal is committed, or lose it in a crash. In a cluster of two voters, the
 * other voter could then never be elected. Therefore, this member continues to vote and to accept entries until a
 * majority of the remaining voters has persisted its removal. etcd waits for one second instead.
 */

import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { NodeId } from '../core/raft/index.ts';
import type { DialPeer } from '../disk/port.ts';
import { queryPeer } from '../recovery/replacement.ts';
import { decodeMembers, type MemberTable, PeerPath } from '../replication/peers/peer-protocol.ts';
import type { Member } from './cluster.ts';

export interface RemovalDeps {
  readonly id: NodeId;
  /** Undefined when there are no peers. */
  readonly dial: DialPeer | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly members: () => readonly Member[];
  readonly stopped: () => boolean;
}

const REQUEST_TIMEOUT_MS = 1000;
const RETRY_MS = 500;

/** Resolves when a majority of the other voters has persisted the removal, or this member is stopped. */
export async function removalPersisted(deps: RemovalDeps): Promise<void> {
  const { id, dial, clock, log, members, stopped } = deps;
  if (dial === undefined) return;
  const known = new Map<NodeId, Member>();
  for (let logged = false; !stopped(); ) {
    for (const member of members()) known.set(member.id, member);
    known.delete(id);
    const tables = await queryMembers([...known.values()], dial);
    if (isRemovalPersisted(id, tables)) return;
    for (const table of tables.values()) for (const member of table.members) known.set(member.id, member);
    if (!logged) log.warn('member was removed; waiting until a majority of the other voters has persisted the removal');
    logged = true;
    await new Promise<void>((resolve) => clock.setTimer(RETRY_MS, resolve));
  }
}

async function queryMembers(members: readonly Member[], dial: DialPeer): Promise<ReadonlyMap<NodeId, MemberTable>> {
  const tables = new Map<NodeId, MemberTable>();
  await Promise.all(
    members.map(async ({ id, peerUrls }) => {
      try {
        tables.set(
          id,
          decodeMembers(await queryPeer(dial, peerUrls, PeerPath.members, new Uint8Array(), REQUEST_TIMEOUT_MS)),
        );
      } catch (error) {
        if (!(error instanceof Error)) throw error;
      }
    }),
  );
  return tables;
}

/**
 * Whether any reported configuration without `id` is on the disks of a majority of its voters. `tables`: reports of the
 * members.
 */
export function isRemovalPersisted(id: NodeId, tables: ReadonlyMap<NodeId, MemberTable>): boolean {
  const hasPersisted = (table: MemberTable | undefined): boolean =>
    table?.written === true && table.members.every((member) => member.id !== id);
  return [...tables.values()].filter(hasPersisted).some(({ voters }) => {
    const agreed = voters.filter((voter) => hasPersisted(tables.get(voter)));
    return agreed.length > voters.length / 2;
  });
}
