import { NEWEST_LEVEL } from '../../../src/store/replication/maintenance/log-level.ts';
import { Violation } from './checkers.ts';
import type { Clients } from './clients.ts';
import { clusterOf, type Damages, newestOf } from './damage.ts';
import type { LeaseClients } from './leases.ts';
import type { Member } from './member.ts';
import type { Watcher } from './watcher.ts';
import type { World } from './world.ts';

const RECOVERY_MS = 14_000;
const STEP_MS = 200;
const FLUSH_STEPS = 8;
/** Number of elections after which a due lease must have expired, and the maximum delay of the report. */
const LEASE_ELECTIONS = 3;
const LEASE_NEWS_MS = 2_000;

export interface Recovering {
  readonly members: readonly Member[];
  readonly clients: Clients;
  readonly leases: LeaseClients;
  readonly damages: Damages;
  readonly watchers: readonly Watcher[];
  readonly until: (time: number) => Promise<void>;
  readonly electionMs: number;
}

/**
 * Liveness: without faults, writes succeed, leases expire in time, and all members of the cluster reach the same state.
 */
export async function recover(world: World, recovering: Recovering): Promise<void> {
  const { members, clients, leases, until, electionMs } = recovering;
  const { timeline } = world;
  const deadline = timeline.nowMs + RECOVERY_MS;
  let ledSince: number | undefined;
  const writeEverywhere = (): void => {
    for (const member of members)
      if (member.service !== undefined) clients.operate(member, clients.operation('put', 'last'), () => {});
  };
  for (let step = 0; timeline.nowMs < deadline; step++) {
    await until(timeline.nowMs + STEP_MS);
    for (const member of members) member.start();
    if (ledSince === undefined) {
      writeEverywhere();
      await until(timeline.nowMs + STEP_MS);
      const written = [...world.checkers.history.values()].some((events) => events.some(({ key }) => key === 'last'));
      if (written) ledSince = timeline.nowMs;
      continue;
    }
    // Applied entries reach a disk with the next write.
    if (step % FLUSH_STEPS === 0) writeEverywhere();
    leases.overdue(ledSince, LEASE_ELECTIONS * electionMs + LEASE_NEWS_MS);
    if (leases.pending || !alike(world, recovering)) continue;
    return;
  }
  const heard = recovering.watchers.map(({ name, next }) => `${name} waits for ${next}`);
  const state = [...members.map((member) => describe(member)), ...heard].join('\n');
  throw new Violation(
    'liveness',
    `${ledSince === undefined ? 'no write succeeds after the last fault' : 'the states of the members still differ'}\n${state}`,
  );
}

/** Whether all members have the same rows and all watchers are up to date. */
function alike(world: World, { members, watchers, damages }: Recovering): boolean {
  const { checkers } = world;
  const running = members.filter((member) => member.alive && !member.gone && member.service !== undefined);
  const newest = newestOf(running);
  if (newest === undefined || !damages.settled()) return false;
  const { conf, level } = clusterOf(newest);
  if (level < NEWEST_LEVEL) return false;
  if (conf.outgoing.length > 0) return false;
  const belonging = members.filter((member) => conf.voters.includes(member.id) || conf.learners.includes(member.id));
  if (belonging.length < conf.voters.length + conf.learners.length) return false;
  // The time at which a compacted row is removed depends on where the member's log starts.
  const compacted = Math.max(...belonging.map(({ disk }) => disk.image.compacted));
  const [first, ...others] = belonging.map((member) => rowsOf(member, compacted));
  if (others.some((other) => other !== first)) return false;
  const last = Math.max(...checkers.history.keys());
  const behind = watchers.filter((watcher) => watcher.next <= last);
  // Watchers learn of revisions outside of their range only through progress requests.
  for (const watcher of behind) watcher.askProgress();
  return behind.length === 0;
}

function rowsOf({ disk: { image } }: Member, after: number): string {
  return image.rows
    .filter(({ revision }) => revision > after)
    .map(
      ({ revision, index, term, lease, body }) =>
        `${revision}/${index}/${term}/${lease}/${Buffer.from(body).toString('latin1')}`,
    )
    .join('\n');
}

function describe(member: Member): string {
  const { image } = member.disk;
  const { conf } = clusterOf(member);
  return `${member.name} ${member.id}: ${member.alive ? 'alive' : 'down'}${member.gone ? ', gone' : ''} term ${image.hardState.term} applied ${image.applied} last ${image.lastIndex} base ${image.base.index} compacted ${image.compacted} rows ${image.rows.length} to ${image.lastRevision} voters ${conf.voters} learners ${conf.learners}`;
}
