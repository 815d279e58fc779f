/** Revisions of the control plane on three masters while a client sends requests. Run by `npm run test:lab`. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually, sleep } from '../e2e/harness.ts';
import { LabCluster } from './support/lab-cluster.ts';
import { type NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

const ROLL_MS = 180_000;
const FALL_BACK_MS = 60_000;
const REST_MS = 10_000;

interface Status {
  readonly latestAvailableRevision?: number;
  readonly nodeStatuses?: readonly {
    readonly nodeName: string;
    readonly currentRevision?: number;
    readonly targetRevision?: number;
    readonly lastFailedRevision?: number;
  }[];
}

describe('revisions under load', { skip: missing ?? false }, () => {
  let cluster: LabCluster;
  let a: NspawnHost;
  let node: NspawnHost;

  before(async () => {
    cluster = await LabCluster.formed({ masters: 3, nodes: 1 }, 'revisions');
    a = cluster.host(0);
    node = cluster.host(3);
  });
  after(() => cluster?.stop());

  const status = async (kind: string): Promise<Status> =>
    JSON.parse(await a.mustKubectl(['get', kind, 'cluster', '-o', 'jsonpath={.status}'])) as Status;
  const patch = (kind: string, spec: object): Promise<string> =>
    a.mustKubectl(['patch', kind, 'cluster', '--type=merge', '-p', JSON.stringify({ spec })]);
  /** Waits until all masters run a revision newer than `old` and returns it. */
  const rolled = (kind: string, old: number): Promise<number> =>
    eventually(`a revision of ${kind} after ${old} on all masters`, ROLL_MS, async () => {
      const { latestAvailableRevision = 0, nodeStatuses = [] } = await status(kind);
      const isReached =
        nodeStatuses.length === 3 && nodeStatuses.every((each) => each.currentRevision === latestAvailableRevision);
      return isReached && latestAvailableRevision > old ? latestAvailableRevision : undefined;
    });

  const NAMESPACES = {
    kubeapiserver: 'openshift-kube-apiserver',
    kubecontrollermanager: 'openshift-kube-controller-manager',
    'etcds.operator.openshift.io': 'openshift-etcd',
  } as const;
  for (const [kind, namespace] of Object.entries(NAMESPACES)) {
    test(`${kind}: installs a forced revision on all masters without a failed request`, async () => {
      const old = await rolled(kind, 0);
      const report = await cluster.underLoad(`revision of ${kind}`, { client: node, by: a }, () =>
        cluster.line.step(`${kind}: all masters at the next revision`, async () => {
          await patch(kind, { forceRedeploymentReason: 'drill' });
          await rolled(kind, old);
        }),
      );
      assert.deepEqual(report.errors, []);
      const described = await a.mustKubectl(['describe', kind, 'cluster']);
      const output = await a.mustKubectl(['get', 'events', '-n', namespace, '-o', 'jsonpath={.items[*].message}']);
      for (const { name } of cluster.hosts.slice(0, 3)) {
        const wanted = new RegExp(`Updated node "${name}" from revision \\d+ to \\d+ because static pod is ready`);
        assert.match(described, wanted);
        assert.match(output, wanted);
      }
    });
  }

  test('an idle cluster records no events of ClusterOperators and other operator resources', async () => {
    const count = async (): Promise<number> => {
      const kinds = await a.mustKubectl(['get', 'events', '-A', '-o', 'jsonpath={.items[*].involvedObject.kind}']);
      return kinds.split(' ').filter((kind) => /^(Cluster(Operator|Version)|Etcd|Kube\w+)$/.test(kind)).length;
    };
    // Let Progressing and Degraded of the previous revisions end.
    await sleep(REST_MS);
    const before = await count();
    await sleep(REST_MS);
    cluster.line.note(`${before} events of operators`);
    assert.equal(await count(), before);
    assert.ok(before < 300, `${before} events`);
  });

  test('reverts a bad revision on the first master within a minute without a failed request', async () => {
    const old = await rolled('kubeapiserver', 0);
    const bad = {
      unsupportedConfigOverrides: { apiServerArguments: { 'admission-control-config-file': ['missing'] } },
    };
    let ms = 0;
    const report = await cluster.underLoad('bad revision', { client: node, by: a }, async () => {
      const began = performance.now();
      await patch('kubeapiserver', bad);
      await eventually('the last good revision', FALL_BACK_MS + 30_000, async () => {
        const { nodeStatuses = [] } = await status('kubeapiserver');
        return nodeStatuses.some((each) => each.lastFailedRevision === old + 1 && each.targetRevision === undefined)
          ? true
          : undefined;
      });
      ms = performance.now() - began;
    });
    cluster.line.note(`bad revision → last good: ${(ms / 1000).toFixed(1)} s`);
    assert.ok(ms <= FALL_BACK_MS, `${ms} ms`);
    assert.deepEqual(report.errors, []);
    const { nodeStatuses = [] } = await status('kubeapiserver');
    assert.ok(
      nodeStatuses.every((each) => each.currentRevision === old),
      JSON.stringify(nodeStatuses),
    );
    await patch('kubeapiserver', { unsupportedConfigOverrides: null });
    await rolled('kubeapiserver', old);
  });
});
