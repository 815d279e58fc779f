/** Rolling restart of members while clients read, write and watch: no request fails. */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { storeRevision } from '../../src/base/brand.ts';
import { silentLog } from '../../src/base/log.ts';
import { createEtcdStore } from '../../src/store/client/etcd-store.ts';
import type { Store } from '../../src/store/port.ts';
import { type ClusterMember, runningCluster } from './cluster-harness.ts';
import { clock } from './harness.ts';

const LOOPS = 3;
const PAUSE_MS = 2;
const DOWN_MS = 100;
const UP_MS = 300;

interface Load {
  readonly failures: string[];
  readonly written: Map<string, string>;
  reads: number;
}

describe('restarts of members under load', () => {
  let cluster: Awaited<ReturnType<typeof runningCluster>>;
  const stores: Store[] = [];

  before(async () => {
    cluster = await runningCluster(3);
    const endpoints = cluster.members.map(({ endpoint }) => endpoint);
    // The client of each host prefers the host's own member.
    for (const [at] of endpoints.entries())
      stores.push(
        createEtcdStore({ endpoints: [...endpoints.slice(at), ...endpoints.slice(0, at)], clock, log: silentLog }),
      );
  });
  after(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await cluster.remove();
  });

  const serves = async (member: ClusterMember): Promise<void> => {
    const own = createEtcdStore({ endpoints: [member.endpoint], clock, log: silentLog });
    await own.ping(10_000);
    await own.close();
  };

  test('restarting members under load fails no request, applies each write once, and loses no watch event', async () => {
    const load: Load = { failures: [], written: new Map(), reads: 0 };
    const seen = stores.map((store) => {
      const events = new Map<string, string[]>();
      const watch = store.watch('/load/', '/load0', storeRevision(1), {
        events: (all) => {
          for (const { kv } of all) events.set(kv.key, [...(events.get(kv.key) ?? []), kv.value.toString()]);
        },
        progress: () => {},
        closed: (error) => load.failures.push(`watch: ${error?.message}`),
      });
      return { events, watch };
    });
    let stopping = false;
    const loops = stores.flatMap((store, host) =>
      Array.from({ length: LOOPS }, async (_, loop) => {
        const key = `/load/${host}-${loop}`;
        let modRevision = storeRevision(0);
        for (let count = 0; !stopping; count += 1) {
          const value = Buffer.from(String(count));
          try {
            const result = await store.commit({ guards: [{ key, modRevision }], puts: [{ key, value }] });
            if (!result.committed) load.failures.push(`${key} ${count}: conflict`);
            else load.written.set(key, String(count));
            ({ revision: modRevision } = result);
            const { kv } = await store.get(key);
            if (kv?.value.toString() !== String(count)) load.failures.push(`${key} ${count}: reads ${kv?.value}`);
            load.reads += 1;
          } catch (error) {
            load.failures.push(`${key} ${count} at ${Math.round(performance.now())}: ${(error as Error).message}`);
            break;
          }
          await sleep(PAUSE_MS);
        }
      }),
    );
    for (const member of cluster.members) await serves(member);
    await sleep(UP_MS);
    for (const member of [...cluster.members, ...cluster.members]) {
      await member.stop();
      await sleep(DOWN_MS);
      await member.start(true);
      await serves(member);
      await sleep(UP_MS);
    }
    stopping = true;
    await Promise.all(loops);
    assert.deepEqual(load.failures, []);
    for (const { events, watch } of seen) {
      for (const [key, last] of load.written) {
        for (let tries = 0; events.get(key)?.at(-1) !== last && tries < 100; tries += 1) await sleep(20);
        const wanted = Array.from({ length: Number(last) + 1 }, (_, count) => String(count));
        assert.deepEqual(events.get(key), wanted);
      }
      watch.cancel();
    }
    assert.ok(load.reads > 500, `${load.reads} reads`);
  });
});
