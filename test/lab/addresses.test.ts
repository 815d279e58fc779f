/**
 * Changes of host addresses: of a node, of a master, of the leader, and while a host is off. Run by `npm run test:lab`.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { eventually } from '../e2e/harness.ts';
import { LabCluster } from './support/lab-cluster.ts';
import { type NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

const FOLLOW_MS = 90_000;

describe('address changes of hosts', { skip: missing ?? false }, () => {
  let cluster: LabCluster;
  let masters: readonly NspawnHost[];
  let node: NspawnHost;

  before(async () => {
    cluster = await LabCluster.formed({ masters: 3, nodes: 1 }, 'addresses');
    masters = cluster.hosts.slice(0, 3);
    node = cluster.host(3);
    await cluster.importImage();
    await cluster.deployWeb(cluster.host(0));
  });
  after(() => cluster?.stop());

  /** Waits until every record of the host's address has the new one and not the old one. */
  async function followed(host: NspawnHost, old: string): Promise<void> {
    const by = masters.find((each) => each !== host) as NspawnHost;
    const { line } = cluster;
    const until = (what: string, met: () => Promise<string>, keepsOld = false): Promise<void> =>
      line.step(what, async () => {
        await eventually(what, FOLLOW_MS, async () => {
          const shown = await met();
          if (shown.includes(host.address) && (keepsOld || !shown.split(/[^0-9.]+/).includes(old))) return true;
          throw new Error(`${shown}\n${(await host.journal()).slice(-3_000)}`);
        });
      });
    await until('the Node has the new address', () =>
      by.mustKubectl(['get', 'node', host.name, '-o', 'jsonpath={.status.addresses}']),
    );
    for (const each of cluster.hosts)
      await until(`the ring, as ${each.name} sees it`, () =>
        each.must('hyperedge', ['gossip', 'members', '-o', 'json']),
      );
    if (masters.includes(host)) {
      await until(
        'the store has the new peer and client URLs',
        async () => (await by.inside('hyperedge', ['members', '-o', 'json'], { timeoutMs: 20_000 })).stdout,
      );
      await until('the service kubernetes leads to the new address', () =>
        by.mustKubectl(['get', 'endpoints', 'kubernetes', '-o', 'jsonpath={.subsets}']),
      );
      await line.step('the serving certificate is valid for the new address', () =>
        eventually('a verified answer', FOLLOW_MS, async () => {
          const ran = await by.kubectl(['get', 'ns', 'default', '-s', `https://${host.address}:8443`], {
            timeoutMs: 9_000,
          });
          return ran.code === 0 ? true : undefined;
        }),
      );
      // A master lists itself with the loopback address, and former addresses are kept for a cold boot, so only other
      // hosts are checked.
      for (const each of cluster.hosts)
        if (each !== host)
          await until(
            `the balancer of ${each.name}`,
            () => readFile(join(each.directoryOfState, 'masters'), 'utf8'),
            true,
          );
    }
    await line.step('everything is Ready', () => cluster.untilBack(host, masters));
    await line.step('the application answers', () =>
      eventually(
        'the application',
        60_000,
        async () => (await cluster.reachWeb(by, cluster.hosts)).length === 3 || undefined,
      ),
    );
  }

  test('the cluster uses the new address of a node after the address has changed', async () => {
    const old = node.address;
    await cluster.line.step(`${node.name}: another address`, () => node.changeAddress('192.0.2.77'));
    await followed(node, old);
  });

  test('the cluster uses the new addresses of masters, including the leader of the store, after they have changed', async () => {
    const leader = await cluster.leader(cluster.host(0));
    const [other] = masters.filter((host) => host !== leader) as [NspawnHost];
    for (const [host, address] of [
      [other, '192.0.2.78'],
      [leader, '192.0.2.79'],
    ] as const) {
      const old = host.address;
      const by = masters.find((each) => each !== host) as NspawnHost;
      await cluster.underLoad(`address of ${host.name} changed`, { client: node, by }, async () => {
        await cluster.line.step(`${host.name}: another address`, () => host.changeAddress(address));
        await followed(host, old);
      });
    }
  });

  test('the cluster uses the new address of a master that changed while the master was off', async () => {
    const host = cluster.host(1);
    const old = host.address;
    await host.powerOff();
    host.address = '192.0.2.80';
    await cluster.line.step(`${host.name}: boot with another address`, () => host.boot());
    await followed(host, old);
    assert.equal((await cluster.readyNodes(host)).length, 4);
  });
});
