import type { DialPeer } from '../../disk/port.ts';
import { admitMember } from '../../membership/admission.ts';
import { hex } from '../../membership/cluster.ts';
import { JoinCheck } from '../../membership/join.ts';
import { type Removal, removedError } from '../../membership/removal.ts';
import { replaceMember } from '../../recovery/replacement.ts';
import type { OpenParts } from '../../server/open-parts.ts';
import type { Parts } from '../../server/server-parts.ts';
import type { EtcdServerDeps } from '../../server/server-port.ts';
import type { Settings } from '../../server/settings.ts';
import type { Engine } from '../engine.ts';
import type { Replica } from '../replica.ts';
import type { MemberTable } from './peer-protocol.ts';
import { Peers } from './peers.ts';

export interface PeerParts {
  readonly deps: EtcdServerDeps;
  readonly settings: Settings;
  readonly parts: Pick<Parts, 'engine' | 'corruption' | 'snapshots' | 'peerQueries'>;
  readonly open: OpenParts;
  readonly removal: Removal;
}

const REQUEST_TIMEOUT_MS = 3000;

/** Connections of this member to its peers, and the requests that it serves for them. */
export function connectPeers(dial: DialPeer, replica: Replica, { deps, settings, parts, open, removal }: PeerParts) {
  const { clock, log, initialCluster } = deps;
  const { engine, corruption, snapshots, peerQueries } = parts;
  const joinCheck = createJoinCheck(deps, engine, replica, open);
  const token = initialCluster?.token ?? '';
  const members = (): MemberTable => memberTable(engine, token, settings.logLevel);
  return new Peers({
    id: replica.id,
    clusterId: engine.identity.clusterId,
    dial,
    clock,
    log: log.named('peers'),
    life: Buffer.from(settings.random.bytes(5)).readUIntBE(0, 5),
    handler: {
      message: (message) => joinCheck.message(message),
      leaseUpdates: (from, updates) => {
        if (from === engine.replica.leader) open.leases?.applyRemaining(updates);
      },
      replace: async (request) => {
        await replaceMember(engine, request, { clock, log, token });
        return members();
      },
      join: async (request) => {
        await admitMember(engine, request, { clock, log, token, maxLearners: deps.maxLearners ?? 1 });
        return members();
      },
      hash: (revision) => corruption.hashAt(revision),
      forwarded: (forward) => peerQueries.answer(forward.path, forward.message) ?? open.route.forwarded(forward),
      snapshotPiece: (piece) => snapshots.receive(piece),
      members,
      // A member counts as removed only once the removal is on this disk. Until then, the log of this member may depend
      // on entries that the removed member sent as leader.
      wasRemoved: (member) => engine.cluster.wasRemoved(member) && engine.membersWritten,
      removed: () => void removal.reportedByPeer(),
      unreachable: (to) => engine.replica.hint((raft) => raft.unreachable(to)),
      disconnected: (member) => {
        if (engine.replica.leader === member) engine.replica.hint((raft) => raft.leaderConfirmedDead(member));
      },
    },
  });
}

function createJoinCheck(deps: EtcdServerDeps, engine: Engine, replica: Replica, open: OpenParts): JoinCheck {
  const { id } = replica;
  const { voters } = replica.conf;
  const known = voters.includes(id) ? voters : engine.cluster.members.map((member) => member.id);
  const isNew = (): boolean => replica.raft.lastIndex <= 1;
  return new JoinCheck({
    id,
    log: deps.log,
    otherMembers: isNew() ? known.filter((member) => member !== id) : [],
    isNew,
    fetchMembers: (member) => open.connectedPeers.members(member, REQUEST_TIMEOUT_MS),
    step: (message) => engine.replica.step(message),
    wiped: deps.onFatal,
  });
}

/** Member table for other members. Throws CodedError 'removed' on a removed member, whose table is outdated. */
function memberTable({ cluster, identity, membersWritten }: Engine, token: string, level: number): MemberTable {
  if (cluster.wasRemoved(hex(identity.memberId))) throw removedError();
  const { members, conf } = cluster;
  return { clusterId: identity.clusterId, members, voters: conf.voters, written: membersWritten, token, level };
}
