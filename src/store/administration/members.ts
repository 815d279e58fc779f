/** The members of the store's cluster and their status, for `hyperedge members`. */
import { CodedError, messageOf } from '../../base/errors.ts';
import type { EtcdMember, EtcdStatus, StoreAccess } from './port.ts';

export interface MemberReport {
  readonly name: string;
  readonly id: string;
  readonly role: 'leader' | 'voter' | 'learner';
  readonly state: 'ok' | 'not-started' | 'unreachable';
  readonly peerUrls: readonly string[];
  readonly clientUrls: readonly string[];
  /** Number of log entries behind the most advanced member's applied index. */
  readonly lag?: number;
  readonly revision?: number;
  readonly raftTerm?: number;
  readonly raftIndex?: number;
  readonly raftApplied?: number;
  readonly dbBytes?: number;
  readonly dbInUseBytes?: number;
  readonly version?: string;
  /** Alarms, or the reason why the member is unreachable. */
  readonly errors: readonly string[];
}

export interface ClusterReport {
  readonly members: readonly MemberReport[];
  /** False without a quorum. The list is then one member's own configuration. */
  readonly quorum: boolean;
}

/** Time limits of the requests to the members. */
export interface ReportLimits {
  /** Time limit of the member list request, which needs a quorum. */
  readonly quorumMs: number;
  /** Time limit of each request to a single member. */
  readonly memberMs: number;
}

const LIMITS: ReportLimits = { quorumMs: 5000, memberMs: 5000 };

/** Throws CodedError 'unavailable' when no member responds. */
export async function clusterReport(access: StoreAccess, limits = LIMITS): Promise<ClusterReport> {
  const { members, quorum } = await listMembers(access, limits);
  const statuses = await Promise.all(members.map((member) => statusOf(access, member, limits.memberMs)));
  const furthest = Math.max(0, ...statuses.map((status) => (typeof status === 'string' ? 0 : status.raftApplied)));
  // A paused member may still report itself as leader, so the highest term is used.
  const term = Math.max(0, ...statuses.map((status) => (typeof status === 'string' ? 0 : status.raftTerm)));
  const leader = statuses
    .filter((status) => typeof status !== 'string')
    .find((status) => status.raftTerm === term && status.leader !== '')?.leader;
  return { quorum, members: members.map((member, i) => reportOf(member, statuses[i] ?? '', { furthest, leader })) };
}

async function listMembers(
  access: StoreAccess,
  { quorumMs, memberMs }: ReportLimits,
): Promise<{ readonly members: readonly EtcdMember[]; readonly quorum: boolean }> {
  const admin = access.open();
  try {
    return { members: await admin.members(quorumMs), quorum: true };
  } catch {
    return { members: await remembered(access, memberMs), quorum: false };
  } finally {
    admin.close();
  }
}

/** Member list of a cluster without a quorum, from the first member that responds. */
async function remembered(access: StoreAccess, memberMs: number): Promise<readonly EtcdMember[]> {
  let failure: unknown = new CodedError('unavailable', 'no endpoints');
  for (const endpoint of access.endpoints) {
    const admin = access.open([endpoint]);
    try {
      return await admin.localMembers(memberMs);
    } catch (error) {
      failure = error;
    } finally {
      admin.close();
    }
  }
  throw failure;
}

async function statusOf(access: StoreAccess, member: EtcdMember, memberMs: number): Promise<EtcdStatus | string> {
  if (member.clientUrls.length === 0) return '';
  const admin = access.open(member.clientUrls);
  try {
    const status = await admin.status(memberMs);
    return status.memberId === member.id
      ? status
      : `the member at ${member.clientUrls.join()} has the ID ${status.memberId}`;
  } catch (error) {
    return messageOf(error);
  } finally {
    admin.close();
  }
}

function reportOf(
  { id, name, peerUrls, clientUrls, learner }: EtcdMember,
  status: EtcdStatus | string,
  { furthest, leader }: { readonly furthest: number; readonly leader: string | undefined },
): MemberReport {
  const role = learner ? 'learner' : id === leader ? 'leader' : 'voter';
  const known = { name, id, role, peerUrls, clientUrls } as const;
  if (typeof status === 'string') {
    return { ...known, state: name === '' ? 'not-started' : 'unreachable', errors: status === '' ? [] : [status] };
  }
  const { revision, raftTerm, raftIndex, raftApplied, dbBytes, dbInUseBytes, version, errors } = status;
  const lag = furthest - raftApplied;
  const counts = { lag, revision, raftTerm, raftIndex, raftApplied, dbBytes, dbInUseBytes };
  return { ...known, state: 'ok', ...counts, version, errors };
}

/** Member with this name or ID. Throws CodedError 'not-found' with a list of the existing members. */
export function memberNamed<T extends Pick<EtcdMember, 'id' | 'name'>>(members: readonly T[], wanted: string): T {
  const id = wanted.toLowerCase().replace(/^0x/, '');
  const byName = members.filter((member) => member.name === wanted);
  const [found, ...others] = byName.length > 0 ? byName : members.filter((member) => member.id === id);
  if (found === undefined || others.length > 0) {
    const all = members
      .map((member) => `${member.name === '' ? '(not started)' : member.name} ${member.id}`)
      .join(', ');
    throw new CodedError(
      'not-found',
      found === undefined
        ? `no member is called ${wanted}; there are: ${all}`
        : `several members are called ${wanted}; give the id: ${all}`,
    );
  }
  return found;
}
