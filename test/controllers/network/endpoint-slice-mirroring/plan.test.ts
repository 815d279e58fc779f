import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Endpoints, Service } from '../../../../src/api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../../src/api/generated/discovery/v1.ts';
import { planMirror } from '../../../../src/controllers/network/endpoint-slice-mirroring/plan.ts';

const service = (selector?: Record<string, string>): Service => ({
  metadata: { name: 'db', namespace: 'ns', uid: 's' },
  spec: selector === undefined ? {} : { selector },
});
const endpoints = (subsets: NonNullable<Endpoints['subsets']>, metadata: Endpoints['metadata'] = {}): Endpoints => ({
  metadata: { name: 'db', namespace: 'ns', uid: 'e', labels: { team: 'a' }, ...metadata },
  subsets,
});
const ports = [{ name: 'sql', port: 5432, protocol: 'TCP' as const }];
const plan = (
  object: Endpoints | undefined,
  existing: readonly EndpointSlice[] = [],
  of: Service | undefined = service(),
) => planMirror({ service: of, endpoints: object, existing });
const named = (slice: EndpointSlice, name: string): EndpointSlice => ({
  ...slice,
  metadata: { ...slice.metadata, name, uid: name },
});

test('creates a slice per family and set of ports, with readiness, labels and annotations', () => {
  const object = endpoints(
    [
      { addresses: [{ ip: '192.0.2.1' }, { ip: '2001:db8::1' }], notReadyAddresses: [{ ip: '192.0.2.2' }], ports },
      { addresses: [{ ip: '192.0.2.1' }], ports: [{ port: 80 }] },
    ],
    { annotations: { note: 'x', 'endpoints.kubernetes.io/last-change-trigger-time': 'now' } },
  );
  const { create } = plan(object);
  const shown = create.map((slice) => [
    slice.addressType,
    slice.ports?.[0]?.port,
    slice.endpoints?.map((each) => `${each.addresses.join()}=${each.conditions?.ready}`).join(' '),
  ]);
  assert.deepEqual(shown, [
    ['IPv4', 5432, '192.0.2.1=true 192.0.2.2=false'],
    ['IPv6', 5432, '2001:db8::1=true'],
    ['IPv4', 80, '192.0.2.1=true'],
  ]);
  assert.deepEqual(create[0]?.metadata?.labels, {
    team: 'a',
    'kubernetes.io/service-name': 'db',
    'endpointslice.kubernetes.io/managed-by': 'endpointslicemirroring-controller.k8s.io',
  });
  assert.deepEqual(create[0]?.metadata?.annotations, { note: 'x' });
  assert.equal(create[0]?.metadata?.ownerReferences?.[0]?.kind, 'Endpoints');
});

test('updates existing slices, and writes only changes', () => {
  const before = endpoints([{ addresses: [{ ip: '192.0.2.1' }], ports }]);
  const existing = plan(before).create.map((slice, index) => named(slice, `db-${index}`));
  assert.deepEqual(plan(before, existing), { create: [], update: [], delete: [] });
  const after = plan(endpoints([{ addresses: [{ ip: '192.0.2.9' }], ports }]), existing);
  assert.deepEqual([after.create.length, after.delete.length], [0, 0]);
  assert.deepEqual(after.update[0]?.endpoints?.[0]?.addresses, ['192.0.2.9']);
  assert.deepEqual(plan(endpoints([]), existing).delete, existing);
});

test('ignores services with a selector, skipped and leader-election endpoints, and deleted objects', () => {
  const object = endpoints([{ addresses: [{ ip: '192.0.2.1' }], ports }]);
  const existing = plan(object).create.map((slice) => named(slice, 'db-0'));
  const { metadata } = object;
  const skipped = {
    ...object,
    metadata: { ...metadata, labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
  };
  const elected = {
    ...object,
    metadata: { ...metadata, annotations: { 'control-plane.alpha.kubernetes.io/leader': '' } },
  };
  assert.deepEqual(plan(object, existing, service({ app: 'db' })).delete, existing);
  assert.deepEqual(plan(skipped, existing).delete, existing);
  assert.deepEqual(plan(elected, existing).delete, existing);
  assert.deepEqual(plan(undefined, existing).delete, existing);
  assert.deepEqual(planMirror({ service: undefined, endpoints: object, existing }).delete, existing);
});
