import { endOf, recoverAlone, type StoreEnd } from '../../../src/store/recovery/quorum-loss.ts';
import { Violation } from './checkers.ts';
import { clusterOf, newestOf } from './damage.ts';
import { SimulatedLog } from './disk.ts';
import type { Hosts } from './faults.ts';
import type { Member } from './member.ts';
import { Life } from './process.ts';
import { call } from './rpc.ts';
import type { World } from './world.ts';

const UNDER_WAY_MS = 50;

interface Survivor {
  readonly member: Member;
  readonly end: StoreEnd;
}

/**
 * Loses so many voters permanently that no quorum is left. Then the survivor with the longest log becomes a
 * single-member cluster, as described in docs/runbooks/quorum-loss.md. Everything that it knew to be committed must be
 * kept; changes known only to the lost members are lost. Returns false if the scenario was not possible.
 */
export async function loseQuorum(world: World, hosts: Hosts, until: (time: number) => Promise<void>): Promise<boolean> {
  const { random } = world;
  const members = hosts.members();
  const newest = newestOf(members);
  if (newest === undefined) return false;
  const { voters, outgoing } = clusterOf(newest).conf;
  const able = members.filter((each) => voters.includes(each.id) && !each.gone && each.disk.image.applied > 0);
  if (outgoing.length > 0 || voters.length < 3 || able.length < voters.length) return false;
  const survivors = (): readonly Member[] =>
    random.shuffle(able).slice(0, 1 + random.below(Math.floor((voters.length - 1) / 2)));
  await leaveTo(world, members, survivors, until);
  return true;
}

/** Cuts the power of all `members` and makes the best of the `survivors` a single-member cluster. */
export async function leaveTo(
  world: World,
  members: readonly Member[],
  survivors: () => readonly Member[],
  until: (time: number) => Promise<void>,
): Promise<void> {
  const { timeline, trace, checkers } = world;
  for (const member of members) {
    member.crash(true);
    // The member is not restarted.
    member.gone = true;
    // The procedure requires free disk space.
    member.disk.full = false;
  }
  // Responses in flight to clients are delivered.
  await until(timeline.nowMs + UNDER_WAY_MS);
  const offline = <T>(work: (life: Life) => Promise<T>): Promise<T> => finished(timeline, until, work);
  const found: Survivor[] = [];
  for (const member of survivors())
    found.push({
      member,
      end: await offline(async (life) => {
        const storage = new SimulatedLog(member.disk, life, world);
        return endOf(await storage.open(() => {}), storage);
      }),
    });
  const best = found.reduce((one, other) => (isFurther(other.end, one.end) ? other : one));
  const committed = Math.max(...found.map(({ end }) => Math.min(end.revision, best.end.lastRevision)));
  for (const member of members) {
    if (member !== best.member) member.disk.wipe();
  }
  // No other member has the log that is rewritten here.
  checkers.abandoned(committed);
  await offline(async (life) => {
    const storage = new SimulatedLog(best.member.disk, life, world);
    await recoverAlone(await storage.open(() => {}), storage);
  });
  best.member.gone = false;
  world.bug?.recovered?.(best.member.disk.image);
  trace.add(`${timeline.nowMs.toFixed(3)} ${best.member.name} is to go on alone from ${committed}`);
  trace.count('recovered from a lost quorum');
  checkKept(world, best.member, committed);
}

const isFurther = (one: StoreEnd, other: StoreEnd): boolean =>
  one.lastTerm > other.lastTerm || (one.lastTerm === other.lastTerm && one.lastIndex > other.lastIndex);

/** Checks that all visible revisions up to `committed` are in the store. */
function checkKept({ checkers }: World, { name, disk: { image } }: Member, committed: number): void {
  for (const revision of checkers.history.keys()) {
    if (revision > committed || revision <= image.compacted) continue;
    const row = image.rows.find((each) => each.revision === revision);
    if (row === undefined || !checkers.isShown(row))
      throw new Violation('recovery', `${name} reported ${committed} as committed, and revision ${revision} is lost`);
  }
}

/** Runs an offline program while simulated time passes. */
async function finished<T>(
  timeline: World['timeline'],
  until: (time: number) => Promise<void>,
  work: (life: Life) => Promise<T>,
): Promise<T> {
  let over = false;
  const done = work(new Life()).finally(() => {
    over = true;
  });
  while (!over) await until(timeline.nowMs + 1);
  return done;
}

/** Adds a second member to the single-member cluster. */
export function addAnother(world: World, hosts: Hosts): void {
  const { timeline } = world;
  const added = hosts.newcomer();
  const ask = (): void => {
    const member = hosts.members().find((each) => !each.gone && each !== added);
    if (added === undefined || member === undefined) return;
    const write = (out: Parameters<Parameters<typeof call>[3]>[0]) => out.string(1, added.url);
    call(world, member, '/etcdserverpb.Cluster/MemberAdd', write, { timeoutMs: 700 }, (answer) => {
      const exists = answer.kind === 'failed' && /exist/i.test(answer.text);
      if (answer.kind === 'ok' || exists) added.start();
      else timeline.after(100, ask);
    });
  };
  ask();
}
