/** Rotation of all certificate authorities of a cluster from one of several masters. Run by `npm run test:lab`. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { eventually } from '../e2e/harness.ts';
import { LabCluster } from './support/lab-cluster.ts';
import { whyNoNspawn } from './support/nspawn-host.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

const PHASE_MS = 180_000;

describe('rotation of authorities', { skip: missing ?? false }, () => {
  let cluster: LabCluster;

  before(async () => {
    cluster = await LabCluster.formed({ masters: 3, nodes: 1 }, 'rotate');
  });
  after(() => cluster?.stop());

  test('hyperedge ca rotate on one master replaces the certificate authorities of all hosts', async () => {
    const a = cluster.host(0);
    const masters = cluster.hosts.slice(0, 3);
    const { line } = cluster;
    const ca = (root: string): Promise<string> => readFile(join(root, 'etc/origin/master/ca.crt'), 'utf8');
    const trusted = (root: string): Promise<string> => readFile(join(root, 'etc/origin/node/client-ca.crt'), 'utf8');
    const old = await ca(a.root);
    for (const phase of ['new-ca', 'reissue', 'finish']) {
      await line.step(`phase ${phase}, once all masters have the last one`, () =>
        eventually(`phase ${phase}`, PHASE_MS, async () => {
          const ran = await a.inside('hyperedge', ['ca', 'rotate', '--phase', phase], { timeoutMs: 60_000 });
          if (ran.code === 0) return true;
          assert.match(ran.stderr, /has not reached these masters/);
          return undefined;
        }),
      );
      await line.step('nodes trust what masters trust', () =>
        eventually('trusted authorities', PHASE_MS, async () => {
          const bundle = await readFile(join(a.root, 'etc/origin/master/ca-bundle.crt'), 'utf8');
          const all = await Promise.all(cluster.hosts.map(({ root }) => trusted(root)));
          return all.every((each) => each.trim() === bundle.trim()) ? true : undefined;
        }),
      );
    }
    const now = await ca(a.root);
    assert.notEqual(now, old);
    await line.step('all masters sign with the new one', () =>
      eventually('the new authority', PHASE_MS, async () =>
        (await Promise.all(masters.map(({ root }) => ca(root)))).every((each) => each === now) ? true : undefined,
      ),
    );
    for (const host of cluster.hosts) await line.step(`${host.name}`, () => cluster.untilBack(host, masters));
  });
});
