import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { nodeConfigOf } from '../../../src/host/config/generate.ts';
import { parseNodeConfig, readNodeConfig } from '../../../src/host/config/node-config.ts';
import {
  groupedNodeConfig,
  groupLabels,
  groupNameOf,
  sysconfigOf,
  withGroup,
} from '../../../src/host/config/node-group.ts';
import { settingsOf } from '../../../src/host/config/settings.ts';

const settings = settingsOf({
  root: '/r',
  bootstrapFile: '/r/etc/origin/bootstrap.yaml',
  host: {
    defaultRouteLink: 'eth0',
    byLink: [{ link: 'eth0', address: '10.0.0.7' }],
  },
});
const own = nodeConfigOf(settings, 'cgroupfs');

async function inDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'he-group-'));
  try {
    await work(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** A file as written by OKD 3.11's installer. */
const OKD = `allowDisabledDocker: false
apiVersion: v1
authConfig: {authenticationCacheSize: 1000, authenticationCacheTTL: 5m}
dnsBindAddress: 127.0.0.1:53
dnsDomain: cluster.local
dnsIP: 0.0.0.0
dnsNameservers: null
dockerConfig: {dockerShimRootDirectory: '', execHandlerName: ''}
enableUnidling: true
imageConfig: {format: 'docker.io/openshift/origin-\${component}:v3.11', latest: false}
iptablesSyncPeriod: 30s
kind: NodeConfig
kubeletArguments:
  bootstrap-kubeconfig: [/etc/origin/node/bootstrap.kubeconfig]
  cert-dir: [/etc/origin/node/certificates]
  max-pods: ['42']
  node-labels: [node-role.kubernetes.io/compute=true]
masterKubeConfig: node.kubeconfig
networkConfig: {mtu: 1450, networkPluginName: redhat/openshift-ovs-subnet}
nodeName: ''
podManifestConfig: null
proxyArguments: {cluster-cidr: [10.128.0.0/14]}
servingInfo: {bindAddress: '0.0.0.0:10250', bindNetwork: tcp4, clientCA: client-ca.crt}
volumeConfig: {localQuota: {perFSGroup: null}}
volumeDirectory: /var/lib/origin/openshift.local.volumes
`;

test("reads OKD's node-config.yaml, reports unknown fields, and takes missing fields from the host's own settings", () =>
  inDirectory(async (directory) => {
    const file = join(directory, 'node-config.yaml');
    await writeFile(file, OKD);
    const { config, unknown } = await readNodeConfig(file, own);
    assert.equal(config.nodeName, settings.nodeName);
    assert.equal(config.dnsIP, '172.30.0.10');
    assert.equal(config.servingInfo.clientCA, 'client-ca.crt');
    assert.equal(config.servingInfo.certFile, own.servingInfo.certFile);
    assert.deepEqual(config.podManifestConfig, own.podManifestConfig);
    assert.deepEqual(config.kubeletArguments?.['max-pods'], ['42']);
    for (const field of [
      'allowDisabledDocker',
      'kubeletArguments.cert-dir',
      'servingInfo.bindNetwork',
      'networkConfig',
    ])
      assert.ok(unknown.includes(field), field);
    assert.ok(!unknown.includes('dnsNameservers'), 'a field without a value is no field');
    // A known field with an invalid value is still an error.
    await writeFile(file, OKD.replace("['42']", 'many'));
    await assert.rejects(
      readNodeConfig(file, own),
      /node-config\.yaml:\d+: kubeletArguments\.max-pods: must be a list/,
    );
  }));

test('replaces arguments and adds labels of a group, except labels that masters set', () => {
  const text =
    'apiVersion: v1\nkind: NodeConfig\nkubeletArguments: {max-pods: ["9"], node-labels: ["a=b,node-role.kubernetes.io/infra=true"]}';
  const merged = withGroup(
    { ...own, kubeletArguments: { 'max-pods': ['250'], 'pod-max-pids': ['99'], 'node-labels': ['rack=r1', 'a=x'] } },
    parseNodeConfig(text, 'g').config,
    'g',
  );
  assert.deepEqual(merged.kubeletArguments, {
    'max-pods': ['9'],
    'pod-max-pids': ['99'],
    'node-labels': ['rack=r1', 'a=b'],
  });
  assert.deepEqual(groupLabels(text), { a: 'b', 'node-role.kubernetes.io/infra': 'true' });
  assert.throws(
    () => parseNodeConfig('kind: Oops', 'g'),
    /^Error: g:1: kind: must be one of NodeConfig|bad-config|g:1: kind/,
  );
});

test('validates feature gates of the kubelet as Kubernetes 1.36 does', () => {
  const parse = (...gates: string[]) =>
    parseNodeConfig(
      `apiVersion: v1\nkind: NodeConfig\nkubeletArguments:\n  feature-gates: ${JSON.stringify(gates)}\n`,
      'g',
    );
  const refused: [string[], string][] = [
    [['RotateKubeletClientCertificate=true'], 'unrecognized feature gate: RotateKubeletClientCertificate'],
    [['MemoryQoS=true,Nope=false'], 'unrecognized feature gate: Nope'],
    [['MemoryQoS'], 'missing bool value for MemoryQoS'],
    [['SidecarContainers=false'], 'cannot set feature gate SidecarContainers to false, feature is locked to true'],
  ];
  for (const [gates, problem] of refused)
    assert.throws(() => parse(...gates), { message: `g:4: kubeletArguments.feature-gates: ${problem}` });
  assert.deepEqual(parse('MemoryQoS=true, RotateKubeletServerCertificate=true', '').unknown, []);
});

test("reads the group's name from BOOTSTRAP_CONFIG_NAME", () =>
  inDirectory(async (directory) => {
    const file = join(directory, 'atomic-openshift-node');
    assert.equal(await groupNameOf(file), undefined);
    await writeFile(file, sysconfigOf(settings));
    assert.equal(await groupNameOf(file), 'node-config-all-in-one');
    await writeFile(file, sysconfigOf({ ...settings, roles: new Set(['node']) }));
    assert.equal(await groupNameOf(file), 'node-config-compute');
    await writeFile(file, 'OPTIONS=\nBOOTSTRAP_CONFIG_NAME="node-config-infra"\n');
    assert.equal(await groupNameOf(file), 'node-config-infra');
    await writeFile(file, 'BOOTSTRAP_CONFIG_NAME=\n');
    assert.equal(await groupNameOf(file), undefined);
    await writeFile(file, 'BOOTSTRAP_CONFIG_NAME=../x\n');
    await assert.rejects(groupNameOf(file), /BOOTSTRAP_CONFIG_NAME: "\.\.\/x" is not the name of a ConfigMap/);
  }));

test('reports an unreadable file instead of treating the file as missing', () =>
  inDirectory(async (directory) => {
    const file = join(directory, 'group');
    await mkdir(file);
    const unreadable = { code: 'bad-config', message: /^cannot read .+group: EISDIR/ };
    await assert.rejects(groupNameOf(file), unreadable);
    const paths = { ...settings.paths, nodeGroup: file };
    await assert.rejects(groupedNodeConfig({ ...settings, paths }, 'cgroupfs', silentLog), unreadable);
  }));
