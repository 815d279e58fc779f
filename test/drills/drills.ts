import { Journal, type JournalSummary, untilWritable } from './journal.ts';
import { eventually, Members, sleep } from './processes.ts';

const WRITERS = 4;
/** Pause between writes, because throughput is not tested. */
const PAUSE_MS = 2;

/** A seeded random number generator for [0, 1). Source: Steele et al., SplitMix, in its 32-bit form. */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e37_79b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0_aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a_2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}

/**
 * Kills random members of three, sometimes two at a time, while clients write. Throws if the journal finds a lost or
 * duplicate write.
 */
export async function drillRandomKills(
  kills: number,
  seed: number,
  progress: (done: number) => void = () => {},
): Promise<JournalSummary> {
  await using members = await Members.make(3);
  const random = seeded(seed);
  members.start();
  await members.leader();
  const journal = new Journal(members.all, WRITERS, PAUSE_MS);
  for (let done = 0; done < kills; ) {
    await sleep(random() * 400);
    const victim = members.all[Math.floor(random() * 3)];
    const both = random() < 0.15 ? members.all[Math.floor(random() * 3)] : undefined;
    for (const member of new Set([victim, both])) {
      if (member === undefined || !member.running) continue;
      await member.end('SIGKILL');
      done += 1;
      progress(done);
    }
    // Some members restart immediately, others later.
    await sleep(random() < 0.5 ? 0 : random() * 600);
    members.start();
    // Wait for writes most of the time; otherwise too few would succeed.
    if (random() < 0.7) {
      const before = journal.acknowledged;
      await eventually('an acknowledged write', 30_000, async () =>
        journal.acknowledged > before + WRITERS ? true : undefined,
      );
    }
  }
  await members.leader();
  const summary = await journal.finish();
  await members.equal();
  return summary;
}

const PAUSED_MS = 5000;

/** Repeatedly removes the leader of three members in the given way, and returns the times without successful writes. */
export async function drillLeaderLoss(how: 'SIGKILL' | 'SIGTERM' | 'SIGSTOP', times: number): Promise<number[]> {
  const samples: number[] = [];
  if (times === 0) return samples;
  await using members = await Members.make(3);
  members.start();
  for (let i = 0; i < times; i += 1) {
    const leader = await members.leader();
    // Let the restored cluster settle before the measurement.
    await sleep(300);
    const others = members.all.filter((member) => member !== leader);
    const began = performance.now();
    leader.signal(how);
    samples.push(await untilWritable(others, began));
    if (how === 'SIGSTOP') {
      await sleep(Math.max(0, PAUSED_MS - (performance.now() - began)));
      leader.signal('SIGCONT');
    } else {
      await leader.exited;
      members.start();
    }
  }
  await members.leader();
  await members.equal();
  return samples;
}
