/**
 * Restarts, and a new executable on one host after the other, while a client sends requests. Run by `npm run test:lab`.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { executable, sleep } from '../e2e/harness.ts';
import { copyAnotherBuild } from './support/another-build.ts';
import { LabCluster } from './support/lab-cluster.ts';
import { type NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

describe('planned restarts under load', { skip: missing ?? false }, () => {
  let cluster: LabCluster;
  let masters: readonly NspawnHost[];
  let a: NspawnHost;
  let node: NspawnHost;

  before(async () => {
    cluster = await LabCluster.formed({ masters: 3, nodes: 1 }, 'rolling');
    masters = cluster.hosts.slice(0, 3);
    a = cluster.host(0);
    node = cluster.host(3);
  });
  after(() => cluster?.stop());

  test('restarts the host process that the client uses without a failed request', async () => {
    const report = await cluster.underLoad(
      `host process of ${node.name} restarted`,
      { client: node, by: a },
      async () => {
        for (let round = 0; round < 3; round++) {
          await node.must('systemctl', ['restart', 'hyperedge'], { timeoutMs: 60_000 });
          await sleep(1_000);
        }
      },
    );
    assert.deepEqual(report.errors, []);
  });

  test('replaces the executable on all hosts without a failed request', async () => {
    for (const host of cluster.hosts) {
      await copyAnotherBuild(executable, join(host.root, 'root/upgrade'));
    }
    const report = await cluster.underLoad('executable replaced on all hosts', { client: node, by: a }, async () => {
      for (const host of cluster.hosts)
        await cluster.line.step(`${host.name}: install of the new executable`, async () => {
          await cluster.install(host, ['install'], '/root/upgrade');
          await cluster.untilBack(host, masters);
        });
    });
    assert.deepEqual(report.errors, []);
  });
});
