/** Temporary copies of the store for snapshots, which contain all secrets of the cluster. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AttackCase } from '../port.ts';

export const cases: readonly AttackCase[] = [
  {
    finding: 16,
    title: 'a copy of the store is readable by root alone while a snapshot is taken',
    attack: async (lab) => {
      const { root } = lab.appliance;
      const data = join(root, 'var/lib/origin/openshift.local.etcd');
      const work = await mkdtemp(join(tmpdir(), 'he-copies-'));
      const modes = new Set<string>();
      let ended = false;
      const watched = (async () => {
        while (!ended) {
          for (const name of await readdir(data)) {
            if (!name.startsWith('snapshot-')) continue;
            const status = await stat(join(data, name)).catch(() => undefined);
            if (status !== undefined) modes.add((status.mode & 0o777).toString(8));
          }
          await new Promise((resolve) => setImmediate(resolve));
        }
      })();
      try {
        for (let round = 0; round < 5; round++) {
          const args = ['snapshot', 'save', join(work, `${round}.db`), '--root', root];
          const ran = await lab.appliance.hyperedge(args, { timeoutMs: 60_000 });
          assert.equal(ran.code, 0, ran.stderr);
        }
        ended = true;
        await watched;
        assert.deepEqual([...modes], ['600']);
        for (const name of await readdir(work)) assert.equal((await stat(join(work, name))).mode & 0o777, 0o600);
      } finally {
        ended = true;
        await rm(work, { recursive: true, force: true });
      }
    },
  },
];
