/**
 * Node groups: a ConfigMap in openshift-node becomes a KubeletConfig of the host's pool and the kubelet's
 * configuration, while pods keep running.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually } from './harness.ts';
import { idle, PodLab, pod, restartsOf } from './pods/lab.ts';

const GROUP = 'node-config-all-in-one';
const GOAL_MS = 10_000;
let lab: PodLab;

before(
  async () => {
    lab = await PodLab.create();
  },
  { timeout: 90_000 },
);
after(() => lab?.stop(), { timeout: 90_000 });

/** A group as OKD 3.11's installer writes it. */
const okdConfig = (maxPods: number): string => `apiVersion: v1
kind: NodeConfig
allowDisabledDocker: false
dnsBindAddress: 127.0.0.1:53
dnsRecursiveResolvConf: /etc/origin/node/resolv.conf
enableUnidling: true
podManifestConfig: null
kubeletArguments:
  bootstrap-kubeconfig: [/etc/origin/node/bootstrap.kubeconfig]
  feature-gates: [RotateKubeletServerCertificate=true]
  max-pods: ['${maxPods}']
  node-labels: [node-role.kubernetes.io/compute=true, node-role.kubernetes.io/infra=true, lab.example/rack=r7]
`;

test('applies an edited node group to the host within 10 s, with labels and without container restarts', {
  timeout: 90_000,
}, async (context) => {
  const names = (await lab.kubectl('get', 'configmap', '-n', 'openshift-node', '-o', 'name')).split('\n');
  for (const group of ['master', 'infra', 'compute', 'all-in-one', 'master-infra'])
    assert.ok(names.includes(`configmap/node-config-${group}`), group);
  await lab.apply(pod('steady', { containers: [idle()] }));
  const before = await lab.ready('steady');
  const controlPlane = lab
    .podsOf('master-', 'kube-system')
    .map((each) => each.status?.containerStatuses?.[0]?.containerID);
  const node = async () => JSON.parse(await lab.kubectl('get', 'nodes', '-o', 'json')).items[0];
  await eventually('a group that pools apply', GOAL_MS, async () =>
    /applied-by-pools/.test(await lab.kubectl('get', 'configmap', GROUP, '-n', 'openshift-node', '-o', 'yaml'))
      ? true
      : undefined,
  );
  const began = performance.now();
  await lab.kubectl(
    ...['patch', 'configmap', GROUP, '-n', 'openshift-node', '--type=merge', '-p'],
    JSON.stringify({ data: { 'node-config.yaml': okdConfig(42) } }),
  );
  const file = join(lab.appliance.root, 'etc/kubernetes/kubelet.conf');
  await eventually('kubelet.conf', GOAL_MS, async () =>
    /"maxPods": 42,/.test(await readFile(file, 'utf8')) ? true : undefined,
  );
  context.diagnostic(`kubelet.conf written after ${Math.round(performance.now() - began)} ms`);
  const { metadata } = await eventually('the Node', GOAL_MS, async () => {
    const found = await node();
    const isThere = found.status.capacity.pods === '42' && found.metadata.labels['lab.example/rack'] === 'r7';
    return isThere && found.metadata.labels['node-role.kubernetes.io/compute'] === 'true' ? found : undefined;
  });
  context.diagnostic(`on the Node after ${Math.round(performance.now() - began)} ms`);
  assert.equal(metadata.labels['node-restriction.kubernetes.io/node-group'], GROUP);
  const later = await lab.ready('steady');
  assert.equal(later.status?.containerStatuses?.[0]?.containerID, before.status?.containerStatuses?.[0]?.containerID);
  assert.equal(restartsOf(later), 0);
  assert.deepEqual(
    lab.podsOf('master-', 'kube-system').map((each) => each.status?.containerStatuses?.[0]?.containerID),
    controlPlane,
  );
  assert.match(lab.appliance.output, /fields of the node group have no effect on this host .*allowDisabledDocker/);
  // The new kubelet starts pods and runs commands in them.
  await lab.apply(pod('after', { containers: [idle()] }));
  await lab.ready('after');
  assert.equal((await lab.exec('after', 'echo', 'here')).trim(), 'here');
  assert.equal((await lab.exec('steady', 'echo', 'there')).trim(), 'there');
  await lab.kubectl(
    ...['patch', 'configmap', GROUP, '-n', 'openshift-node', '--type=merge', '-p'],
    JSON.stringify({ data: { 'node-config.yaml': 'kind: Oops' } }),
  );
  await eventually('the error message', GOAL_MS, () =>
    /node group not applied .*ConfigMap openshift-node\/node-config-all-in-one/.test(lab.appliance.output)
      ? true
      : undefined,
  );
  assert.match(await readFile(file, 'utf8'), /"maxPods": 42,/);
  // Each file has a single writer.
  const own = await readFile(join(lab.appliance.root, 'etc/origin/node/node-config.yaml'), 'utf8');
  assert.doesNotMatch(own, /"42"/);
  assert.match(own, /lab\.example\/rack=r7/);
  assert.match(await lab.kubectl('get', 'kubeletconfig', GROUP, '-o', 'yaml'), /maxPods: 42/);
});
