/** The shared address of the masters moves between hosts. Run by `npm run test:lab`. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { eventually, run } from '../e2e/harness.ts';
import { LabCluster } from './support/lab-cluster.ts';
import { type NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

const ADDRESS = '192.0.2.200';
const ADD_ADDRESS = `f=/etc/origin/bootstrap.yaml
[ -s $f ] || printf 'apiVersion: hyperedge.dev/v1\\nkind: Bootstrap\\n' > $f
echo 'vip: { address: ${ADDRESS} }' >> $f`;

describe('shared address of the masters', { skip: missing ?? false }, () => {
  let cluster: LabCluster;
  let node: NspawnHost;

  before(async () => {
    cluster = await LabCluster.formed({ masters: 3, nodes: 1 }, 'shared-address');
    node = cluster.host(3);
    for (const host of cluster.hosts.slice(0, 3)) {
      await host.must('sh', ['-c', ADD_ADDRESS]);
      await host.must('systemctl', ['restart', 'hyperedge'], { timeoutMs: 120_000 });
      await cluster.untilBack(host, cluster.hosts.slice(0, 3));
    }
    await cluster.line.step('the shared address answers', () => answers(120_000));
  });
  after(() => cluster?.stop());

  /** Waits for a verified response at the shared address, as a client on a node requests it. */
  const answers = (timeoutMs: number): Promise<unknown> =>
    eventually('an answer at the shared address', timeoutMs, async () => {
      const args = ['-s', `https://${ADDRESS}:8443`, '--request-timeout=1s', 'get', '--raw', '/readyz'];
      const KUBECONFIG = join(cluster.host(0).root, 'etc/origin/master/admin.kubeconfig');
      const ran = await node.kubectl(args, { env: { KUBECONFIG }, timeoutMs: 5_000 });
      if (ran.code === 0) return true;
      throw new Error(ran.stderr);
    });

  async function holder(off?: NspawnHost): Promise<NspawnHost> {
    const found: NspawnHost[] = [];
    for (const host of cluster.hosts.filter((each) => each !== off)) {
      const { stdout } = await run('nsenter', ['-t', String(host.pid1), '-n', 'ip', '-o', 'addr']);
      if (stdout.includes(`${ADDRESS}/`)) found.push(host);
    }
    assert.equal(found.length, 1, `${found.map(({ name }) => name).join()} hold the address`);
    return found[0] as NspawnHost;
  }

  test('the shared address of the masters moves immediately when its holder stops', async () => {
    const first = await holder();
    await first.must('systemctl', ['stop', 'hyperedge'], { timeoutMs: 120_000 });
    await cluster.line.step('after a stop: the shared address answers', () => answers(30_000));
    assert.notEqual(await holder(), first);
    await first.must('systemctl', ['start', 'hyperedge'], { timeoutMs: 120_000 });
    await cluster.untilBack(first, cluster.hosts.slice(0, 3));
  });

  test('the shared address of the masters moves when its holder loses power', async () => {
    const first = await holder();
    await first.cutPower();
    await cluster.line.step('after a death: the shared address answers', () => answers(60_000));
    await holder(first);
    await first.boot();
    await cluster.untilBack(first, cluster.hosts.slice(0, 3));
    await holder();
  });
});
