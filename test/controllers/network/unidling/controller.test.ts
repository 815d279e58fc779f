/** `oc idle`: workloads of idled services start again when their traffic is reported. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import type { Service } from '../../../../src/api/generated/core/v1.ts';
import { resources } from '../../../../src/api/resources.ts';
import { silentLog } from '../../../../src/base/log.ts';
import { createEventRecorder } from '../../../../src/client/index.ts';
import { createNeedPods, type NeedPods } from '../../../../src/client/informers/need-pods.ts';
import { systemClock as clock, systemRandom as random } from '../../../../src/host/process/process.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../harness.ts';

const IDLED_AT = 'idling.alpha.openshift.io/idled-at';
const TARGETS = 'idling.alpha.openshift.io/unidle-targets';
const oc = process.env['HYPEREDGE_OC'];
const run = promisify(execFile);

describe('idled services', { concurrency: false }, () => {
  let plane: ControlPlane;
  let needPods: NeedPods;
  let stopEvents: () => Promise<void>;
  before(async () => {
    plane = await startControlPlane();
    await plane.addNode('n1');
    await plane.of(resources.namespaces).create({ metadata: { name: 'shop' } });
    const client = await plane.clientAs('system:node:n1', 'system:nodes');
    const recorder = createEventRecorder({ client, component: 'router', host: 'n1', clock, random, log: silentLog });
    stopEvents = () => recorder.stop();
    needPods = createNeedPods(recorder, clock);
  });
  after(async () => {
    await stopEvents();
    await plane.stop();
  });

  const deploy = async (name: string, replicas: number): Promise<void> => {
    const labels = { app: name };
    const containers = [{ name: 'c', image: 'x' }];
    const spec = { automountServiceAccountToken: false, containers };
    await plane.of(resources.deployments).create({
      metadata: { name, namespace: 'shop' },
      spec: { replicas, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    });
    await plane.of(resources.services).create({
      metadata: { name, namespace: 'shop' },
      spec: { selector: labels, ports: [{ port: 80 }] },
    });
    await eventually(async () => {
      const { subsets } = await plane.of(resources.endpoints).get(name, 'shop');
      return (subsets?.[0]?.addresses?.length ?? 0) === replicas || replicas === 0;
    }, 'endpoints');
  };
  const replicasOf = async (name: string): Promise<number | undefined> =>
    (await plane.of(resources.deployments).get(name, 'shop')).spec?.replicas;
  const service = (name: string): Promise<Service> => plane.of(resources.services).get(name, 'shop');
  const annotate = async (name: string, targets: unknown): Promise<void> => {
    const annotations = { [IDLED_AT]: new Date().toISOString(), [TARGETS]: JSON.stringify(targets) };
    await plane.of(resources.endpoints).patch(name, 'shop', 'merge', { metadata: { annotations } });
    await plane.of(resources.services).patch(name, 'shop', 'merge', { metadata: { annotations } });
  };
  const isAwake = async (name: string): Promise<boolean> => {
    const found = await service(name);
    const { metadata } = await plane.of(resources.endpoints).get(name, 'shop');
    return found.metadata?.annotations?.[IDLED_AT] === undefined && metadata?.annotations?.[TARGETS] === undefined;
  };

  it('idled services are scaled up by an Event of a host, and lose their annotations', async () => {
    await deploy('web', 0);
    await annotate('web', [{ kind: 'Deployment', group: 'apps', name: 'web', replicas: 3 }]);
    needPods(await service('web'));
    await eventually(() => isAwake('web'), 'no annotations');
    assert.equal(await replicasOf('web'), 3);
  });

  it('idled services scale only idle workloads of their own namespace', async () => {
    await deploy('odd', 0);
    await deploy('running', 1);
    await annotate('odd', [
      null,
      { kind: 'Deployment', group: 'apps', name: '../../kube-system/deployments/x', replicas: 1 },
      { kind: 'Node', group: '', name: 'n1', replicas: 1 },
      { kind: 'Deployment', group: 'apps', name: 'odd', replicas: 1e9 },
      { kind: 'Deployment', group: 'apps', name: 'missing', replicas: 1 },
      { kind: 'Deployment', group: 'apps', name: 'running', replicas: 7 },
    ]);
    needPods(await service('odd'));
    await eventually(() => isAwake('odd'), 'no annotations');
    assert.deepEqual([await replicasOf('odd'), await replicasOf('running')], [0, 1]);
  });

  it('idled services are created by oc idle', {
    skip: oc === undefined ? 'HYPEREDGE_OC names no oc' : false,
  }, async () => {
    await deploy('real', 2);
    const directory = await mkdtemp(join(tmpdir(), 'hyperedge-idle-'));
    try {
      const pair = await plane.api.user('system:admin', 'system:masters');
      const encoded = (text: string): string => Buffer.from(text).toString('base64');
      const cluster = { server: plane.api.url, 'certificate-authority-data': encoded(plane.api.ca.certPem) };
      const user = { 'client-certificate-data': encoded(pair.certPem), 'client-key-data': encoded(pair.keyPem) };
      const kubeconfig = join(directory, 'kubeconfig');
      const content = {
        apiVersion: 'v1',
        kind: 'Config',
        'current-context': 'c',
        clusters: [{ name: 'c', cluster }],
        users: [{ name: 'u', user }],
        contexts: [{ name: 'c', context: { cluster: 'c', user: 'u', namespace: 'shop' } }],
      };
      await writeFile(kubeconfig, JSON.stringify(content), { mode: 0o600 });
      const { stdout } = await run(oc ?? '', ['--kubeconfig', kubeconfig, 'idle', 'real'], { timeout: 60_000 });
      assert.match(stdout, /The service will unidle Deployment "shop\/real" to 2 replicas/);
      await eventually(async () => (await replicasOf('real')) === 0, 'no replicas');
      needPods(await service('real'));
      await eventually(async () => (await replicasOf('real')) === 2, 'two replicas');
      await eventually(() => isAwake('real'), 'no annotations');
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
});
