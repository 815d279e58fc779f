/**
 * Three blank Debian hosts, the executable and a switch: install, join, an application, the loss of each host, the
 * way out and back in. Run by `npm run test:lab`.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { LabCluster } from './lab-cluster.ts';
import { type NspawnHost, whyNoNspawn } from './nspawn-host.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

const READY_MS = 60_000;

describe('a person with three blank hosts', { skip: missing ?? false }, () => {
  let cluster: LabCluster;
  let hosts: readonly NspawnHost[];
  let a: NspawnHost;

  before(async () => {
    cluster = await LabCluster.create(3, 'three');
    ({ hosts } = cluster);
    a = cluster.host(0);
  });
  after(() => cluster?.stop());

  test('install and join: all Ready', async () => {
    const { line } = cluster;
    const began = performance.now();
    await line.step('A: install', () => cluster.install(a));
    const forNodes = await line.step('A: token create --roles node', () =>
      cluster.joinCommand(a, '--roles', 'node', '--ttl', '24h'),
    );
    assert.equal(forNodes[0], 'install');
    const forMasters = await line.step('A: token create --roles master,etcd,node', () =>
      cluster.joinCommand(a, '--roles', 'master,etcd,node', '--ttl', '1h'),
    );
    await Promise.all(
      cluster
        .others(a)
        .map((host) => line.step(`${host.name}: install --join`, () => cluster.install(host, forMasters))),
    );
    await line.step('three nodes Ready', () => cluster.untilReady(a, hosts));
    const ms = performance.now() - began;
    line.note(`three hosts Ready ${(ms / 1000).toFixed(1)} s after the first install`);
    await line.step('three voters', () => cluster.untilVoters(a, hosts));
    await line.step('one ring of three', () => cluster.untilRing(hosts));
    assert.ok(ms <= READY_MS, `${ms} ms`);
  });

  test('each host shows the cluster as it is', async () => {
    for (const host of hosts) {
      assert.deepEqual(await cluster.readyNodes(host), hosts.map(({ name }) => name).sort());
      const wide = await host.mustKubectl(['get', 'nodes', '-o', 'wide']);
      for (const { name, address } of hosts)
        assert.match(wide, new RegExp(`^${name} +Ready +master +\\S+ +\\S+ +${address.replaceAll('.', '\\.')} `, 'm'));
      await cluster.untilVoters(host, hosts);
      const status = await host.must('hyperedge', ['status']);
      assert.match(status, new RegExp(`^node ${host.name} \\(${host.address}\\): Ready$`, 'm'));
      for (const component of ['api', 'controllers', 'etcd'])
        assert.match(status, new RegExp(`^${component} +running`, 'm'), status);
    }
  });
});
