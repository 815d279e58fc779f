/** All hosts lose power at once, then start again with the application. Run by `npm run test:lab`. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually } from '../e2e/harness.ts';
import { LabCluster } from './support/lab-cluster.ts';
import { type NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

describe('power loss of all hosts at once', { skip: missing ?? false }, () => {
  let cluster: LabCluster;
  let masters: readonly NspawnHost[];
  let a: NspawnHost;

  before(async () => {
    cluster = await LabCluster.formed({ masters: 3, nodes: 0 }, 'all-off');
    masters = cluster.hosts;
    a = cluster.host(0);
    await cluster.importImage();
    await cluster.deployWeb(a);
  });
  after(() => cluster?.stop());

  test('after a power loss of all hosts, the cluster starts with all acknowledged writes and the application', async () => {
    const { line } = cluster;
    await cluster.writable(a, 'before-the-cut');
    await line.step('power of all hosts cut', () => Promise.all(cluster.hosts.map((host) => host.cutPower())));
    await line.step('all hosts booted', () => Promise.all(cluster.hosts.map((host) => host.boot())));
    await line.step('a write is acknowledged', () => cluster.writable(a, 'after-the-cut', 120_000));
    for (const host of masters) await host.mustKubectl(['get', 'configmap', 'before-the-cut', 'after-the-cut']);
    await line.step('everything is Ready', () => cluster.untilReady(a, cluster.hosts, 180_000));
    await line.step('three voters and one ring', async () => {
      await cluster.untilVoters(a, masters, 180_000);
      await cluster.untilRing(cluster.hosts, 180_000);
    });
    const served = await line.step('the application answers from each host', () =>
      eventually('the application', 180_000, async () => {
        const found = await cluster.reachWeb(a, cluster.hosts);
        return found.length === 3 ? found : undefined;
      }),
    );
    assert.equal(served.length, 3);
  });
});
