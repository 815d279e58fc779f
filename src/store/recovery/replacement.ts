/**
 * Rejoining of a member that has lost acknowledged data. It must not vote again under its old ID, because it could
 * elect a leader without entries that it has acknowledged. So the leader, which has a quorum without it, replaces the
 * old ID with a new one in one configuration change. The new member receives everything as a learner and is promoted
 * when it has caught up.
 */

import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { DialPeer } from '../disk/port.ts';
import { encodeJoining, hex, type Member, memberIdOf } from '../membership/cluster.ts';
import type { Engine } from '../replication/engine.ts';
import {
  decodeMembers,
  encodeReplace,
  type MemberTable,
  PeerPath,
  type ReplaceRequest,
} from '../replication/peers/peer-protocol.ts';

const REQUEST_TIMEOUT_MS = 3000;
const RETRY_MS = 500;
/** Interval at which the wait is logged. */
const WARN_INTERVAL_MS = 30_000;

/**
 * Sends one request to the member at `urls`. Rejects with the cause, without waiting for the timeout if the connection
 * is refused.
 */
export async function queryPeer(
  dial: DialPeer,
  urls: readonly string[],
  path: string,
  message: Uint8Array,
  timeoutMs: number,
): Promise<Uint8Array> {
  const refused = Promise.withResolvers<never>();
  const channel = dial(urls, () =>
    refused.reject(new CodedError('peer-unreachable', `connection refused at ${urls.join()}`)),
  );
  try {
    return await Promise.race([channel.unary(path, message, timeoutMs), refused.promise]);
  } finally {
    channel.close();
  }
}

export interface ReplacementDeps {
  readonly dial: DialPeer;
  readonly clock: Clock;
  readonly log: Log;
  readonly stopped: () => boolean;
}

/**
 * Requests from the members at `others` that this member is replaced, until their leader has added the replacement.
 * Throws CodedError 'closed'.
 */
export async function becomeReplacement(
  request: ReplaceRequest,
  others: ReadonlyArray<readonly string[]>,
  { dial, clock, log, stopped }: ReplacementDeps,
): Promise<MemberTable & { readonly own: Member }> {
  for (let warnedMs = Number.NEGATIVE_INFINITY; ; ) {
    const reasons: string[] = [];
    for (const urls of others) {
      try {
        const table = decodeMembers(
          await queryPeer(dial, urls, PeerPath.replace, encodeReplace(request), REQUEST_TIMEOUT_MS),
        );
        const own = table.members.find(({ peerUrls }) => peerUrls.some((url) => request.peerUrls.includes(url)));
        // Never rejoin under the previous ID.
        if (own?.name === '') return { ...table, own };
        reasons.push(`${urls.join()}: the member list does not contain this member, or contains it with its former ID`);
      } catch (error) {
        reasons.push(`${urls.join()}: ${messageOf(error)}`);
      }
    }
    if (stopped()) throw new CodedError('closed', 'stopped before this member was replaced');
    if (clock.monotonicMs() - warnedMs > WARN_INTERVAL_MS) {
      warnedMs = clock.monotonicMs();
      log.warn('waiting for the cluster leader to replace this member', {
        causes: reasons.join('; '),
        fix: 'start the other members; if they cannot elect a leader without this one, run hyperedge members recover --dry-run on each',
      });
    }
    await new Promise<void>((resolve) => clock.setTimer(RETRY_MS, resolve));
  }
}

/**
 * Serves a replacement request on the leader. Throws CodedError 'not-leader', 'member-not-found', 'refused',
 * 'unhealthy-cluster'; RaftError.
 */
export async function replaceMember(
  engine: Engine,
  { name, peerUrls }: ReplaceRequest,
  { clock, log, token }: { readonly clock: Clock; readonly log: Log; readonly token: string },
): Promise<void> {
  engine.requireLeader();
  const { cluster, replica } = engine;
  const old = cluster.members.find((member) => member.peerUrls.some((url) => peerUrls.includes(url)));
  if (old === undefined) {
    throw new CodedError(
      'member-not-found',
      `no member has the peer URL ${peerUrls.join()}; run: hyperedge members add ${name} ${peerUrls.join()}`,
    );
  }
  const { progress } = replica.raft.status();
  // The member was already replaced, and this leader has received no acknowledgement under the new ID, so this is a
  // repeated request.
  if (old.replacement && old.name === '' && (progress.get(old.id)?.match ?? 0) === 0) return;
  if (old.id === replica.id || progress.get(old.id)?.active)
    throw new CodedError('refused', `member ${old.id} at ${old.peerUrls.join()} still answers`);
  requireQuorumWithout(engine, old.id);
  const id = hex(memberIdOf(peerUrls, token, clock.nowMs() / 1000));
  if (cluster.get(id) !== undefined || cluster.wasRemoved(id))
    throw new CodedError('refused', `member ID ${id} is in use; retry in a second`);
  // A learner that an operator has to promote stays a learner.
  const votes = cluster.conf.voters.includes(old.id) || old.replacement === true;
  await engine.changeConf({
    steps: [
      { op: 'remove', id: old.id },
      { op: 'addLearner', id },
    ],
    context: encodeJoining(old.peerUrls, votes ? 'replacement' : undefined),
  });
  log.warn('replaced a member that lost its data', { name, was: old.id, is: id });
}

function requireQuorumWithout(engine: Engine, id: string): void {
  const { cluster, replica } = engine;
  const { progress } = replica.raft.status();
  const { voters } = cluster.conf;
  if (!voters.includes(id)) return;
  const active = voters.filter((each) => each !== id && (each === replica.id || progress.get(each)?.active)).length;
  if (active < Math.floor(voters.length / 2) + 1)
    throw new CodedError('unhealthy-cluster', `of ${voters.length} voters, only ${active} respond`);
}
