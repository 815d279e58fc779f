import { CodedError } from '../../../src/base/errors.ts';
import type { Fallback } from '../../../src/store/index.ts';
import { Cluster } from '../../../src/store/membership/cluster.ts';
import { restoreAs } from '../../../src/store/recovery/quorum-loss.ts';
import { Violation } from './checkers.ts';
import { Disk, SimulatedLog } from './disk.ts';
import type { Hosts } from './faults.ts';
import type { Member } from './member.ts';
import { call } from './rpc.ts';
import type { StoreImage } from './store-image.ts';
import type { World } from './world.ts';

/**
 * Distance of revisions after a restore, as in the program's own fallback: more than the number of revisions ever
 * written between two snapshots.
 */
const BUMP = 1_000_000_000;
const SNAPSHOTS = 3;
/** The program gives up after more restores than this within an hour. */
const MOST_TIMES = 3;

interface Damaged {
  readonly member: Member;
  readonly wasId: string;
  readonly voted: boolean;
}

/** Configuration that the member has applied and stored. */
export function clusterOf(member: Member): Cluster {
  const cluster = new Cluster();
  const document = member.disk.image.documents.get('cluster');
  if (document !== undefined) cluster.decode(document);
  return cluster;
}

export function newestOf(members: readonly Member[]): Member | undefined {
  return members.filter(({ id }) => id !== '').toSorted((a, b) => b.disk.image.applied - a.disk.image.applied)[0];
}

/**
 * Damages files and wipes disks, and lets members that lost their data rejoin with their former role. It never exceeds
 * the number of faults that the program must survive: one member at a time, and the next one after that member has
 * recovered. The membership does not change otherwise meanwhile. A single-member store is restored from a snapshot. The
 * only voter of a cluster with learners does not recover: the learners may lack entries that it acknowledged, so only
 * an operator may decide to continue without it. After its loss no request may be answered.
 */
export class Damages {
  readonly #world: World;
  readonly #hosts: Hosts;
  readonly #onWentBack: () => void;
  readonly #snapshots: StoreImage[] = [];
  #pending: Damaged | undefined;
  #stopped = false;

  constructor(world: World, hosts: Hosts, onWentBack: () => void) {
    this.#world = world;
    this.#hosts = hosts;
    this.#onWentBack = onWentBack;
  }

  /** Fallback of a member that may be the only one. */
  fallback(member: Member): Fallback {
    return { fallBack: (lastSeen) => this.#goBack(member, lastSeen) };
  }

  start(): void {
    this.#next();
    this.#nextSnapshot();
  }

  /** Stops new damage and lets every member detect existing damage. */
  stop(): void {
    this.#stopped = true;
    for (const member of this.#hosts.members()) if (member.disk.damaged) member.scrub();
  }

  /** Adds a learner that is not promoted. */
  addLearner(): void {
    const { timeline, random } = this.#world;
    const added = this.#hosts.newcomer();
    const ask = (): void => {
      const member = random.pick(this.#hosts.members().filter((each) => each !== added));
      if (added === undefined || member === undefined) return;
      const path = '/etcdserverpb.Cluster/MemberAdd';
      call(
        this.#world,
        member,
        path,
        (out) => out.string(1, added.url).bool(2, true),
        { timeoutMs: 400 },
        (answer) => {
          const exists = answer.kind === 'failed' && /exist/i.test(answer.text);
          if (answer.kind === 'ok' || exists) added.start();
          else timeline.after(50, ask);
        },
      );
    };
    ask();
  }

  /** Whether every member has recovered. */
  settled(): boolean {
    const newest = newestOf(this.#hosts.members());
    if (this.#pending === undefined || newest === undefined) return this.#pending === undefined;
    const { member, wasId, voted } = this.#pending;
    const { voters, learners } = clusterOf(newest).conf;
    if (!voted && voters.includes(member.id))
      throw new Violation('rebuild', `${member.name} was a learner and became a voter when it was rebuilt`);
    const isBack = (voted ? voters : learners).includes(member.id);
    if (!isBack || member.disk.damaged) return false;
    // A member may return with its old ID only if no acknowledgement under it ever counted.
    const isOld = member.id === wasId || voters.includes(wasId) || learners.includes(wasId);
    if (isOld && this.#world.checkers.isRetired(wasId)) return false;
    this.#world.trace.count(voted ? 'voter rebuilt' : 'learner rebuilt');
    this.#pending = undefined;
    return true;
  }

  #next(): void {
    const { timeline, random } = this.#world;
    timeline.after(random.between(200, 1500), () => {
      if (this.#stopped) return;
      this.#one();
      this.#next();
    });
  }

  #one(): void {
    const { random, checkers } = this.#world;
    const members = this.#hosts.members();
    const newest = newestOf(members);
    if (newest === undefined || checkers.soleVoter !== undefined || !this.settled()) return;
    const cluster = clusterOf(newest);
    const { voters, learners, outgoing } = cluster.conf;
    const victim = random.pick(members.filter(({ id }) => voters.includes(id) || learners.includes(id)));
    if (victim === undefined || victim.disk.damaged || outgoing.length > 0) return;
    if (victim.timesDamaged === MOST_TIMES) return;
    // If only the next victim knows that a member votes, the others could not reach a quorum without both. So wait
    // until all know.
    const known = (each: Member): boolean => clusterOf(each).conf.voters.join() === voters.join();
    if (!members.every((each) => !voters.includes(each.id) || known(each))) return;
    const voted = voters.includes(victim.id);
    if (voted && voters.length === 1) {
      if (learners.length === 0 ? this.#snapshots.length === 0 : random.chance(0.6)) return;
      if (learners.length > 0) checkers.soleVoter = victim.id;
      this.#damage(victim);
      return;
    }
    if (voted && voters.length < 3) return;
    this.#pending = { member: victim, wasId: victim.id, voted };
    // A member that some members do not know yet would rejoin as a new one.
    const isKnown = members.every((each) => each.id === '' || clusterOf(each).get(victim.id)?.name === victim.name);
    if (isKnown && random.chance(0.4)) this.#wipe(victim);
    else this.#damage(victim);
  }

  #damage(victim: Member): void {
    victim.timesDamaged += 1;
    const { timeline, random, trace } = this.#world;
    trace.add(`${timeline.nowMs.toFixed(3)} the file of ${victim.name} is damaged`);
    victim.disk.damaged = true;
    if (random.chance(0.3)) victim.crash(random.chance(0.5));
    const find = (): void => {
      if (!victim.disk.damaged) return;
      victim.scrub();
      timeline.after(1000, find);
    };
    timeline.after(random.between(0, 1500), find);
  }

  #wipe(victim: Member): void {
    victim.timesDamaged += 1;
    const { timeline, random, trace, checkers } = this.#world;
    trace.add(`${timeline.nowMs.toFixed(3)} the disk of ${victim.name} is wiped`);
    trace.count('wiped');
    checkers.putAside(victim.id, timeline.nowMs);
    victim.crash(random.chance(0.5));
    victim.disk.wipe();
  }

  #nextSnapshot(): void {
    const { timeline, random } = this.#world;
    timeline.after(random.between(100, 1000), () => {
      const [only, ...others] = this.#hosts.members();
      if (this.#stopped || others.length > 0 || only === undefined) return;
      if (only.id !== '' && !only.disk.damaged) this.#snapshots.push(only.disk.image.copy());
      if (this.#snapshots.length > SNAPSHOTS) this.#snapshots.shift();
      this.#nextSnapshot();
    });
  }

  async #goBack({ name, url, disk, life }: Member, lastSeen: number) {
    const { bug, checkers, trace } = this.#world;
    const snapshot = this.#snapshots.at(-1);
    if (snapshot === undefined || life === undefined) throw new CodedError('not-found', 'there is no snapshot');
    const scratch = new Disk(`${name}, restored`, this.#world);
    scratch.image = snapshot.copy();
    const storage = new SimulatedLog(scratch, life, this.#world);
    // The background work is not needed, because the program ends.
    const state = await storage.open(() => {});
    const from = snapshot.reaches;
    const bumpRevision = bug?.noBump ? 0 : Math.max(0, lastSeen - from) + BUMP;
    const wanted = { name, members: [{ name, peerUrls: [url] }], token: 'sim', bumpRevision, onlyAlone: true };
    const { revision } = await restoreAs(state, storage, wanted);
    const to = disk.image.reaches;
    disk.clear();
    disk.image = scratch.image;
    // The next restore must end with a higher revision than this one.
    this.#snapshots.splice(0, this.#snapshots.length, scratch.image.copy());
    trace.count('went back');
    checkers.wentBack(snapshot, revision);
    this.#onWentBack();
    return { kept: 'aside', snapshot: 'snapshot', from, to, revision };
  }
}
