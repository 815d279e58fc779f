import { CodedError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import { Reader, type Writer } from '../../wire/protobuf/protobuf.ts';
import { encodeJoining, hex, type Member, memberIdOf } from '../membership/cluster.ts';
import type { Engine } from '../replication/engine.ts';
import type { Encoder } from './encode.ts';
import type { UnaryHandlers } from './kv-service.ts';
import { answerUnary } from './rpc-errors.ts';

export interface ClusterServiceDeps {
  readonly engine: Engine;
  readonly encoder: Encoder;
  readonly clock: Clock;
  readonly log: Log;
  readonly token: string;
  /** etcd's `--strict-reconfig-check`. */
  readonly strict: boolean;
  /** etcd's `--max-learners`. */
  readonly maxLearners: number;
  /** Called on the leader when a learner was promoted. */
  readonly promoted: () => void;
}

/** A learner may be promoted when it has this share of the leader's log. Source: etcd server.go, readyPercent. */
const READY_SHARE = 0.9;

/** `etcdserverpb.Cluster`. Membership changes are served by the leader. */
export function clusterService(deps: ClusterServiceDeps): UnaryHandlers {
  const { engine, encoder, log } = deps;
  const { cluster } = engine;

  const answerWithMembers = (added?: Member): Uint8Array => {
    // The header has no revision, as in etcd.
    const out = encoder.begin(0);
    // In a response that also contains the affected member, the list is the third field.
    if (added !== undefined) writeMember(out, 2, added, cluster.isLearner(added.id));
    for (const member of cluster.members)
      writeMember(out, added === undefined ? 2 : 3, member, cluster.isLearner(member.id));
    return out.finish();
  };

  return {
    '/etcdserverpb.Cluster/MemberList': (message, call) =>
      answerUnary(call, log, async () => {
        const { flag } = decode(message);
        if (flag) await engine.upToDate();
        return answerWithMembers();
      }),
    '/etcdserverpb.Cluster/MemberAdd': (message, call) =>
      answerUnary(call, log, async () => {
        const { urls, learner } = decodeAdd(message);
        const added = await addMember(deps, urls, learner);
        return answerWithMembers(added);
      }),
    '/etcdserverpb.Cluster/MemberRemove': (message, call) =>
      answerUnary(call, log, async () => {
        const { id } = decode(message);
        await removeMember(deps, id);
        return answerWithMembers();
      }),
    '/etcdserverpb.Cluster/MemberUpdate': (message, call) =>
      answerUnary(call, log, async () => {
        const { id, urls } = decode(message);
        engine.requireLeader();
        if (cluster.get(id) === undefined) throw new CodedError('member-not-found', id);
        checkUrls(engine, urls, id);
        await engine.command({ type: 'peerUrls', member: id, peerUrls: urls });
        return answerWithMembers();
      }),
    '/etcdserverpb.Cluster/MemberPromote': (message, call) =>
      answerUnary(call, log, async () => {
        const { id } = decode(message);
        await promoteMember(deps, id);
        return answerWithMembers();
      }),
  };
}

export type Adding = Pick<ClusterServiceDeps, 'engine' | 'clock' | 'token' | 'strict' | 'maxLearners'>;

/** `joining`: the learner is promoted when it has caught up. Throws CodedError, RaftError. */
export async function addMember(
  { engine, clock, token, strict, maxLearners }: Adding,
  peerUrls: readonly string[],
  learner: boolean | 'joining',
): Promise<Member> {
  engine.requireLeader();
  checkUrls(engine, peerUrls, undefined);
  const { cluster } = engine;
  if (learner !== false && cluster.conf.learners.length >= maxLearners) throw new CodedError('too-many-learners', '');
  if (strict) {
    // A member that has not started counts as missing. So does a learner, because it will be promoted.
    if (learner !== false) requireActive(engine, cluster.conf.voters.length + 1);
    else requireStarted(engine, cluster.conf.voters.length + 1);
  }
  const id = hex(memberIdOf(peerUrls, token, clock.nowMs() / 1000));
  if (cluster.get(id) !== undefined || cluster.wasRemoved(id)) throw new CodedError('member-exists', id);
  const op = learner === false ? 'addVoter' : 'addLearner';
  const context = encodeJoining(peerUrls, learner === 'joining' ? 'joining' : undefined);
  await engine.changeConf({ steps: [{ op, id }], context });
  return cluster.get(id) ?? { id, name: '', peerUrls, clientUrls: [] };
}

export async function removeMember({ engine, strict }: ClusterServiceDeps, id: string): Promise<void> {
  engine.requireLeader();
  const { cluster, replica } = engine;
  const member = cluster.get(id);
  if (member === undefined) throw new CodedError('member-not-found', id);
  const isVoter = cluster.conf.voters.includes(id);
  if (isVoter && cluster.conf.voters.length === 1) await promoteSuccessor(engine);
  // Removing a member that never started loses no vote.
  if (strict && isVoter && member.name !== '') requireStarted(engine, cluster.conf.voters.length - 1, id);
  if (id === replica.id && isVoter && cluster.conf.voters.length > 1) {
    const successor = replica.bestFollower();
    if (successor === undefined) throw new CodedError('unhealthy-cluster', 'no other member can become leader');
    replica.transferLeadership(successor);
    // The new leader executes the request.
    throw new CodedError('not-leader', 'leadership is being transferred; retry');
  }
  await engine.changeConf({ steps: [{ op: 'remove', id }] });
}

/** Promotes a started learner that has caught up before the only voter is removed. */
async function promoteSuccessor(engine: Engine): Promise<void> {
  const { progress, lastIndex } = engine.replica.raft.status();
  const successor = engine.cluster.conf.learners.find((id) => {
    const { active, match } = progress.get(id) ?? { active: false, match: 0 };
    return engine.cluster.get(id)?.name !== '' && active && match >= lastIndex * READY_SHARE;
  });
  if (successor !== undefined) await engine.changeConf({ steps: [{ op: 'addVoter', id: successor }] });
}

async function promoteMember({ engine, strict, promoted }: ClusterServiceDeps, id: string): Promise<void> {
  engine.requireLeader();
  const { cluster, replica } = engine;
  if (cluster.get(id) === undefined) throw new CodedError('member-not-found', id);
  if (!cluster.isLearner(id)) throw new CodedError('not-a-learner', id);
  const { progress, lastIndex } = replica.raft.status();
  const match = progress.get(id)?.match ?? 0;
  if (match < lastIndex * READY_SHARE) throw new CodedError('learner-not-ready', id);
  if (strict) requireStarted(engine, cluster.conf.voters.length + 1, undefined, 1);
  await engine.changeConf({ steps: [{ op: 'addVoter', id }] });
  promoted();
}

/**
 * Throws unless enough members for a quorum of `voters` voters have started and respond. Source: etcd
 * membership/cluster.go, IsReadyTo….
 */
function requireStarted(engine: Engine, voters: number, without?: string, more = 0): void {
  const { conf } = engine.cluster;
  if (conf.voters.length === 1 && without === undefined) return;
  const started = conf.voters.filter((id) => id !== without && engine.cluster.get(id)?.name !== '').length + more;
  if (started < Math.floor(voters / 2) + 1) throw new CodedError('too-few-started', '');
  requireActive(engine, voters, without, more);
}

/** Throws unless enough members for a quorum of `voters` voters respond. Source: etcd server.go, mayAddMember. */
function requireActive({ cluster, replica }: Engine, voters: number, without?: string, more = 0): void {
  if (cluster.conf.voters.length === 1 && without === undefined) return;
  const { progress } = replica.raft.status();
  const answers = (id: string): boolean => id === replica.id || progress.get(id)?.active === true;
  const active = cluster.conf.voters.filter((id) => id !== without && answers(id)).length + more;
  if (active < Math.floor(voters / 2) + 1) throw new CodedError('unhealthy-cluster', '');
}

/** A host with a port, or any socket. Source: etcd client/pkg/types/urls.go, NewURLs. */
const PEER_URL = /^(?:https?:\/\/(?:\[[^[\]/?#\s]+\]|[^[\]:/?#\s]*):\d*|unixs?:\/\/[^\s]+)$/;

function checkUrls(engine: Engine, urls: readonly string[], except: string | undefined): void {
  if (urls.length === 0) throw new CodedError('bad-peer-urls', 'the request has no peer URLs');
  for (const url of urls) {
    if (!PEER_URL.test(url)) throw new CodedError('bad-peer-urls', `${url} is not a peer URL`);
  }
  for (const member of engine.cluster.members) {
    if (member.id === except) continue;
    if (member.peerUrls.some((url) => urls.includes(url))) throw new CodedError('peer-url-exists', member.id);
  }
}

function writeMember(out: Writer, field: number, member: Member, learner: boolean): void {
  const mark = out.begin(field);
  out.big(1, BigInt(`0x${member.id}`)).string(2, member.name);
  for (const url of member.peerUrls) out.string(3, url);
  for (const url of member.clientUrls) out.string(4, url);
  out.bool(5, learner).end(mark);
}

/** Decodes ID, URLs and, of a MemberList request, whether the list must be linearizable. */
function decode(message: Uint8Array): {
  readonly id: string;
  readonly flag: boolean;
  readonly urls: readonly string[];
} {
  const reader = new Reader(message);
  let id = 0n;
  const urls: string[] = [];
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) id = BigInt.asUintN(64, reader.big());
    else if (field === 2) urls.push(reader.string());
    else reader.skip();
  }
  return { id: hex(id), flag: id === 1n, urls };
}

function decodeAdd(message: Uint8Array): { readonly urls: readonly string[]; readonly learner: boolean } {
  const reader = new Reader(message);
  const urls: string[] = [];
  let learner = false;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) urls.push(reader.string());
    else if (field === 2) learner = reader.bool();
    else reader.skip();
  }
  return { urls, learner };
}
