import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Lease } from '../../../src/api/generated/coordination/v1.ts';
import type { Node } from '../../../src/api/generated/core/v1.ts';
import { errors } from '../../../src/api/meta/status.ts';
import { silentLog } from '../../../src/base/log.ts';
import {
  type ApiClient,
  Competition,
  ConnectionError,
  createLeaderElector,
  type Informer,
} from '../../../src/client/index.ts';
import { ManualClock, seededRandom, settle } from '../clocks.ts';

const SUBJECT = { group: 'coordination.k8s.io', plural: 'leases' };

/** A server with one lease and optimistic locking. */
class LeaseServer {
  lease: Lease | undefined;
  writes = 0;
  #version = 0;
  /** Whether candidates may watch the lease. */
  watchable = true;
  readonly #watchers = new Set<(lease: Lease) => void>();
  /** Candidates by name whose requests fail or hang. */
  readonly cut = new Map<string, 'fail' | 'hang'>();

  clientOf(identity: string): ApiClient {
    const gate = async (): Promise<void> => {
      const fate = this.cut.get(identity);
      if (fate === 'fail') throw new ConnectionError('https://x', new Error('refused'));
      if (fate === 'hang') await new Promise(() => {});
    };
    const store = (lease: Lease): Lease => {
      this.writes++;
      this.lease = {
        ...structuredClone(lease),
        metadata: { ...lease.metadata, resourceVersion: `${++this.#version}` },
      };
      for (const notify of this.#watchers) notify(structuredClone(this.lease));
      return structuredClone(this.lease);
    };
    const watchers = this.#watchers;
    const watchable = () => this.watchable;
    const client = {
      resource: () => ({
        get: async (name: string) => {
          await gate();
          if (this.lease === undefined) throw errors.notFound(SUBJECT, name);
          return structuredClone(this.lease);
        },
        watch: async function* ({ signal }: { readonly signal: AbortSignal }) {
          if (!watchable()) throw errors.forbidden('no watch');
          const seen: Lease[] = [];
          let wake = (): void => {};
          const notify = (lease: Lease): void => {
            seen.push(lease);
            wake();
          };
          watchers.add(notify);
          try {
            while (!signal.aborted) {
              const object = seen.shift();
              if (object !== undefined) yield { type: 'MODIFIED', object };
              else
                await new Promise<void>((resolve) => {
                  wake = resolve;
                  signal.addEventListener('abort', () => resolve(), { once: true });
                });
            }
          } finally {
            watchers.delete(notify);
          }
        },
        create: async (lease: Lease) => {
          await gate();
          if (this.lease !== undefined) throw errors.alreadyExists(SUBJECT, 'x');
          return store(lease);
        },
        update: async (lease: Lease) => {
          await gate();
          if (this.lease?.metadata?.resourceVersion !== lease.metadata?.resourceVersion) {
            throw errors.conflict(SUBJECT, 'x', 'the object has been modified');
          }
          return store(lease);
        },
      }),
    };
    return client as unknown as ApiClient;
  }
}

/** The part of a node informer that Competition uses. */
class Nodes {
  #added: (node: Node) => void = () => {};
  readonly informer = {
    hasListed: true,
    onChange: ({ added }: { readonly added: (node: Node) => void }) => {
      this.#added = added;
      return () => {};
    },
  } as unknown as Informer<Node>;

  add(name: string, isMaster: boolean): void {
    this.#added({ metadata: { name, labels: isMaster ? { 'node-role.kubernetes.io/master': '' } : {} } });
  }
}

describe('leader election', () => {
  const setUp = () => {
    const server = new LeaseServer();
    const clock = new ManualClock();
    const notified: string[] = [];
    let leading = 0;
    const candidate = (identity: string, seed = 1, competition?: Competition) => {
      const elector = createLeaderElector({
        client: server.clientOf(identity),
        namespace: 'kube-system',
        name: 'test',
        identity,
        clock,
        random: seededRandom(seed),
        log: silentLog,
        ...(competition === undefined ? {} : { competition }),
      });
      const done = elector.run(async (signal) => {
        notified.push(`${identity} leads`);
        leading++;
        assert.equal(leading, 1, 'two leaders');
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
        leading--;
        notified.push(`${identity} ends`);
      });
      return { elector, done };
    };
    return { server, clock, notified, candidate };
  };

  it('a leader writes the record of client-go to the lease and renews the lease', async () => {
    const { server, clock, candidate } = setUp();
    const one = candidate('one');
    await settle();
    assert.deepEqual(server.lease?.metadata, { name: 'test', namespace: 'kube-system', resourceVersion: '1' });
    assert.deepEqual(server.lease?.spec, {
      holderIdentity: 'one',
      leaseDurationSeconds: 15,
      acquireTime: '2026-01-02T03:04:05.000000Z',
      renewTime: '2026-01-02T03:04:05.000000Z',
      leaseTransitions: 0,
    });
    await clock.advance(20_000);
    assert.equal(server.lease?.spec?.renewTime, '2026-01-02T03:04:25.000000Z');
    assert.equal(server.lease?.spec?.acquireTime, '2026-01-02T03:04:05.000000Z');
    assert.equal(server.writes, 11);
    await one.elector.stop();
  });

  it('a standby becomes leader immediately when the leader stops, because standbys watch the lease', async () => {
    const { server, clock, notified, candidate } = setUp();
    const one = candidate('one');
    await settle();
    const standbys = [candidate('two', 2), candidate('three', 3)];
    await clock.advance(31_000);
    assert.deepEqual(notified, ['one leads']);
    await one.elector.stop();
    await clock.advance(0);
    assert.equal(notified.length, 3);
    assert.match(notified[2] ?? '', /^(?:two|three) leads$/);
    assert.equal(server.lease?.spec?.leaseTransitions, 1);
    for (const { elector } of standbys) await elector.stop();
  });

  it('a standby becomes leader within the lease duration after a leader crashes', async () => {
    const { server, clock, notified, candidate } = setUp();
    const one = candidate('one');
    await settle();
    const two = candidate('two', 2);
    await clock.advance(30_500);
    server.cut.set('one', 'hang');
    // The last renewal was 500 ms ago; the other candidates wait with a jitter of a fifth of the remaining time.
    await clock.advance(14_400);
    assert.deepEqual(notified, ['one leads', 'one ends']);
    await clock.advance(3_000);
    assert.equal(notified.at(-1), 'two leads');
    await two.elector.stop();
    void one;
  });

  it('a standby that may not watch the lease becomes leader within a retry period after the leader stops', async () => {
    const { server, clock, notified, candidate } = setUp();
    server.watchable = false;
    const one = candidate('one');
    await settle();
    const two = candidate('two', 2);
    await clock.advance(30_000);
    assert.deepEqual(notified, ['one leads']);
    await one.elector.stop();
    await one.done;
    assert.deepEqual([server.lease?.spec?.holderIdentity, server.lease?.spec?.leaseDurationSeconds], ['', 1]);
    await clock.advance(2_400);
    assert.deepEqual(notified, ['one leads', 'one ends', 'two leads']);
    assert.equal(server.lease?.spec?.holderIdentity, 'two');
    assert.equal(server.lease?.spec?.leaseTransitions, 1);
    await two.elector.stop();
  });

  it('renews the lease rarely while there is one master, and regularly when a second master joins', async () => {
    const { server, clock, notified, candidate } = setUp();
    const nodes = new Nodes();
    const competition = new Competition();
    competition.follow(nodes.informer);
    const one = candidate('one', 1, competition);
    await settle();
    assert.equal(server.lease?.spec?.leaseDurationSeconds, 15);
    nodes.add('one', true);
    nodes.add('worker', false);
    await settle();
    assert.deepEqual([server.writes, server.lease?.spec?.leaseDurationSeconds], [2, 270]);
    await clock.advance(180_000);
    assert.equal(server.writes, 5);
    await clock.advance(30_000);
    nodes.add('two', true);
    await settle();
    assert.deepEqual([server.writes, server.lease?.spec?.leaseDurationSeconds], [6, 15]);
    const two = candidate('two', 2, competition);
    await clock.advance(4_000);
    assert.equal(server.writes, 8);
    server.cut.set('one', 'hang');
    await clock.advance(18_000);
    assert.deepEqual(notified, ['one leads', 'one ends', 'two leads']);
    await two.elector.stop();
    void one;
  });

  it('retries within seconds when a rare renewal fails', async () => {
    const { server, clock, notified, candidate } = setUp();
    const nodes = new Nodes();
    const competition = new Competition();
    competition.follow(nodes.informer);
    nodes.add('one', true);
    const one = candidate('one', 1, competition);
    await settle();
    await clock.advance(59_000);
    server.cut.set('one', 'fail');
    await clock.advance(4_000);
    server.cut.clear();
    const { writes } = server;
    await clock.advance(2_000);
    assert.equal(server.writes, writes + 1);
    assert.deepEqual(notified, ['one leads']);
    await one.elector.stop();
  });

  for (const fate of ['fail', 'hang'] as const) {
    it(`ends leadership of a candidate whose requests ${fate} before another candidate becomes leader`, async () => {
      const { server, clock, notified, candidate } = setUp();
      const one = candidate('one');
      await settle();
      const two = candidate('two', 2);
      await clock.advance(5_000);
      server.cut.set('one', fate);
      await clock.advance(12_500);
      assert.deepEqual(notified, ['one leads', 'one ends']);
      await clock.advance(7_500);
      assert.deepEqual(notified, ['one leads', 'one ends', 'two leads']);
      await two.elector.stop();
      if (fate === 'fail') {
        server.cut.clear();
        await clock.advance(5_000);
        assert.equal(notified.at(-1), 'one leads');
        await one.elector.stop();
      }
    });
  }

  it('measures the lease from the time at which the candidate observed a change of the record', async () => {
    const { server, clock, notified, candidate } = setUp();
    const skewed = {
      holderIdentity: 'other',
      leaseDurationSeconds: 15,
      acquireTime: '2001-01-01T00:00:00.000000Z',
      renewTime: '2001-01-01T00:00:00.000000Z',
      leaseTransitions: 4,
    };
    server.lease = { metadata: { name: 'test', namespace: 'kube-system', resourceVersion: '0' }, spec: skewed };
    const one = candidate('one');
    await clock.advance(14_000);
    assert.deepEqual(notified, []);
    server.lease = { ...server.lease, spec: { ...skewed, renewTime: '2001-01-01T00:00:14.000000Z' } };
    await clock.advance(14_000);
    assert.deepEqual(notified, []);
    await clock.advance(5_000);
    assert.deepEqual(notified, ['one leads']);
    assert.equal(server.lease?.spec?.leaseTransitions, 5);
    await one.elector.stop();
  });

  it('ends leadership immediately if the lease was taken or deleted', async () => {
    const { server, clock, notified, candidate } = setUp();
    const one = candidate('one');
    await settle();
    server.lease = {
      metadata: { ...server.lease?.metadata, resourceVersion: 'other' },
      spec: { ...server.lease?.spec, holderIdentity: 'thief', renewTime: '2026-01-02T03:04:06.000000Z' },
    };
    await clock.advance(4_100);
    assert.deepEqual(notified, ['one leads', 'one ends']);
    await one.elector.stop();
    assert.equal(server.lease?.spec?.holderIdentity, 'thief');

    const other = setUp();
    const two = other.candidate('two');
    await settle();
    other.server.lease = undefined;
    await other.clock.advance(10_000);
    assert.deepEqual(other.notified, ['two leads']);
    const held: Lease | undefined = other.server.lease;
    assert.equal((held as Lease | undefined)?.spec?.holderIdentity, 'two');
    await two.elector.stop();
  });

  it("releases the lease when the leader's work fails or finishes", async () => {
    for (const fails of [true, false]) {
      const server = new LeaseServer();
      const elector = createLeaderElector({
        client: server.clientOf('one'),
        namespace: 'n',
        name: 'x',
        identity: 'one',
        clock: new ManualClock(),
        random: seededRandom(1),
        log: silentLog,
      });
      const run = elector.run(async () => {
        if (fails) throw new Error('bug');
      });
      if (fails) await assert.rejects(run, /bug/);
      else await run;
      assert.equal(server.lease?.spec?.holderIdentity, '');
    }
  });

  it('a candidate can be stopped while waiting for the lease', async () => {
    const { server, clock, candidate } = setUp();
    server.cut.set('one', 'fail');
    const one = candidate('one');
    await clock.advance(5_000);
    await one.elector.stop();
    await one.done;
    assert.equal(clock.pendingTimers, 0);
  });
});
