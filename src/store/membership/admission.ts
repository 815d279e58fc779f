/**
 * Admission of a new host's store as a member without an administrator. The new store sends a request to any member's
 * peer port with a certificate of the cluster's own CA. The leader adds the new member as a learner, which the promoter
 * promotes after it has caught up.
 */

import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { DialPeer, PeerUrls } from '../disk/port.ts';
import { queryPeer, replaceMember } from '../recovery/replacement.ts';
import type { Engine } from '../replication/engine.ts';
import {
  decodeMembers,
  encodeReplace,
  type MemberTable,
  PeerPath,
  type ReplaceRequest,
} from '../replication/peers/peer-protocol.ts';
import { addMember } from '../services/cluster-service.ts';
import type { Member } from './cluster.ts';

const REQUEST_TIMEOUT_MS = 3000;
const RETRY_MS = 500;
/** Interval at which the wait is logged. */
const WARN_INTERVAL_MS = 30_000;

export interface AdmissionContext {
  readonly clock: Clock;
  readonly log: Log;
  readonly token: string;
  readonly maxLearners: number;
}

/**
 * Handles a request to join on the leader. A repeated request changes nothing. A host that was a member and has lost
 * its data replaces that member. Throws CodedError 'not-leader', 'too-many-learners', 'unhealthy-cluster', 'refused'.
 */
export async function admitMember(
  engine: Engine,
  request: ReplaceRequest,
  { clock, log, token, maxLearners }: AdmissionContext,
): Promise<void> {
  engine.requireLeader();
  const { name, peerUrls } = request;
  const present = engine.cluster.members.find((member) => member.peerUrls.some((url) => peerUrls.includes(url)));
  if (present !== undefined && present.name === '') return;
  if (present !== undefined) {
    await replaceMember(engine, request, { clock, log, token });
    return;
  }
  const limit = maxLearners + waitingLearners(engine);
  const added = await addMember({ engine, clock, token, strict: true, maxLearners: limit }, peerUrls, 'joining');
  log.info('member added as learner', { name, member: added.id, peerUrls: peerUrls.join() });
}

/**
 * Number of members that have joined and wait for promotion. They do not count against the limit of learners that are
 * being filled.
 */
function waitingLearners({ cluster }: Engine): number {
  return cluster.members.filter(({ id, name, joining }) => joining === true && name !== '' && cluster.isLearner(id))
    .length;
}

/** Requests admission from `others` until their leader has added this member. Throws CodedError 'closed'. */
export async function requestAdmission(
  request: ReplaceRequest,
  others: PeerUrls,
  { dial, clock, log, stopped }: { dial: DialPeer; clock: Clock; log: Log; stopped: () => boolean },
): Promise<MemberTable & { readonly own: Member }> {
  const known = new Map(others.map((urls) => [urls.join(), urls]));
  for (let warnedMs = Number.NEGATIVE_INFINITY; ; ) {
    const reasons: string[] = [];
    for (const urls of known.values()) {
      try {
        const table = decodeMembers(
          await queryPeer(dial, urls, PeerPath.join, encodeReplace(request), REQUEST_TIMEOUT_MS),
        );
        const own = table.members.find(({ peerUrls }) => peerUrls.some((url) => request.peerUrls.includes(url)));
        if (own?.name === '') return { ...table, own };
        reasons.push(`${urls.join()}: the member list does not contain this member, or contains it with its former ID`);
      } catch (error) {
        reasons.push(`${urls.join()}: ${messageOf(error)}`);
      }
    }
    if (stopped()) throw new CodedError('closed', 'stopped before this member was added');
    // The leader may have joined later than the members that this host knows.
    for (const urls of await peersOf([...known.values()], dial))
      if (!urls.some((url) => request.peerUrls.includes(url))) known.set(urls.join(), urls);
    if (clock.monotonicMs() - warnedMs > WARN_INTERVAL_MS) {
      warnedMs = clock.monotonicMs();
      log.warn('waiting for the cluster leader to add this member', { causes: reasons.join('; ') });
    }
    await new Promise<void>((resolve) => clock.setTimer(RETRY_MS, resolve));
  }
}

async function peersOf(known: PeerUrls, dial: DialPeer): Promise<PeerUrls> {
  const responses = known.map(async (urls) =>
    decodeMembers(await queryPeer(dial, urls, PeerPath.members, new Uint8Array(), REQUEST_TIMEOUT_MS)),
  );
  const tables = await Promise.allSettled(responses);
  return tables.flatMap((each) =>
    each.status === 'fulfilled' ? each.value.members.map(({ peerUrls }) => peerUrls) : [],
  );
}
