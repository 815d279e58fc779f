/**
 * How a member that has lost what it had acknowledged comes back. Under its old id it must not vote again: it might help to elect somebody who
 * does not know what it once promised. So the leader, which has a quorum without it, takes the old id out and a new one in, in one change of the
 * configuration; the new one gets everything as a learner and votes when it has caught up.
 */
import type { Clock, Timer } from '../../../base/clock.ts';
import { CodedError, messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import { encodeJoining, hex, type Member, memberIdOf } from '../membership/cluster.ts';
import type { DialPeer } from '../port.ts';
import type { Engine } from '../replication/engine.ts';
import {
  decodeMembers,
  encodeReplace,
  type MemberTable,
  PeerPath,
  type ReplaceRequest,
} from '../replication/peer-protocol.ts';

const ASK_MS = 3000;
const RETRY_MS = 500;
/** How often to say that it still waits. */
const COMPLAIN_MS = 30_000;
const PROMOTE_MS = 200;
/** Entries that a learner may be behind when it gets a vote: what a busy leader writes in a moment. */
const NEARLY = 500;

/** One question to whoever listens at `urls`; a refused connection is an answer too. Rejects with why there is none. */
export async function askPeer(
  dial: DialPeer,
  urls: readonly string[],
  path: string,
  message: Uint8Array,
  timeoutMs: number,
): Promise<Uint8Array> {
  const refused = Promise.withResolvers<never>();
  const channel = dial(urls, () =>
    refused.reject(new CodedError('peer-unreachable', `nobody listens at ${urls.join()}`)),
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

/** Asks `others` until the one that leads has made a new member of this one. Throws CodedError 'closed'. */
export async function becomeReplacement(
  request: ReplaceRequest,
  others: ReadonlyArray<readonly string[]>,
  { dial, clock, log, stopped }: ReplacementDeps,
): Promise<MemberTable & { readonly own: Member }> {
  for (let told = Number.NEGATIVE_INFINITY; ; ) {
    const reasons: string[] = [];
    for (const urls of others) {
      try {
        const table = decodeMembers(await askPeer(dial, urls, PeerPath.replace, encodeReplace(request), ASK_MS));
        const own = table.members.find(({ peerUrls }) => peerUrls.some((url) => request.peerUrls.includes(url)));
        // Never under the id that it has had.
        if (own?.name === '') return { ...table, own };
        reasons.push(`${urls.join()}: this member is not among the others, or still under its old id`);
      } catch (error) {
        reasons.push(`${urls.join()}: ${messageOf(error)}`);
      }
    }
    if (stopped()) throw new CodedError('closed', 'stopped before the other members had taken this one in again');
    if (clock.monotonicMs() - told > COMPLAIN_MS) {
      told = clock.monotonicMs();
      log.warn('waiting for the other members, with a leader among them, to take this one in again', {
        causes: reasons.join('; '),
        mend: 'start the others; where they cannot elect a leader without this one, look at hyperedge members recover --dry-run on each of them',
      });
    }
    await new Promise<void>((resolve) => clock.setTimer(RETRY_MS, resolve));
  }
}

/** The leader's part. Throws CodedError 'not-leader', 'member-not-found', 'refused', 'unhealthy-cluster'; RaftError. */
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
  // Taken in already, and nothing was acknowledged under this id since then as far as this leader remembers: it would not believe that it is not there.
  if (old.replacement && old.name === '' && (progress.get(old.id)?.match ?? 0) === 0) return;
  if (old.id === replica.id || progress.get(old.id)?.active)
    throw new CodedError('refused', `member ${old.id} at ${old.peerUrls.join()} still answers`);
  requireQuorumWithout(engine, old.id);
  const id = hex(memberIdOf(peerUrls, token, clock.nowMs() / 1000));
  if (cluster.get(id) !== undefined || cluster.wasRemoved(id)) throw new CodedError('refused', 'ask again in a second');
  // A learner that people have to promote stays one.
  const votes = cluster.conf.voters.includes(old.id) || old.replacement === true;
  await engine.changeConf({
    steps: [
      { op: 'remove', id: old.id },
      { op: 'addLearner', id },
    ],
    context: encodeJoining(old.peerUrls, votes),
  });
  log.warn('a member that has lost its data is taken in again under another id', { name, was: old.id, is: id });
}

function requireQuorumWithout(engine: Engine, id: string): void {
  const { cluster, replica } = engine;
  const { progress } = replica.raft.status();
  const { voters } = cluster.conf;
  if (!voters.includes(id)) return;
  const active = voters.filter((each) => each !== id && (each === replica.id || progress.get(each)?.active)).length;
  if (active < Math.floor(voters.length / 2) + 1)
    throw new CodedError('unhealthy-cluster', `of ${voters.length} voters only ${active} answer`);
}

/** Gives replacements their vote when they have caught up; of effect where this member leads. */
export class Promoter {
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #log: Log;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(engine: Engine, clock: Clock, log: Log) {
    this.#engine = engine;
    this.#clock = clock;
    this.#log = log;
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** Members, or who leads, may have changed. */
  consider(): void {
    if (this.#stopped || this.#timer !== undefined || !this.#engine.leads || this.#waiting.length === 0) return;
    this.#timer = this.#clock.setTimer(PROMOTE_MS, () => {
      void this.#promote().finally(() => {
        this.#timer = undefined;
        this.consider();
      });
    });
  }

  get #waiting(): readonly Member[] {
    const { cluster } = this.#engine;
    return cluster.members.filter(({ id, replacement }) => replacement && cluster.isLearner(id));
  }

  async #promote(): Promise<void> {
    const { replica } = this.#engine;
    const { progress, lastIndex } = replica.raft.status();
    for (const { id, name } of this.#waiting) {
      const { active, state, match } = progress.get(id) ?? { active: false, state: 'probe', match: 0 };
      if (name === '' || !active || state !== 'replicate' || match < lastIndex - NEARLY) continue;
      try {
        await this.#engine.changeConf({ steps: [{ op: 'addVoter', id }] });
        this.#log.info('a member that was taken in again has caught up and votes', { name, member: id });
      } catch (error) {
        this.#log.v(2, 'a member could not be given its vote yet', { member: id, cause: messageOf(error) });
      }
    }
  }
}
