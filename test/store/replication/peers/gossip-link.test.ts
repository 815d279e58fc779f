import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { it } from 'node:test';
import { promisify } from 'node:util';
import type { GossipFacts, GossipHints, GossipMember } from '../../../../src/store/gossip-port.ts';
import { slack } from '../../../support/slack.ts';
import { type ClusterMember, cluster } from '../../cluster-harness.ts';
import { connect, remove, temporaryDirectory } from '../../harness.ts';

const run = promisify(execFile);

/** A ring with scripted reports. */
class Ring {
  readonly facts = new Map<string, GossipFacts>();
  readonly #listeners = new Set<(members: readonly GossipMember[]) => void>();
  closed = 0;

  get hints(): GossipHints {
    return {
      subscribe: (listener) => {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
      },
      publish: (facts) => this.facts.set(facts.memberId, facts),
      close: async () => {
        this.closed += 1;
      },
    };
  }

  say(members: readonly GossipMember[]): void {
    for (const listener of this.#listeners) listener(members);
  }
}

async function until(holds: () => boolean, mostMs: number): Promise<void> {
  for (const end = performance.now() + mostMs; !holds() && performance.now() < end; ) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.ok(holds(), `not within ${mostMs} ms`);
}

it('elects a new leader long before the election timeout if the gossip ring declares the leader dead', async () => {
  const directory = await temporaryDirectory();
  const members = await cluster(directory, 3);
  const ring = new Ring();
  // These times are so long that no member campaigns for six seconds.
  const timing = { heartbeatMs: 100, electionMs: 6000 };
  try {
    await Promise.all(members.map((member) => member.start(false, { timing, gossip: ring.hints })));
    // In the first election no member can be confirmed dead, so it takes its time unless leadership is transferred.
    const leaderOf = (): string | undefined => {
      const leaders = new Set([...ring.facts.values()].map(({ leader }) => leader));
      return leaders.size === 1 ? [...leaders][0] : undefined;
    };
    await until(() => ring.facts.size === 3 && leaderOf() !== undefined, 20_000);
    const first = leaderOf() as string;
    assert.match(first, /^[0-9a-f]{16}$/);
    let leading: ClusterMember | undefined;
    // Each member publishes its name once there is a leader.
    while (leading === undefined) {
      const { stdout } = await run('etcdctl', [`--endpoints=${members[0]?.endpoint}`, 'member', 'list'], {
        env: { ...process.env, ETCDCTL_API: '3' },
      });
      const name = stdout
        .split('\n')
        .find((line) => line.startsWith(first.replace(/^0+/, '')))
        ?.split(', ')[2];
      leading = members.find((member) => member.name === name);
    }
    leading.mute = true;
    const others = [...ring.facts.keys()].filter((id) => id !== first);
    const next = (): boolean => others.every((id) => ![undefined, first].includes(ring.facts.get(id)?.leader));
    const began = performance.now();
    ring.say(
      [...ring.facts.values()].map(({ memberId, appliedIndex }) => ({
        memberId,
        alive: memberId !== first,
        confirmedDead: memberId === first,
        appliedIndex,
        health: 0,
      })),
    );
    await until(next, 5000 * slack());
    assert.ok(performance.now() - began < 5000 * slack());
    leading.mute = false;
    const store = connect(leading.endpoint, undefined);
    await store.commit({ guards: [], puts: [{ key: 'a', value: Buffer.from('b') }] });
    await store.close();
  } finally {
    await Promise.all(members.map((member) => member.stop()));
    await remove(directory);
  }
  assert.equal(ring.closed, 3);
});
