/**
 * How a member that was removed ends. Whoever is left may not have heard yet that the removal is committed, or may have heard of it and forget it with
 * the power: until it is on their disks they may need this member's vote, and of two voters the other one could never lead again. So it stays, grants
 * votes and takes in what it is sent, without a say of its own, until a majority of those who vote now has written down that it is gone. etcd stays for a second and
 * hopes for the best.
 */
import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/log.ts';
import type { NodeId } from '../../../core/raft/index.ts';
import type { DialPeer } from '../port.ts';
import { askPeer } from '../recovery/replacement.ts';
import { decodeMembers, type MemberTable, PeerPath } from '../replication/peer-protocol.ts';
import type { Member } from './cluster.ts';

export interface DepartureDeps {
  readonly id: NodeId;
  /** Undefined: there are no others. */
  readonly dial: DialPeer | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly members: () => readonly Member[];
  readonly stopped: () => boolean;
}

const ASK_MS = 1000;
const RETRY_MS = 500;

/** Resolves when the others can do without this member, or it is stopped. */
export async function departure(deps: DepartureDeps): Promise<void> {
  const { id, dial, clock, log, members, stopped } = deps;
  if (dial === undefined) return;
  const known = new Map<NodeId, Member>();
  for (let told = false; !stopped(); ) {
    for (const member of members()) known.set(member.id, member);
    known.delete(id);
    const tables = await askAll([...known.values()], dial);
    if (isForgotten(id, tables)) return;
    for (const table of tables.values()) for (const member of table.members) known.set(member.id, member);
    if (!told)
      log.warn(
        'this member has been removed from the cluster, and stays until a majority of the others has written that down: they may need its vote until then',
      );
    told = true;
    await new Promise<void>((resolve) => clock.setTimer(RETRY_MS, resolve));
  }
}

async function askAll(members: readonly Member[], dial: DialPeer): Promise<ReadonlyMap<NodeId, MemberTable>> {
  const tables = new Map<NodeId, MemberTable>();
  await Promise.all(
    members.map(async ({ id, peerUrls }) => {
      try {
        tables.set(id, decodeMembers(await askPeer(dial, peerUrls, PeerPath.members, new Uint8Array(), ASK_MS)));
      } catch (error) {
        if (!(error instanceof Error)) throw error;
      }
    }),
  );
  return tables;
}

/** Whether a majority of the voters of some configuration without `id` has that on disk. `tables`: what each one says. */
export function isForgotten(id: NodeId, tables: ReadonlyMap<NodeId, MemberTable>): boolean {
  const forgets = (table: MemberTable | undefined): boolean =>
    table?.written === true && table.members.every((member) => member.id !== id);
  return [...tables.values()].filter(forgets).some(({ voters }) => {
    const agreed = voters.filter((voter) => forgets(tables.get(voter)));
    return agreed.length > voters.length / 2;
  });
}
