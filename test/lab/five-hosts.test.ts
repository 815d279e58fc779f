/** Three masters and two nodes; a master and a node lose power together under load. Run by `npm run test:lab`. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually } from '../e2e/harness.ts';
import { LabCluster } from './support/lab-cluster.ts';
import { type NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

const ERROR_WINDOW_MS = 5_000;

describe('five hosts', { skip: missing ?? false }, () => {
  let cluster: LabCluster;
  let a: NspawnHost;

  before(async () => {
    cluster = await LabCluster.formed({ masters: 3, nodes: 2 }, 'five-hosts');
    a = cluster.host(0);
    await cluster.importImage();
    await cluster.deployWeb(a);
  });
  after(() => cluster?.stop());

  test('a cluster of five hosts survives that a master and a node lose power together', async () => {
    const [lostMaster, client, lostNode] = [cluster.host(1), cluster.host(3), cluster.host(4)];
    const report = await cluster.underLoad('a master and a node off', { client, by: a }, () =>
      Promise.all([lostMaster.cutPower(), lostNode.cutPower()]),
    );
    assert.ok(report.errorWindowMs <= ERROR_WINDOW_MS, `${report.errorWindowMs} ms of errors`);
    const { line } = cluster;
    await line.step('both booted', () => Promise.all([lostMaster.boot(), lostNode.boot()]));
    await line.step('five hosts Ready', () => cluster.untilReady(a, cluster.hosts, 180_000));
    await line.step('three voters, one ring of five', async () => {
      await cluster.untilVoters(a, cluster.hosts.slice(0, 3), 180_000);
      await cluster.untilRing(cluster.hosts, 180_000);
    });
    await line.step('the application answers', () =>
      eventually('the application', 180_000, async () => {
        const found = await cluster.reachWeb(a, cluster.hosts);
        return found.length === 3 ? found : undefined;
      }),
    );
  });
});
