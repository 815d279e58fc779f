import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../../src/api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../../src/api/generated/discovery/v1.ts';
import { planEndpointSlices, type SlicePlan } from '../../../../src/controllers/network/endpoint-slice/plan.ts';
import { nextUid, node, pod, seeded, service } from '../../objects.ts';

const http = service({ selector: { app: 'a' }, ports: [{ name: 'http', port: 80, targetPort: 8080 }] });
const backends = (count: number): Pod[] =>
  Array.from({ length: count }, (_, index) => pod({ ip: `10.0.${index >> 8}.${index & 255}`, ready: true, node: 'n' }));

function apply(existing: readonly EndpointSlice[], plan: SlicePlan): EndpointSlice[] {
  const kept = existing
    .filter((slice) => !plan.delete.includes(slice))
    .map((slice) => plan.update.find((each) => each.metadata?.name === slice.metadata?.name) ?? slice);
  return [...kept, ...plan.create.map((slice) => ({ ...slice, metadata: { ...slice.metadata, name: nextUid() } }))];
}
const plan = (pods: readonly Pod[], existing: readonly EndpointSlice[], of = http): SlicePlan =>
  planEndpointSlices({ service: of, pods, existing, nodeOf: () => undefined });
const writes = (each: SlicePlan): number => each.create.length + each.update.length + each.delete.length;

test('puts at most a hundred endpoints into a slice', () => {
  const { create } = plan(backends(250), []);
  assert.deepEqual(
    create.map((slice) => slice.endpoints?.length),
    [100, 100, 50],
  );
  const [slice] = create;
  assert.equal(slice?.addressType, 'IPv4');
  assert.deepEqual(slice?.ports, [{ name: 'http', port: 8080, protocol: 'TCP' }]);
  assert.equal(slice?.metadata?.labels?.['kubernetes.io/service-name'], 'svc');
  assert.equal(slice?.metadata?.ownerReferences?.[0]?.kind, 'Service');
});

test('endpoints in slices have the conditions ready, serving and terminating', () => {
  const cases = [
    [pod({ ip: '10.0.0.1', ready: true }), { ready: true, serving: true, terminating: false }],
    [pod({ ip: '10.0.0.1', ready: false }), { ready: false, serving: false, terminating: false }],
    [pod({ ip: '10.0.0.1', ready: true, deleting: true }), { ready: false, serving: true, terminating: true }],
  ] as const;
  for (const [backend, conditions] of cases) {
    assert.deepEqual(plan([backend], []).create[0]?.endpoints?.[0]?.conditions, conditions);
  }
  const eager = service({ selector: { app: 'a' }, publishNotReadyAddresses: true, ports: [{ port: 80 }] });
  const early = plan([pod({ ip: '10.0.0.1', ready: false })], [], eager).create[0]?.endpoints?.[0];
  assert.equal(early?.conditions?.ready, true);
});

test('omits finished pods and pods without an address; a service without backends has an empty slice', () => {
  const { create } = plan([pod({ ready: true }), pod({ ip: '10.0.0.1', phase: 'Failed' })], []);
  assert.deepEqual(
    create.map((slice) => slice.endpoints?.length),
    [0],
  );
  assert.equal(writes(plan([], apply([], { create, update: [], delete: [] }))), 0);
});

test('a named port in a slice is resolved for each pod', () => {
  const named = service({ selector: { app: 'a' }, ports: [{ name: 'w', port: 80, targetPort: 'web' }] });
  const withPort = (ip: string, containerPort: number): Pod => {
    const each = pod({ ip, ready: true });
    each.spec = { containers: [{ name: 'c', ports: [{ name: 'web', containerPort }] }] };
    return each;
  };
  const { create } = plan([withPort('10.0.0.1', 80), withPort('10.0.0.2', 81), withPort('10.0.0.3', 80)], [], named);
  const sizes = create.map((slice) => [slice.ports?.[0]?.port, slice.endpoints?.length]).sort();
  assert.deepEqual(sizes, [
    [80, 2],
    [81, 1],
  ]);
});

test('writes only the slice of a changed endpoint', () => {
  const pods = backends(250);
  const slices = apply([], plan(pods, []));
  assert.equal(writes(plan(pods, slices)), 0);
  const changed = pods.map((each, index) =>
    index === 120 ? { ...each, status: { ...each.status, conditions: [] } } : each,
  );
  const next = plan(changed, slices);
  assert.deepEqual([next.create.length, next.update.length, next.delete.length], [0, 1, 0]);
});

test('fills existing slices before creating a new slice', () => {
  const pods = backends(150);
  const slices = apply([], plan(pods, []));
  const next = plan([...pods, pod({ ip: '10.9.9.9', ready: true })], slices);
  assert.deepEqual([next.create.length, next.update.length, next.delete.length], [0, 1, 0]);
});

test('endpoints in slices have zone and node name', () => {
  const { create } = planEndpointSlices({
    service: http,
    pods: [pod({ ip: '10.0.0.1', ready: true, node: 'n' })],
    existing: [],
    nodeOf: (name) => node(name, { labels: { 'topology.kubernetes.io/zone': 'z' } }),
  });
  assert.equal(create[0]?.endpoints?.[0]?.zone, 'z');
  assert.equal(create[0]?.endpoints?.[0]?.nodeName, 'n');
});

test('sets hints for zones and nodes of ready endpoints with trafficDistribution', () => {
  const hints = (trafficDistribution: string, ready = true): unknown =>
    planEndpointSlices({
      service: service({ ports: [{ name: 'http', port: 80, targetPort: 8080 }], trafficDistribution }),
      pods: [pod({ ip: '10.0.0.1', ready, node: 'n' })],
      existing: [],
      nodeOf: (name) => node(name, { labels: { 'topology.kubernetes.io/zone': 'z' } }),
    }).create[0]?.endpoints?.[0]?.hints;
  assert.deepEqual(hints('PreferSameZone'), { forZones: [{ name: 'z' }] });
  assert.deepEqual(hints('PreferClose'), { forZones: [{ name: 'z' }] });
  assert.deepEqual(hints('PreferSameNode'), { forNodes: [{ name: 'n' }], forZones: [{ name: 'z' }] });
  assert.equal(hints('PreferSameNode', false), undefined);
});

test('slices contain every backend once after random changes, and converge', () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = seeded(seed);
    let pods = backends(Math.floor(random() * 300));
    let slices = apply([], plan(pods, []));
    for (let step = 0; step < 6; step++) {
      pods = pods.filter(() => random() < 0.8);
      const more = Math.floor(random() * 60);
      for (let index = 0; index < more; index++) {
        pods.push(pod({ ip: `10.${step + 1}.0.${index}`, ready: random() < 0.5 }));
      }
      slices = apply(slices, plan(pods, slices));
      const listed = slices.flatMap((slice) =>
        (slice.endpoints ?? []).map((endpoint) => endpoint.targetRef?.uid ?? ''),
      );
      assert.equal(new Set(listed).size, listed.length, `seed ${seed}`);
      assert.deepEqual(new Set(listed), new Set(pods.map((each) => each.metadata?.uid)), `seed ${seed}`);
      assert.ok(
        slices.every((slice) => (slice.endpoints ?? []).length <= 100),
        `seed ${seed}`,
      );
      assert.equal(writes(plan(pods, slices)), 0, `seed ${seed}`);
    }
  }
});

test('plans thousands of ports for hundreds of pods in little time, by name and by number', () => {
  const ports = Array.from({ length: 5000 }, (_, index) => ({ name: `p${index}`, port: index + 1 }));
  const containers = [{ name: 'c', ports: ports.map(({ name, port }) => ({ name, containerPort: port + 1000 })) }];
  const started = performance.now();
  const numbered = plan(backends(300), [], service({ selector: { app: 'a' }, ports }));
  const named = service({ selector: { app: 'a' }, ports: ports.map((each) => ({ ...each, targetPort: each.name })) });
  const byName = plan(
    backends(20).map((each) => ({ ...each, spec: { ...each.spec, containers } })),
    [],
    named,
  );
  // An implementation that computes and compares the ports for each pod takes 5 seconds.
  assert.ok(performance.now() - started < 1500, `${performance.now() - started} ms`);
  assert.deepEqual(
    numbered.create.map(({ endpoints }) => endpoints?.length),
    [100, 100, 100],
  );
  assert.deepEqual(numbered.create[0]?.ports?.at(-1), { name: 'p4999', port: 5000, protocol: 'TCP' });
  assert.deepEqual(byName.create[0]?.ports?.at(-1), { name: 'p4999', port: 6000, protocol: 'TCP' });
});

test('separates pods whose named ports resolve to different numbers or protocols', () => {
  const named = service({ selector: { app: 'a' }, ports: [{ name: 'web', port: 80, targetPort: 'web' }] });
  const withPort = (index: number, port: object): Pod => {
    const each = pod({ ip: `10.0.0.${index}`, ready: true });
    return { ...each, spec: { ...each.spec, containers: [{ name: 'c', ports: [{ name: 'web', ...port }] as never }] } };
  };
  const { create } = plan(
    [
      withPort(1, { containerPort: 1 }),
      withPort(2, { containerPort: 2 }),
      withPort(3, { containerPort: 1 }),
      withPort(4, { containerPort: 1, protocol: 'UDP' }),
    ],
    [],
    named,
  );
  const found = create.map(({ ports, endpoints }) => [
    (ports ?? []).map(({ port }) => port).join(),
    (endpoints ?? []).map(({ addresses }) => addresses[0]).join(),
  ]);
  assert.deepEqual(found.sort(), [
    ['', '10.0.0.4'],
    ['1', '10.0.0.1,10.0.0.3'],
    ['2', '10.0.0.2'],
  ]);
});
