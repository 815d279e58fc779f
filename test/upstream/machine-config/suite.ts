/**
 * Expectations of the end-to-end suite of OpenShift 4.10's machine-config-operator, each under the name of its test
 * there. The node's files are read below its root; the original suite reads them in a pod of the daemon.
 */
import assert from 'node:assert/strict';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { eventually } from '../../e2e/harness.ts';
import { type Condition, files, GROUP, isFalse, isTrue, PoolCluster } from './cluster.ts';

const CASE = { timeout: 400_000 };
const WAIT_MS = 120_000;
let cluster: PoolCluster;

before(
  async () => {
    cluster = await PoolCluster.create();
  },
  { timeout: 500_000 },
);
after(() => cluster?.stop());

const drop = (name: string): Promise<string> => cluster.oc(['delete', 'machineconfig', name]);

test('TestMCDeployed', CASE, async () => {
  await cluster.fragment('add-a-file', 'worker', files({ '/etc/mytestconf': 'test' }));
  await cluster.rolled('worker', 'add-a-file');
  assert.equal(await cluster.read('/etc/mytestconf'), 'test');
});

test('TestNoDegraded', CASE, async () => {
  const { items } = await cluster.get<{ items: { metadata: { annotations: Record<string, string> } }[] }>('nodes');
  assert.deepEqual(
    items.map(({ metadata }) => metadata.annotations[`${GROUP}/state`]),
    ['Done', 'Done'],
  );
});

test('TestCustomPool', CASE, async () => {
  await cluster.inPool('infra', async () => {
    await cluster.fragment('infra-host-file', 'infra', files({ '/etc/mco-custom-pool': 'mco-custom-pool' }));
    await cluster.rolled('infra', 'infra-host-file');
    assert.equal(await cluster.read('/etc/mco-custom-pool'), 'mco-custom-pool');
  });
  assert.equal(await cluster.read('/etc/mco-custom-pool'), '');
  await drop('infra-host-file');
});

test('TestDontDeleteRPMFiles', CASE, async () => {
  await cluster.inPool('infra', async () => {
    const before = await cluster.done('infra', () => true);
    await cluster.fragment('modify-host-file', 'infra', files({ '/etc/motd': 'mco-test' }));
    await cluster.rolled('infra', 'modify-host-file');
    assert.equal(await cluster.read('/etc/motd'), 'mco-test');
    await drop('modify-host-file');
    await cluster.done('infra', (config) => config === before);
    await cluster.moved('infra');
    assert.equal(await cluster.read('/etc/motd'), 'of the distribution\n');
  });
});

test('TestIgn3Cfg', CASE, async () => {
  await cluster.inPool('infra', async () => {
    const passwd = { users: [{ name: 'core', sshAuthorizedKeys: ['1234_test_ign3'] }] };
    await cluster.fragment('99-ign3cfg', 'infra', { passwd, ...files({ '/etc/testfileconfig': 'test-ign3-stuff' }) });
    await cluster.rolled('infra', '99-ign3cfg');
    assert.match(await cluster.read('/home/core/.ssh/authorized_keys'), /1234_test_ign3/);
    assert.equal(await cluster.read('/etc/testfileconfig'), 'test-ign3-stuff');
  });
  await drop('99-ign3cfg');
});

test('TestNoReboot', CASE, async () => {
  await cluster.inPool('infra', async () => {
    const before = await cluster.done('infra', () => true);
    const key = 'test adding authorized key without node reboot';
    const pid = cluster.worker.hostPid;
    await cluster.fragment('authorized-key', 'infra', {
      passwd: { users: [{ name: 'core', sshAuthorizedKeys: [key] }] },
    });
    await cluster.rolled('infra', 'authorized-key');
    assert.match(await cluster.read('/home/core/.ssh/authorized_keys'), new RegExp(key));
    assert.deepEqual(await cluster.owner('/home/core/.ssh'), [1000, 1000, '700']);
    assert.deepEqual(await cluster.owner('/home/core/.ssh/authorized_keys'), [1000, 1000, '600']);
    await drop('authorized-key');
    await cluster.done('infra', (config) => config === before);
    await cluster.moved('infra');
    assert.doesNotMatch(await cluster.read('/home/core/.ssh/authorized_keys'), new RegExp(key));
    assert.equal(cluster.worker.hostPid, pid);
    assert.equal(cluster.worker.exitCode, undefined);
  });
});

test('TestPoolDegradedOnFailToRender', CASE, async () => {
  await cluster.fragment('bad-version', 'worker', { ignition: { version: '' }, ...files({ '/etc/x': 'y' }) });
  await eventually('Degraded', WAIT_MS, async () =>
    isTrue((await cluster.pool('worker')).status?.conditions, 'Degraded') ? true : undefined,
  );
  await drop('bad-version');
  await eventually('RenderDegraded=False', WAIT_MS, async () =>
    isFalse((await cluster.pool('worker')).status?.conditions, 'RenderDegraded') ? true : undefined,
  );
});

test('TestReconcileAfterBadMC', CASE, async () => {
  const before = await cluster.done('worker', () => true);
  await cluster.fragment('bad-disks', 'worker', { storage: { disks: [{ device: '/one' }] } });
  const bad = await cluster.rendered('worker', 'bad-disks');
  await eventually('Unreconcilable', WAIT_MS, async () =>
    (await cluster.annotation('desiredConfig')) === bad && (await cluster.annotation('state')) === 'Unreconcilable'
      ? true
      : undefined,
  );
  await eventually('a degraded pool', WAIT_MS, async () => {
    const { status } = await cluster.pool('worker');
    return isTrue(status?.conditions, 'NodeDegraded') && status?.degradedMachineCount === 1 ? true : undefined;
  });
  await drop('bad-disks');
  await cluster.done('worker', (config) => config === before);
  await cluster.moved('worker');
});

const gzipped = (path: string, text: string): object => ({
  path,
  mode: 0o644,
  contents: {
    source: `data:;base64,${gzipSync(text).toString('base64')}`,
    compression: 'gzip',
  },
});
const UNIT = '/etc/systemd/system/e2etest.service';
const DROPIN = '/etc/systemd/system/e2etest.service.d/10-e2etest-service.conf';
const DRIFTED: Readonly<Record<string, string>> = {
  '/etc/etc-file': 'expected-file-data',
  [DROPIN]: 'e2etest-service-dropin-contents',
  [UNIT]: 'e2etest-service-unit-contents',
  '/etc/compressed-file': 'expected-file-data',
};

async function degradedBy(path: string): Promise<void> {
  const reason = `content mismatch for file "${path}"`;
  await eventually(`Degraded by ${path}`, WAIT_MS, async () =>
    (await cluster.annotation('state')) === 'Degraded' && (await cluster.annotation('reason')).includes(reason)
      ? true
      : undefined,
  );
  await eventually('a degraded pool', WAIT_MS, async () => {
    const { status } = await cluster.pool('infra');
    const is = (types: readonly string[], test_: typeof isTrue): boolean =>
      types.every((type) => test_(status?.conditions, type));
    const degraded = is(['Degraded', 'NodeDegraded', 'Updating'], isTrue) && is(['RenderDegraded', 'Updated'], isFalse);
    return degraded && status?.degradedMachineCount === 1 ? true : undefined;
  });
}

async function recovered(): Promise<void> {
  await eventually('Done', WAIT_MS, async () => {
    const [state, reason] = [await cluster.annotation('state'), await cluster.annotation('reason')];
    return state === 'Done' && reason === '' ? true : undefined;
  });
  await eventually('a pool that is not degraded', WAIT_MS, async () => {
    const { status } = await cluster.pool('infra');
    const fine = isTrue(status?.conditions, 'Updated') && isFalse(status?.conditions, 'NodeDegraded');
    return fine && status?.degradedMachineCount === 0 ? true : undefined;
  });
}

test('TestRunShared: config drift', CASE, async (context) => {
  const second = '/etc/etc-file-two';
  await cluster.inPool('infra', async () => {
    await cluster.fragment('mcd-config-drift', 'infra', {
      storage: {
        files: [
          {
            path: '/etc/etc-file',
            mode: 0o644,
            contents: { source: 'data:text/plain;charset=utf-8;base64,ZXhwZWN0ZWQtZmlsZS1kYXRh' },
          },
          { path: second, mode: 0o644, contents: { source: 'data:,two' } },
          gzipped('/etc/compressed-file', 'expected-file-data'),
        ],
      },
      systemd: {
        units: [
          {
            name: 'e2etest.service',
            contents: DRIFTED[UNIT],
            dropins: [
              { name: '10-e2etest-service.conf', contents: DRIFTED[DROPIN] },
              { name: '20-e2etest-service.conf' },
            ],
          },
          { name: 'mask-and-contents.service', contents: '[Unit]\nDescription=Just random content', mask: true },
        ],
      },
    });
    await cluster.rolled('infra', 'mcd-config-drift');
    for (const [path, text] of Object.entries(DRIFTED))
      await context.test(`reports drift of ${path} until its content is reverted`, async () => {
        await cluster.write(path, 'not-the-data');
        await degradedBy(path);
        await cluster.write(path, text);
        await recovered();
      });
    await context.test('the file machine-config-daemon-force restores the content of a drifted file', async () => {
      await cluster.write('/etc/etc-file', 'not-the-data');
      await degradedBy('/etc/etc-file');
      await cluster.write('/run/machine-config-daemon-force', '');
      await recovered();
      assert.equal(await cluster.read('/etc/etc-file'), DRIFTED['/etc/etc-file']);
    });
    await context.test('the reason of NodeDegraded names the file that drifted last', async () => {
      await cluster.write(second, 'incorrect data 2');
      await degradedBy(second);
      await cluster.write('/etc/etc-file', 'not-the-data');
      await degradedBy('/etc/etc-file');
      const { status } = await cluster.pool('infra');
      const message = status?.conditions?.find(({ type }: Condition) => type === 'NodeDegraded')?.message;
      await cluster.write('/etc/etc-file', DRIFTED['/etc/etc-file'] ?? '');
      await cluster.write(second, 'two');
      await recovered();
      assert.match(message ?? '', /\/etc\/etc-file/);
    });
  });
  await drop('mcd-config-drift');
});

interface Settings {
  readonly maxPods?: number;
}

const kubeletConfig = (name: string, pool: string, config: Settings, more: object = {}): object => ({
  apiVersion: `${GROUP}/v1`,
  kind: 'KubeletConfig',
  metadata: { name, ...more },
  spec: {
    ...(name.endsWith('100') ? { autoSizingReserved: true } : {}),
    machineConfigPoolSelector: { matchLabels: { [pool]: '' } },
    kubeletConfig: { kind: 'KubeletConfiguration', apiVersion: 'kubelet.config.k8s.io/v1beta1', ...config },
  },
});

async function fragmentOf(owner: string): Promise<string> {
  return eventually(`the fragment of ${owner}`, WAIT_MS, async () => {
    const { items } = await cluster.get<{
      items: { metadata: { name: string; ownerReferences?: { name: string }[] } }[];
    }>('machineconfigs');
    return items.find(({ metadata }) => metadata.ownerReferences?.some(({ name }) => name === owner))?.metadata.name;
  });
}

const maxPods = async (): Promise<string | undefined> =>
  /"?maxPods"?: (\S+)/.exec(await cluster.read('/etc/kubernetes/kubelet.conf'))?.[1];

test('TestKubeletConfigMaxPods', CASE, async () => {
  const pool = 'node-max-pods';
  await cluster.inPool(pool, async () => {
    const before = await cluster.done(pool, () => true);
    const { memory } = (await cluster.node()).status.allocatable;
    await cluster.create(kubeletConfig('kubelet-test-100', pool, { maxPods: 100 }));
    const first = await cluster.rolled(pool, await fragmentOf('kubelet-test-100'));
    assert.equal(await maxPods(), '100,');
    assert.notEqual((await cluster.node()).status.allocatable.memory, memory);
    const annotations = { [`${GROUP}/mc-name-suffix`]: '1' };
    await cluster.create(kubeletConfig('kubelet-test-200', pool, { maxPods: 200 }, { annotations }));
    await cluster.rolled(pool, await fragmentOf('kubelet-test-200'));
    assert.match((await maxPods()) ?? '', /^200,?$/);
    await cluster.oc(['delete', 'kubeletconfig', 'kubelet-test-200']);
    await cluster.done(pool, (config) => config === first);
    await cluster.moved(pool);
    assert.equal(await maxPods(), '100,');
    await cluster.oc(['delete', 'kubeletconfig', 'kubelet-test-100']);
    await cluster.done(pool, (config) => config === before);
    await cluster.moved(pool);
    assert.equal(await maxPods(), undefined);
  });
});

test('TestClusterOperatorRelatedObjects', CASE, async () => {
  const { status } = await cluster.get<{ status: { relatedObjects?: { resource: string; name: string }[] } }>(
    ...['clusteroperator', 'machine-config'],
  );
  const related = status.relatedObjects ?? [];
  assert.ok(
    related.some((each) => each.resource === 'namespaces' && each.name === 'openshift-machine-config-operator'),
    JSON.stringify(related),
  );
  await cluster.get('namespace', 'openshift-machine-config-operator');
});

test('TestClusterOperatorStatusExtension', CASE, async () => {
  const extension = { test: 'extension' };
  const args = ['patch', 'clusteroperator', 'machine-config', '--type=merge', '--subresource=status'];
  const patched = await cluster.oc([...args, '-o', 'json', '-p', JSON.stringify({ status: { extension } })]);
  assert.deepEqual(JSON.parse(patched).status.extension, extension);
});

test('TestMastersSchedulable', CASE, async () => {
  const set = (on: boolean): Promise<string> =>
    cluster.oc([
      'patch',
      'scheduler',
      'cluster',
      '--type=merge',
      '-p',
      JSON.stringify({ spec: { mastersSchedulable: on } }),
    ]);
  const schedulable = (on: boolean): Promise<true> =>
    eventually(`masters schedulable: ${on}`, WAIT_MS, async () => {
      const { metadata, spec } = await cluster.get<{
        metadata: { labels: Record<string, string> };
        spec: { taints?: { key: string; effect: string }[] };
      }>('node', 'm1');
      const tainted = spec.taints?.some(
        ({ key, effect }) => key === 'node-role.kubernetes.io/master' && effect === 'NoSchedule',
      );
      const isSchedulable = metadata.labels['node-role.kubernetes.io/worker'] !== undefined && tainted !== true;
      return isSchedulable === on ? true : undefined;
    });
  await set(true);
  await schedulable(true);
  await set(false);
  await schedulable(false);
  await set(true);
  await schedulable(true);
});

test('TestIgn33Kargs', CASE, async () => {
  await cluster.fragment('99-kargs', 'worker', {}, { kernelArguments: ['bootarg1', 'bootarg2'] });
  try {
    await cluster.rendered('worker', '99-kargs');
    // Hosts of this cluster are not provisioned by Ignition; a request of a new host would get the pool's last
    // completed config.
    await eventually('the worker refuses', WAIT_MS, async () =>
      (await cluster.annotation('state')) === 'Unreconcilable' ? true : undefined,
    );
    for (const version of ['3.3.0', '3.2.0', '3.1.0', '2.2.0']) {
      const served = await cluster.served('worker', version);
      assert.equal(served.ignition.version, version);
    }
  } finally {
    await drop('99-kargs');
    await cluster.moved('worker');
  }
});

test('pods of the pod network cannot connect to the machine config server', CASE, async () => {
  const ask = (port: number): string =>
    `nc -w 5 10.88.0.1 ${port} </dev/null >/dev/null 2>&1 && echo ${port} open || echo ${port} closed; `;
  assert.equal(await cluster.inPod('asks', ask(8443) + ask(22623)), '8443 open\n22623 closed\n');
  assert.equal(await cluster.inPod('asks-as-host', ask(22623), true), '22623 open\n');
});

const refused: readonly (readonly [name: string, config: object, reason: RegExp])[] = [
  ['dots', files({ '/etc/../etc/x': 'y' }), /files\[0\]\.path/],
  ['unit', { systemd: { units: [{ name: '../x.service', contents: '[Unit]' }] } }, /units\[0\]\.name/],
  ['bomb', { storage: { files: [gzippedBomb()] } }, /files\[0\]\.contents/],
];
for (const [name, config, reason] of refused)
  test(`an invalid config (${name}) degrades the pool until the config is removed`, CASE, async () => {
    await cluster.fragment(`bad-${name}`, 'worker', config);
    await eventually('RenderDegraded', WAIT_MS, async () => {
      const { status } = await cluster.pool('worker');
      const found = status?.conditions?.find(({ type, status: is }) => type === 'RenderDegraded' && is === 'True');
      return found !== undefined && reason.test(found.message ?? '') ? true : undefined;
    });
    await drop(`bad-${name}`);
    await cluster.done('worker', () => true);
  });

function gzippedBomb(): object {
  return gzipped('/etc/bomb', '\0'.repeat(200 * 1024 * 1024));
}

test('rejects a data URL of 100 MB and files that a MachineConfig must not change', CASE, async () => {
  const large = `data:,${'x'.repeat(100 * 1024 * 1024)}`;
  const refusedLarge = cluster.fragment('bad-large', 'worker', {
    storage: { files: [{ path: '/etc/large', contents: { source: large } }] },
  });
  await assert.rejects(refusedLarge, /too large|Request entity|limit/i);
  for (const path of ['/etc/shadow', '/etc/origin/node/node-config.yaml', '/proc/sys/kernel/panic']) {
    await cluster.fragment('bad-path', 'worker', files({ [path]: 'x' }));
    await eventually('Unreconcilable', WAIT_MS, async () =>
      (await cluster.annotation('reason')).includes(path) ? true : undefined,
    );
    await drop('bad-path');
    await cluster.moved('worker');
  }
});

test('rejects a file below a symbolic link to a directory, before it writes any file of the config', CASE, async () => {
  await symlink('/tmp', join(cluster.worker.root, 'etc/linked'));
  await cluster.fragment('bad-link', 'worker', files({ '/etc/linked/x': 'y', '/etc/before-linked': 'z' }));
  await eventually('Degraded', WAIT_MS, async () =>
    /\/etc\/linked is not a directory/.test(await cluster.annotation('reason')) ? true : undefined,
  );
  assert.equal(await cluster.read('/etc/before-linked'), '');
  await drop('bad-link');
  await cluster.moved('worker');
});

const GROUP_MAP = ['-n', 'openshift-node', 'configmap', 'node-config-compute'];

test('converts the kubelet arguments of a node group to a KubeletConfig of its pool', CASE, async () => {
  const text = "apiVersion: v1\nkind: NodeConfig\nkubeletArguments: {max-pods: ['77']}\n";
  const patch = JSON.stringify({ data: { 'node-config.yaml': text } });
  await eventually('a group that pools apply', WAIT_MS, async () =>
    /applied-by-pools/.test(await cluster.oc(['get', ...GROUP_MAP, '-o', 'yaml'])) ? true : undefined,
  );
  await cluster.oc(['patch', ...GROUP_MAP, '--type=merge', '-p', patch]);
  await eventually('maxPods', WAIT_MS, async () => ((await maxPods()) === '77,' ? true : undefined));
  await cluster.moved('compute');
  assert.equal((await cluster.node()).status.allocatable.pods, '77');
  assert.doesNotMatch(await cluster.read('/etc/origin/node/node-config.yaml'), /"77"/);
  assert.equal(await cluster.read('/etc/mytestconf'), 'test');
});

test('rolls back a config that disconnects the host ten seconds after it was applied', {
  timeout: 600_000,
}, async (context) => {
  await cluster.fragment('bad-network', 'worker', files({ '/etc/netplan/50-bad.yaml': 'network: {}' }));
  await cluster.rendered('compute', 'bad-network');
  await cluster.moved('compute');
  assert.notEqual(await cluster.read('/etc/netplan/50-bad.yaml'), '');
  await new Promise((resolve) => setTimeout(resolve, 10_000));
  await cluster.cable('down');
  const began = performance.now();
  await eventually('the old files', 400_000, async () =>
    (await cluster.read('/etc/netplan/50-bad.yaml')) === '' ? true : undefined,
  );
  context.diagnostic(`undone ${Math.round((performance.now() - began) / 1_000)} s after the loss`);
  await cluster.cable('up');
  await eventually('Degraded', WAIT_MS, async () =>
    /^rolled back from .*: API server not reached for 5m0s, soon after/.test(await cluster.annotation('reason'))
      ? true
      : undefined,
  );
  await drop('bad-network');
  await cluster.moved('compute');
});

const NOT_HERE: Readonly<Record<string, string>> = {
  TestMCDToken: 'passes with the suite itself (--suite)',
  TestOperatorLabel: 'passes with the suite itself (--suite)',
  TestKernelArguments: 'needs a machine that boots; test/lab and the unit tests have the files of boot loaders',
  TestKernelType: 'Unreconcilable: hosts have the kernel of their distribution',
  TestExtensions: 'Unreconcilable: hosts are not based on an image',
  TestMachineConfigsOSImageURL: 'hosts are not based on an image',
  TestContainerRuntimeConfigLogLevel: 'passes with the suite itself (--suite)',
  TestICSPConfigMirror: 'ImageContentSourcePolicy is not served; mirrors are files of a MachineConfig',
  TestMCDRotatesCerts:
    'authorities of kubelets are rotated by the hosts, without a ConfigMap of openshift-config-managed',
  TestEtcdQuorumGuard: 'the drain controller counts members itself; there is no Deployment etcd-quorum-guard',
};
for (const [name, reason] of Object.entries(NOT_HERE)) console.log(`not run: ${name}: ${reason}`);
