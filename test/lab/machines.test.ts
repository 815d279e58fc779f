/**
 * Bootstrap of a cluster from blank hosts: a temporary control plane, three hosts that offer themselves, and a
 * MachineSet of masters. Afterwards the temporary host can be removed. Run by `npm run test:lab`.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually } from '../e2e/harness.ts';
import { LabCluster } from './support/lab-cluster.ts';
import { type NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

const NAMESPACE = 'openshift-machine-api';
const MASTERS_MS = 180_000;
const MASTERS = JSON.stringify({
  apiVersion: 'machine.openshift.io/v1beta1',
  kind: 'MachineSet',
  metadata: { name: 'masters', namespace: NAMESPACE },
  spec: {
    replicas: 3,
    selector: { matchLabels: { set: 'masters' } },
    template: {
      metadata: { labels: { set: 'masters' } },
      spec: { providerSpec: { value: { roles: ['master', 'etcd', 'node'] } } },
    },
  },
});

describe('cluster created by machines', { skip: missing ?? false }, () => {
  let cluster: LabCluster;
  let temporary: NspawnHost;
  let masters: readonly NspawnHost[];

  before(async () => {
    cluster = await LabCluster.create(4, 'bootstrap by machines');
    temporary = cluster.host(0);
    masters = cluster.hosts.slice(1);
  });
  after(() => cluster?.stop());

  test('Machines turn three offered hosts into masters, and the temporary control plane ends', {
    timeout: 400_000,
  }, async () => {
    const { line } = cluster;
    await line.step('temporary control plane', () => cluster.install(temporary, ['install', '--bootstrap']));
    const command = await cluster.joinCommand(temporary, '--roles', 'node', '--ttl', '1h');
    const [server = '', caHash = ''] = ['--join', '--ca-hash'].map((flag) => command[command.indexOf(flag) + 1] ?? '');
    await line.step('three hosts offer themselves', () =>
      Promise.all(masters.map((host) => cluster.install(host, ['install', '--offer', server, '--ca-hash', caHash]))),
    );
    for (const { name } of masters) {
      await eventually(`${name} is offered`, 30_000, async () =>
        / available /.test(await temporary.mustKubectl(['get', 'bmh', '-n', NAMESPACE, name])) ? true : undefined,
      );
      const online = '{"spec":{"online":true}}';
      await temporary.mustKubectl(['patch', 'bmh', name, '-n', NAMESPACE, '--type=merge', '-p', online]);
    }
    const applied = await temporary.kubectl(['apply', '-f', '-'], { input: MASTERS });
    assert.equal(applied.code, 0, applied.stderr);
    const waited = await line.step('bootstrap-wait ends', () =>
      temporary.inside('hyperedge', ['install', '--bootstrap-wait', '--timeout', String(MASTERS_MS / 1000)], {
        timeoutMs: MASTERS_MS + 10_000,
      }),
    );
    const journal = (await temporary.inside('journalctl', ['-u', 'hyperedge', '-n', '60', '-o', 'cat'])).stdout;
    assert.equal(waited.code, 0, `${waited.stdout}${waited.stderr}\n${journal}`);
    assert.match(waited.stdout, /bootstrap complete: this host may be unplugged/);
    assert.match(journal, /bootstrap complete: the control plane runs on the masters; this host may be unplugged/);
    const state = await temporary.inside('systemctl', ['is-active', 'hyperedge']);
    assert.notEqual(state.stdout.trim(), 'active');
    assert.equal((await temporary.inside('test', ['-e', '/etc/origin/master'])).code, 1, 'the keys are removed');
  });

  test('the cluster continues on the masters after the temporary control plane has ended', {
    timeout: 200_000,
  }, async () => {
    const [a] = masters as [NspawnHost];
    await temporary.cutPower();
    await cluster.untilReady(a, masters);
    await cluster.untilVoters(a, masters);
    const status = await a.mustKubectl([
      'get',
      'configmap',
      '-n',
      'kube-system',
      'bootstrap',
      '-o',
      'jsonpath={.data.status}',
    ]);
    assert.equal(status, 'complete');
    const nodes = await a.mustKubectl(['get', 'nodes', '-o', 'name']);
    assert.equal(nodes.trim().split('\n').length, 3, nodes);
    for (const lease of ['kube-controller-manager', 'kube-scheduler']) {
      const holder = await eventually(`holder of ${lease}`, 30_000, async () => {
        const found = await a.mustKubectl([
          'get',
          'lease',
          '-n',
          'kube-system',
          lease,
          '-o',
          'jsonpath={.spec.holderIdentity}',
        ]);
        return masters.some(({ name }) => found.startsWith(`${name}_`)) ? found : undefined;
      });
      cluster.line.note(`${lease} is held by ${holder}`);
    }
    await eventually('three machines Running', 30_000, async () => {
      const shown = await a.mustKubectl(['get', 'machines', '-n', NAMESPACE, '--no-headers']);
      return shown
        .trim()
        .split('\n')
        .every((each) => / Running /.test(each))
        ? true
        : undefined;
    });
  });

  test('does not remove a master if the store would lose its quorum', { timeout: 120_000 }, async () => {
    const [a, b, c] = masters as [NspawnHost, NspawnHost, NspawnHost];
    await c.cutPower();
    const machineOf = async (host: NspawnHost): Promise<string> =>
      (
        await a.mustKubectl([
          ...['get', 'bmh', '-n', NAMESPACE, host.name],
          ...['-o', 'jsonpath={.spec.consumerRef.name}'],
        ])
      ).trim();
    const name = await machineOf(b);
    await a.mustKubectl(['delete', 'machine', '-n', NAMESPACE, name, '--wait=false']);
    const reason = await eventually('refusal', 60_000, async () => {
      const path = 'jsonpath={.status.conditions[?(@.type=="Drainable")].reason}';
      const found = await a.mustKubectl(['get', 'machine', '-n', NAMESPACE, name, '-o', path]);
      return found === 'WouldLoseQuorum' ? found : undefined;
    });
    assert.equal(reason, 'WouldLoseQuorum');
    assert.match(await b.must('hyperedge', ['status']), /Ready/);
  });
});
