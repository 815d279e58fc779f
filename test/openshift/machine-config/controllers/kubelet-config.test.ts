/** KubeletConfigs and ContainerRuntimeConfigs on a real API server: generated fragments and rejected values. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../../../src/api/meta/object.ts';
import { isApiError } from '../../../../src/api/meta/status.ts';
import { resources } from '../../../../src/api/resources.ts';
import {
  type KubeletConfig,
  NAME_SUFFIX,
} from '../../../../src/openshift/machine-config/kinds/machine-config-types.ts';
import { type ControlPlane, startControlPlane, eventually as within } from '../../../controllers/harness.ts';

/** Longer timeout, because many objects are created at start and the machine may be busy. */
const eventually = <T>(check: () => Promise<T | undefined | false>, what: string): Promise<T> =>
  within(check, what, 30_000);

const POOL_LABEL = 'pools.operator.machineconfiguration.openshift.io/worker';
let plane: ControlPlane;
before(async () => {
  plane = await startControlPlane();
  // Created by the controllers. A KubeletConfig before that is rejected.
  await eventually(
    () =>
      plane
        .of(resources.machineConfigPools)
        .get('worker')
        .catch(() => undefined),
    'pool worker',
  );
});
after(() => plane.stop());

const kubelets = () => plane.of(resources.kubeletConfigs);
const runtimes = () => plane.of(resources.containerRuntimeConfigs);
const configs = () => plane.of(resources.machineConfigs);
const machineConfigPoolSelector = { matchLabels: { [POOL_LABEL]: '' } };

const kubelet = (name: string, kubeletConfig: JsonObject, spec: object = {}): Promise<KubeletConfig> =>
  kubelets().create({ metadata: { name }, spec: { machineConfigPoolSelector, kubeletConfig, ...spec } });

const resultOf = (name: string, message: RegExp | string): Promise<KubeletConfig> =>
  eventually(
    async () => {
      const found = await kubelets().get(name);
      const last = found.status?.conditions?.at(-1)?.message ?? '';
      return (typeof message === 'string' ? last === message : message.test(last)) && found;
    },
    `${name}: ${String(message)}`,
  );

async function fileOf(name: string, path: string): Promise<string> {
  const { spec } = await configs().get(name);
  const { files } = (spec?.config?.['storage'] ?? {}) as { files?: { path: string; contents: { source: string } }[] };
  const source = files?.find((each) => each.path === path)?.contents.source ?? '';
  return decodeURIComponent(source.slice(source.indexOf(',') + 1));
}

const isMissing = (name: string): Promise<true> =>
  eventually(async () => {
    try {
      await configs().get(name);
      return false;
    } catch (error) {
      return isApiError(error, 'NotFound') && true;
    }
  }, `${name} to go`);

test('adds a MachineConfig to the pools of a KubeletConfig, and removes it with the KubeletConfig', async () => {
  await kubelet('large', { maxPods: 100, evictionHard: { 'memory.available': '200Mi' } }, { autoSizingReserved: true });
  const large = await resultOf('large', 'Success');
  assert.deepEqual(large.metadata?.finalizers, ['99-worker-generated-kubelet']);
  assert.equal(large.metadata?.annotations?.[NAME_SUFFIX], '');
  assert.equal(large.status?.observedGeneration, large.metadata?.generation);
  assert.equal(large.status?.conditions?.[0]?.type, 'Success');
  const text = await fileOf('99-worker-generated-kubelet', '/etc/kubernetes/kubelet.conf');
  assert.match(text, /"maxPods": 100,/);
  assert.match(await fileOf('99-worker-generated-kubelet', '/etc/node-sizing-enabled.env'), /NODE_SIZING_ENABLED=true/);
  await eventually(async () => {
    const pool = await plane.of(resources.machineConfigPools).get('worker');
    return pool.spec?.configuration?.source?.some(({ name }) => name === '99-worker-generated-kubelet');
  }, 'the pool with it');
  await kubelets().patch('large', undefined, 'merge', { spec: { kubeletConfig: { maxPods: 101 } } });
  await eventually(
    async () => /"maxPods": 101,/.test(await fileOf('99-worker-generated-kubelet', '/etc/kubernetes/kubelet.conf')),
    'the new value',
  );
  await configs().delete('99-worker-generated-kubelet');
  await eventually(async () => configs().get('99-worker-generated-kubelet'), 'the fragment again');
  await kubelets().delete('large');
  await isMissing('99-worker-generated-kubelet');
});

test("rejects KubeletConfig fields that would prevent a node from joining again, with upstream's messages", async () => {
  const refused: readonly (readonly [JsonObject, object, RegExp])[] = [
    [{ staticPodPath: '/tmp/pods' }, {}, /staticPodPath is not allowed to be set, but contains: \/tmp\/pods/],
    [{ cgroupDriver: 'cgroupfs' }, {}, /cgroupDriver is not allowed to be set, but contains: cgroupfs/],
    [{ clusterDNS: ['1.2.3.4'] }, {}, /clusterDNS is not allowed to be set/],
    [{ clusterDomain: 'lab' }, {}, /clusterDomain is not allowed to be set/],
    [{ featureGates: { A: true } }, {}, /featureGates is not allowed to be set/],
    [{ runtimeRequestTimeout: '3m' }, {}, /runtimeRequestTimeout is not allowed to be set/],
    [
      { systemReserved: { memory: '1Gi' } },
      { autoSizingReserved: true },
      /autoSizingReserved and systemdReserved cannot be set together/,
    ],
    [{ maxPods: -4 }, {}, /maxPods: invalid value: -4/],
    [{ evictionHard: { 'memory.available': 'much' } }, {}, /evictionHard: invalid value/],
    [{ tlsCipherSuites: ['X'] }, {}, /tlsCipherSuites is not supported by the kubelets of this cluster/],
    [{}, { machineConfigPoolSelector: {} }, /could not find any MachineConfigPool/],
  ];
  for (const [index, [config, spec, message]] of refused.entries()) {
    const name = `refused-${index}`;
    await kubelet(name, config, spec);
    const found = await resultOf(name, message);
    assert.equal(found.status?.conditions?.at(-1)?.type, 'Failure');
    assert.equal(found.metadata?.finalizers, undefined, name);
    await kubelets().delete(name);
  }
  await assert.rejects(kubelet('verbose', {}, { logLevel: 11 }), /spec.logLevel: Invalid value: 11/);
});

test('ignores fields of a KubeletConfig with zero values as Go clients write them', async () => {
  const config = { maxPods: 100, syncFrequency: '0s', authentication: { x509: {}, webhook: { cacheTTL: '0s' } } };
  await kubelet('zero', config);
  await resultOf('zero', 'Success');
  await kubelets().delete('zero');
  await isMissing('99-worker-generated-kubelet');
});

test('creates a numbered MachineConfig for each of ten KubeletConfigs per pool, and rejects the eleventh', async () => {
  for (let index = 0; index < 10; index++) {
    await kubelet(`ten-${index}`, { maxPods: 100 + index });
    await resultOf(`ten-${index}`, 'Success');
  }
  assert.match(await fileOf('99-worker-generated-kubelet-9', '/etc/kubernetes/kubelet.conf'), /"maxPods": 109/);
  await eventually(async () => {
    const pool = await plane.of(resources.machineConfigPools).get('worker');
    const rendered = pool.spec?.configuration?.name ?? '';
    return /"maxPods": 109/.test(await fileOf(rendered, '/etc/kubernetes/kubelet.conf'));
  }, 'the newest in the rendered configuration');
  await kubelet('eleventh', { maxPods: 111 });
  const eleventh = await resultOf('eleventh', /max number of supported kubelet config \(10\) has been reached/);
  assert.equal(eleventh.metadata?.finalizers, undefined);
});

test('adds a MachineConfig for a ContainerRuntimeConfig and rejects unsupported fields', async () => {
  const resultFor = (name: string, message: RegExp) =>
    eventually(
      async () => message.test((await runtimes().get(name)).status?.conditions?.at(-1)?.message ?? ''),
      `${name}: ${String(message)}`,
    );
  await runtimes().create({
    metadata: { name: 'pids' },
    spec: {
      machineConfigPoolSelector,
      containerRuntimeConfig: { pidsLimit: 2048, logSizeMax: '16Ki', overlaySize: '0', logLevel: 'debug' },
    },
  });
  await resultFor('pids', /^Success$/);
  const path = '/etc/crio/crio.conf.d/01-ctrcfg-';
  assert.match(await fileOf('99-worker-generated-containerruntime', `${path}pidsLimit`), /pids_limit = 2048/);
  assert.match(await fileOf('99-worker-generated-containerruntime', `${path}logSizeMax`), /log_size_max = 16384/);
  assert.match(await fileOf('99-worker-generated-containerruntime', `${path}logLevel`), /log_level = "debug"/);
  for (const [name, containerRuntimeConfig, message] of [
    ['loud', { logLevel: 'all' }, /invalid LogLevel "all", must be one of fatal,/],
    ['few', { pidsLimit: 10 }, /invalid PidsLimit 10, cannot be less than 20/],
    ['small', { logSizeMax: '1Ki' }, /invalid LogSizeMax 1Ki, cannot be less than 8kB/],
    ['overlay', { overlaySize: '8G' }, /overlaySize: the image store of these hosts has no limit/],
  ] as const) {
    await runtimes().create({ metadata: { name }, spec: { machineConfigPoolSelector, containerRuntimeConfig } });
    await resultFor(name, message);
  }
  await runtimes().delete('pids');
  await isMissing('99-worker-generated-containerruntime');
});
