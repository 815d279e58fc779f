/**
 * Three masters and a node are installed and joined from blank Debian hosts with the executable. They run an
 * application, and each host fails and recovers. Run by `npm run test:lab`.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { eventually, executable, sleep } from '../e2e/harness.ts';
import { copyAnotherBuild } from './support/another-build.ts';
import { LabCluster } from './support/lab-cluster.ts';
import { type NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';
import type { RequestReport } from './support/requests.child.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

const READY_MS = 60_000;
const ERROR_WINDOW_MS = 1_000;
const RESTART_WINDOW_MS = 3_000;
const AFTER_FAULT_MS = 8_000;

describe('cluster of blank hosts', { skip: missing ?? false }, () => {
  let cluster: LabCluster;
  let masters: readonly NspawnHost[];
  let a: NspawnHost;
  let node: NspawnHost;
  let forNodes: string[];
  let forMasters: string[];

  before(async () => {
    cluster = await LabCluster.create(4, 'hosts');
    masters = cluster.hosts.slice(0, 3);
    a = cluster.host(0);
    node = cluster.host(3);
  });
  after(() => cluster?.stop());

  const tokens = async (by: NspawnHost): Promise<void> => {
    forNodes = await cluster.joinCommand(by, '--roles', 'node', '--ttl', '24h');
    forMasters = await cluster.joinCommand(by, '--roles', 'master,etcd,node', '--ttl', '1h');
  };

  /** Runs `act` while a client on the node sends requests. */
  const underLoad = (what: string, by: NspawnHost, act: () => Promise<unknown>): Promise<RequestReport> =>
    cluster.underLoad(what, { client: node === by ? a : node, by }, act);

  test('three blank hosts are installed and joined until all are Ready', async () => {
    const { line } = cluster;
    const began = performance.now();
    await line.step('A: install', () => cluster.install(a));
    await line.step('A: token create, for nodes and for masters', () => tokens(a));
    await Promise.all(
      cluster
        .others(a)
        .map((host) =>
          line.step(`${host.name}: install --join`, () => cluster.install(host, host === node ? forNodes : forMasters)),
        ),
    );
    await line.step('all nodes Ready', () => cluster.untilReady(a, cluster.hosts));
    const ms = performance.now() - began;
    line.note(`all hosts Ready ${(ms / 1000).toFixed(1)} s after the first install`);
    await line.step('three voters', () => cluster.untilVoters(a, masters));
    await line.step('one ring', () => cluster.untilRing(cluster.hosts));
    assert.ok(ms <= READY_MS, `${ms} ms`);
  });

  test('kubectl returns the same objects on each of three hosts', async () => {
    for (const host of masters) {
      assert.deepEqual(await cluster.readyNodes(host), cluster.hosts.map(({ name }) => name).sort());
      // Roles are labels, which controllers set shortly after a node joins.
      await eventually('roles and addresses of all nodes', 20_000, async () => {
        const wide = await host.mustKubectl(['get', 'nodes', '-o', 'wide']);
        const shows = ({ name, address }: NspawnHost, roles: string): boolean =>
          new RegExp(`^${name} +Ready +${roles} +\\S+ +\\S+ +${address.replaceAll('.', '\\.')} `, 'm').test(wide);
        if (masters.every((each) => shows(each, '\\S*master\\S*')) && shows(node, 'compute')) return true;
        throw new Error(wide);
      });
      await cluster.untilVoters(host, masters);
      const status = await host.must('hyperedge', ['status']);
      assert.match(status, new RegExp(`^node ${host.name} \\(${host.address}\\): Ready$`, 'm'));
      for (const component of ['api', 'controllers', 'etcd'])
        assert.match(status, new RegExp(`^${component} +running`, 'm'), status);
    }
    const status = await node.must('hyperedge', ['status']);
    assert.match(status, new RegExp(`^node ${node.name} \\(${node.address}\\): Ready$`, 'm'));
    assert.doesNotMatch(status, /undefined|admin\.kubeconfig/);
    const refused = await node.inside('hyperedge', ['members']);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /^hyperedge: .*this host has no store/);
  });

  test('serves an application on each of three hosts by service name and by address', async () => {
    const { line } = cluster;
    await line.step('image imported on each host', () => cluster.importImage());
    await line.step('application Ready', () => cluster.deployWeb(a));
    const served = await line.step('reached from a pod on each host', () => cluster.reachWeb(a, cluster.hosts));
    assert.equal(served.length, 3, served.join());
  });

  test('a failed master causes at most one second of errors and no lost write', async () => {
    const leader = await cluster.leader(a);
    const [other] = masters.filter((host) => host !== leader) as [NspawnHost];
    const report = await underLoad(`power of the leader ${leader.name} cut`, other, async () => {
      await leader.cutPower();
      await sleep(AFTER_FAULT_MS);
    });
    await cluster.line.step(`${leader.name}: boot, Ready, voter, in the ring`, async () => {
      await leader.boot();
      await cluster.untilBack(leader, masters);
    });
    assert.ok(report.errorWindowMs <= ERROR_WINDOW_MS, JSON.stringify(report.errors.slice(0, 5)));
  });

  test('each of three hosts recovers after a power loss', async () => {
    for (const host of cluster.hosts) {
      const by = masters.find((each) => each !== host) ?? a;
      await host.cutPower();
      const ms = await cluster.writable(by, `without-${host.name}`);
      cluster.line.note(`written ${Math.round(ms)} ms after the power of ${host.name} was cut`);
      await cluster.line.step(`${host.name}: boot, Ready, voter, in the ring`, async () => {
        await host.boot();
        await cluster.untilBack(host, masters);
      });
    }
    await cluster.line.step('the application answers everywhere', async () => {
      await eventually('the application', 60_000, async () =>
        (await cluster.reachWeb(a, cluster.hosts)).length === 3 ? true : undefined,
      );
    });
  });

  test('requests succeed while one host is isolated, disconnected or paused, and that host recovers afterwards', async () => {
    const faults: readonly [string, (host: NspawnHost, on: boolean) => Promise<void>][] = [
      ['cut off', (host, on) => cluster.lan.cutOff(host, on)],
      ['unplugged', (host, on) => cluster.lan.cable(host, !on)],
      ['paused', (host, on) => host.pause(on)],
    ];
    for (const [what, fault] of faults) {
      const host = await cluster.leader(a);
      const [by] = masters.filter((each) => each !== host) as [NspawnHost];
      const report = await underLoad(`${host.name}, the leader, ${what}`, by, async () => {
        await fault(host, true);
        await sleep(AFTER_FAULT_MS);
      });
      await fault(host, false);
      await cluster.line.step(`${host.name} is back`, () => cluster.untilBack(host, masters));
      assert.ok(report.requests > 50);
    }
  });

  test('resets and rejoins first a node and then a master', async () => {
    for (const host of [node, cluster.host(2)]) {
      const ran = await cluster.line.step(`${host.name}: reset`, () =>
        host.inside('hyperedge', ['reset'], { timeoutMs: 180_000 }),
      );
      assert.equal(ran.code, 0, `${ran.stdout}${ran.stderr}`);
      assert.match(ran.stdout, new RegExp(`node ${host.name} is drained`));
      assert.match(ran.stdout, new RegExp(`node ${host.name} is deleted`));
      const names = await a.mustKubectl(['get', 'nodes', '-o', 'name']);
      assert.doesNotMatch(names, new RegExp(host.name));
      await tokens(a);
      const command = host === node ? forNodes : forMasters;
      await cluster.line.step(`${host.name}: install --join`, () => cluster.install(host, command));
      await cluster.line.step(`${host.name} is back`, () => cluster.untilBack(host, masters));
    }
    // The drain deleted the pods, and the reset hosts have no images.
    await cluster.importImage();
    await cluster.deployWeb(a);
  });

  test('replaces the executable on one host after the other under load', async () => {
    for (const host of cluster.hosts) {
      await copyAnotherBuild(executable, join(host.root, 'root/upgrade'));
    }
    const report = await underLoad('executable replaced on all hosts', a, async () => {
      for (const host of cluster.hosts)
        await cluster.line.step(`${host.name}: install of the new executable`, async () => {
          await cluster.install(host, ['install'], '/root/upgrade');
          await cluster.untilBack(host, masters);
        });
    });
    // The client's load balancer is down while its own host process restarts.
    assert.ok(report.errorWindowMs <= RESTART_WINDOW_MS, JSON.stringify(report.errors.slice(0, 5)));
    assert.equal((await cluster.reachWeb(a, cluster.hosts)).length, 3);
  });
});
