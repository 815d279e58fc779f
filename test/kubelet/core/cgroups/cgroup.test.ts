import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Container, Pod } from '../../../../src/api/generated/core/v1.ts';
import { toUid } from '../../../../src/base/brand.ts';
import {
  cgroupfsName,
  podPath,
  podUidOf,
  qosPath,
  rootComponents,
  runtimeParentName,
  sliceName,
  systemdName,
} from '../../../../src/kubelet/core/cgroups/names.ts';
import {
  oomScoreAdjOf,
  podAmount,
  quotaOfMilli,
  sharesOfMilli,
  weightOfShares,
} from '../../../../src/kubelet/core/cgroups/resources.ts';
import { desiredTree, podNode } from '../../../../src/kubelet/core/cgroups/tree.ts';
import { planWrites, sliceProperties } from '../../../../src/kubelet/core/cgroups/writes.ts';

const UID = toUid('1a2b3c4d-0000-4000-8000-0123456789ab');
const OPTIONS = {
  root: [],
  allocatable: { cpuMilli: 4000, memoryBytes: 8 * 2 ** 30 },
  podPidsLimit: 0,
  cpuCfsQuota: true,
};

const container = (requests?: Record<string, string>, limits?: Record<string, string>): Container => ({
  name: 'c',
  image: 'i',
  resources: { ...(requests === undefined ? {} : { requests }), ...(limits === undefined ? {} : { limits }) },
});
const pod = (...containers: Container[]): Pod => ({ metadata: { uid: UID }, spec: { containers } });

describe('cgroup names', () => {
  it("cgroup names equal upstream's byte for byte", () => {
    const burstable = podPath([], 'Burstable', UID);
    assert.equal(cgroupfsName(burstable), `/kubepods/burstable/pod${UID}`);
    assert.equal(
      systemdName(burstable),
      '/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1a2b3c4d_0000_4000_8000_0123456789ab.slice',
    );
    assert.equal(
      runtimeParentName('systemd', burstable),
      'kubepods-burstable-pod1a2b3c4d_0000_4000_8000_0123456789ab.slice',
    );
    assert.equal(runtimeParentName('cgroupfs', burstable), `/kubepods/burstable/pod${UID}`);
    assert.equal(cgroupfsName(podPath([], 'Guaranteed', UID)), `/kubepods/pod${UID}`);
    assert.equal(systemdName(qosPath([], 'BestEffort')), '/kubepods.slice/kubepods-besteffort.slice');
    assert.equal(sliceName(qosPath(rootComponents('/lab/h1'), 'Burstable')), 'lab-h1-kubepods-burstable.slice');
    assert.equal(sliceName([]), '-.slice');
  });

  it("cgroup names contain the pod's UID", () => {
    for (const driver of ['cgroupfs', 'systemd'] as const) {
      const path = podPath([], 'Burstable', UID);
      assert.equal(podUidOf(driver, driver === 'systemd' ? systemdName(path) : cgroupfsName(path)), UID);
    }
    assert.equal(podUidOf('cgroupfs', 'burstable'), undefined);
    assert.equal(podUidOf('systemd', 'kubepods-burstable.slice'), undefined);
  });
});

describe('cgroup values', () => {
  it("cgroup values match upstream's arithmetic", () => {
    assert.deepEqual([0, 1, 2, 100, 1000, 10_000_000].map(sharesOfMilli), [2, 2, 2, 102, 1024, 262_144]);
    assert.deepEqual(
      [0, 1, 5, 10, 250].map((milli) => quotaOfMilli(milli)),
      [0, 1000, 1000, 1000, 25_000],
    );
    assert.deepEqual([0, 2, 1024, 262_144].map(weightOfShares), [0, 1, 39, 10_000]);
  });

  it('cgroup values add sidecars to the containers and to later init containers', () => {
    const spec: Pod = {
      spec: {
        containers: [container({ cpu: '100m' })],
        initContainers: [
          { ...container({ cpu: '150m' }), name: 'a' },
          { ...container({ cpu: '50m' }), name: 'b', restartPolicy: 'Always' },
          { ...container({ cpu: '200m' }), name: 'd' },
        ],
        overhead: { cpu: '5m' },
      },
    };
    assert.equal(podAmount(spec, 'requests', 'cpu'), 255);
  });

  it('cgroup values set the OOM score by QoS class', () => {
    const GiB = 2 ** 30;
    const guaranteed = container({ cpu: '1', memory: '1Gi' }, { cpu: '1', memory: '1Gi' });
    assert.equal(oomScoreAdjOf(pod(guaranteed), guaranteed, 4 * GiB), -997);
    const none = container();
    assert.equal(oomScoreAdjOf(pod(none), none, 4 * GiB), 1000);
    const burstable = container({ memory: '1Gi' });
    assert.equal(oomScoreAdjOf(pod(burstable), burstable, 4 * GiB), 750);
    const tiny = container({ memory: '1' });
    assert.equal(oomScoreAdjOf(pod(tiny), tiny, 4 * GiB), 999);
    const huge = container({ memory: '4Gi' });
    assert.equal(oomScoreAdjOf(pod(huge), huge, 4 * GiB), 3);
    const critical = pod(none);
    critical.spec = { containers: [none], priority: 2_000_001_000 };
    assert.equal(oomScoreAdjOf(critical, none, 4 * GiB), -997);
  });
});

describe('cgroup tree', () => {
  it('the cgroup tree has parents before children, and sets pod limits only if all containers have limits', () => {
    const tree = desiredTree(
      [pod(container({ cpu: '250m' }, { memory: '64Mi' }), container({}, { cpu: '1' }))],
      OPTIONS,
    );
    assert.deepEqual(
      tree.map((node) => cgroupfsName(node.path)),
      ['/kubepods', '/kubepods/besteffort', '/kubepods/burstable', `/kubepods/burstable/pod${UID}`],
    );
    assert.deepEqual(tree[0]?.limits, { cpuShares: 4096, memoryLimitBytes: 8 * 2 ** 30 });
    // The second container's missing request equals its limit.
    assert.deepEqual(tree[2]?.limits, { cpuShares: 1280 });
    assert.deepEqual(tree[3]?.limits, { cpuShares: 1280 });
  });

  it('the cgroup tree protects the requested memory of static control plane pods from reclaim', () => {
    const etcd = pod(container({ cpu: '50m', memory: '48Mi' }));
    etcd.metadata = {
      ...etcd.metadata,
      labels: { 'openshift.io/control-plane': 'true' },
      annotations: { 'kubernetes.io/config.source': 'file' },
    };
    const minimum = 48 * 2 ** 20;
    const tree = desiredTree([etcd, pod(container({ memory: '64Mi' }))], OPTIONS);
    assert.deepEqual(
      tree.map(({ limits }) => limits.memoryMinBytes),
      [minimum, undefined, minimum, minimum, undefined],
    );
    const v2 = [{ mount: '/cg', version: 'v2', controllers: ['memory'] }] as const;
    const node = podNode(etcd, OPTIONS);
    const writes = planWrites(v2, 'cgroupfs', [node]);
    assert.ok(writes.some((each) => each.op === 'write' && each.file === 'memory.min' && each.value === `${minimum}`));
    assert.ok(
      sliceProperties('v2', node.limits).some(({ name, value }) => name === 'MemoryMin' && value === BigInt(minimum)),
    );
    assert.ok(!sliceProperties('v1', node.limits).some(({ name }) => name === 'MemoryMin'));
    // A user's pod that only has the label is not protected.
    delete etcd.metadata.annotations;
    assert.equal(podNode(etcd, OPTIONS).limits.memoryMinBytes, undefined);
  });

  it('the cgroup tree is converted to ordered writes on a hybrid host', () => {
    const hierarchies = [
      { mount: '/cg/cpu', version: 'v1', controllers: ['cpu', 'cpuacct'] },
      { mount: '/cg/cpuset', version: 'v1', controllers: ['cpuset'] },
      { mount: '/cg/memory', version: 'v1', controllers: ['memory'] },
      { mount: '/cg/unified', version: 'v2', controllers: [] },
    ] as const;
    const node = podNode(pod(container(undefined, { cpu: '500m', memory: '32Mi' })), { ...OPTIONS, podPidsLimit: 100 });
    const directory = `/kubepods/burstable/pod${UID}`;
    assert.deepEqual(
      planWrites(hierarchies, 'cgroupfs', [{ ...node, path: ['kubepods', 'burstable', `pod${UID}`] }])
        .filter((operation) => operation.directory.endsWith(directory))
        .map(
          (each) =>
            `${each.op} ${each.directory.slice(4, -directory.length)} ${'file' in each ? each.file : ''}${'value' in each ? `=${each.value}` : ''}`,
        ),
      [
        'mkdir cpu ',
        'write cpu cpu.shares=512',
        'write cpu cpu.cfs_period_us=100000',
        'write cpu cpu.cfs_quota_us=50000',
        'mkdir cpuset ',
        'inherit cpuset cpuset.cpus',
        'inherit cpuset cpuset.mems',
        'mkdir memory ',
        'write memory memory.limit_in_bytes=33554432',
        'mkdir unified ',
      ],
    );
  });

  it('the cgroup tree is converted to v2 files, with controllers enabled in every ancestor first', () => {
    const operations = planWrites(
      [{ mount: '/cg', version: 'v2', controllers: ['cpu', 'memory', 'pids', 'misc'] }],
      'systemd',
      [
        {
          path: ['kubepods', 'burstable'],
          limits: { cpuShares: 1024, cpuQuotaUs: -1, memoryLimitBytes: 1, pidsLimit: -1 },
        },
      ],
    );
    assert.deepEqual(
      operations.map((each) => `${each.directory} ${each.op === 'write' ? `${each.file}=${each.value}` : each.op}`),
      [
        '/cg cgroup.subtree_control=+cpu +memory +pids',
        '/cg/kubepods.slice mkdir',
        '/cg/kubepods.slice cgroup.subtree_control=+cpu +memory +pids',
        '/cg/kubepods.slice/kubepods-burstable.slice mkdir',
        '/cg/kubepods.slice/kubepods-burstable.slice cpu.weight=39',
        '/cg/kubepods.slice/kubepods-burstable.slice cpu.max=max 100000',
        '/cg/kubepods.slice/kubepods-burstable.slice memory.max=1',
        '/cg/kubepods.slice/kubepods-burstable.slice pids.max=max',
      ],
    );
  });

  it('limits of a cgroup tree are converted to properties of systemd slices', () => {
    const limits = { cpuShares: 1024, cpuQuotaUs: 25_000, cpuPeriodUs: 100_000, memoryLimitBytes: 5, pidsLimit: -1 };
    const infinity = 0xffff_ffff_ffff_ffffn;
    const quota = [
      { name: 'CPUQuotaPeriodUSec', value: 100_000n },
      { name: 'CPUQuotaPerSecUSec', value: 250_000n },
    ];
    assert.deepEqual(sliceProperties('v2', limits), [
      { name: 'CPUWeight', value: 39n },
      ...quota,
      { name: 'MemoryMax', value: 5n },
      { name: 'TasksMax', value: infinity },
    ]);
    assert.deepEqual(sliceProperties('v1', limits), [
      { name: 'CPUShares', value: 1024n },
      ...quota,
      { name: 'MemoryLimit', value: 5n },
      { name: 'TasksMax', value: infinity },
    ]);
    const odd = sliceProperties('v2', { cpuQuotaUs: 12_345, cpuPeriodUs: 100_000 });
    assert.deepEqual(odd[1], { name: 'CPUQuotaPerSecUSec', value: 130_000n }, 'rounded up to a whole percentage');
    assert.equal(sliceProperties('v2', { cpuQuotaUs: -1 })[1]?.value, infinity);
  });
});
