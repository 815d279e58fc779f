/** Short form of test/lab/three-hosts.test.ts: three blank hosts, an application, and a failing master. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LabCluster } from '../lab/support/lab-cluster.ts';
import { whyNoNspawn } from '../lab/support/nspawn-host.ts';
import { eventually, sleep } from './harness.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

/** Three times the bound of the lab, because other tests run concurrently. */
const ERROR_WINDOW_MS = 3_000;

test('forms a cluster of three blank hosts that survives the loss of a host', {
  skip: missing ?? false,
  timeout: 240_000,
}, async () => {
  const cluster = await LabCluster.create(3, 'short');
  try {
    const { line, hosts } = cluster;
    const a = cluster.host(0);
    await line.step('install', () => cluster.install(a));
    const command = await cluster.joinCommand(a, '--roles', 'master,etcd,node', '--ttl', '1h');
    await line.step('install --join of two', () =>
      Promise.all(cluster.others(a).map((host) => cluster.install(host, command))),
    );
    await line.step('all Ready', () => cluster.untilReady(a, hosts));
    await line.step('three voters', () => cluster.untilVoters(a, hosts));
    await line.step('one ring', () => cluster.untilRing(hosts));
    await cluster.importImage();
    await line.step('application Ready', () => cluster.deployWeb(a));
    const served = await line.step('reached from each host', () => cluster.reachWeb(a, hosts));
    assert.equal(served.length, 3, served.join());
    const leader = await cluster.leader(a);
    const [one, two] = cluster.others(leader);
    assert.ok(one !== undefined && two !== undefined);
    const client = cluster.load(one, two);
    await sleep(500);
    await leader.cutPower();
    await sleep(5_000);
    const report = await client.stop();
    line.note(`leader killed: ${report.errors.length} errors within ${report.errorWindowMs} ms`);
    assert.ok(report.written.length > 0);
    assert.ok(report.errorWindowMs <= ERROR_WINDOW_MS, JSON.stringify(report.errors.slice(0, 5)));
    assert.deepEqual(await cluster.lostWrites(one, report), []);
    const ready = await one.inside('hyperedge', ['status']);
    assert.match(ready.stdout, /^node \S+ \(\S+\): Ready\n/, ready.stderr);
    await two.cutPower();
    await line.step('status without a quorum', () =>
      eventually('status reports the lost quorum', 30_000, async () => {
        const { stdout } = await one.inside('hyperedge', ['status']);
        return /^node \S+ \(\S+\): NotReady: the API server is not ready: /.test(stdout) ? true : undefined;
      }),
    );
  } finally {
    await cluster.stop();
  }
});
