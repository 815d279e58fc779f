import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../../src/api/generated/core/v1.ts';
import { planEndpoints } from '../../../../src/controllers/network/endpoints/plan.ts';
import { pod, service } from '../../objects.ts';

const http = service({ selector: { app: 'a' }, ports: [{ port: 80, targetPort: 8080 }] });
const planned = (pods: readonly Pod[], of = http) => {
  const plan = planEndpoints(of, pods, undefined);
  return plan.kind === 'create' ? plan.endpoints : assert.fail(`planned ${plan.kind}`);
};

test('separates ready from not ready addresses and sorts the addresses', () => {
  const made = planned([
    pod({ ip: '10.0.0.2', ready: true }),
    pod({ ip: '10.0.0.1', ready: true }),
    pod({ ip: '10.0.0.3', ready: false }),
    pod({ ip: '10.0.0.4', ready: true, deleting: true }),
  ]);
  assert.equal(made?.subsets?.length, 1);
  assert.deepEqual(
    made?.subsets?.[0]?.addresses?.map((each) => each.ip),
    ['10.0.0.1', '10.0.0.2'],
  );
  assert.deepEqual(
    made?.subsets?.[0]?.notReadyAddresses?.map((each) => each.ip),
    ['10.0.0.3'],
  );
  assert.deepEqual(made?.subsets?.[0]?.ports, [{ port: 8080, protocol: 'TCP' }]);
});

test('Endpoints do not depend on the order of the pods', () => {
  const pods = [pod({ ip: '10.0.0.2', ready: true }), pod({ ip: '10.0.0.1', ready: true })];
  const made = planned(pods);
  assert.equal(planEndpoints(http, [...pods].reverse(), made).kind, 'none');
});

test('endpoints of a service without backends have no subsets', () => {
  assert.equal(planned([])?.subsets, undefined);
});

test('sets the headless label, also on services without ports', () => {
  const made = planned([pod({ ip: '10.0.0.1', ready: true })], service({ selector: { app: 'a' }, clusterIP: 'None' }));
  assert.equal(made?.metadata?.labels?.['service.kubernetes.io/headless'], '');
  assert.equal(made?.subsets?.[0]?.addresses?.length, 1);
  assert.equal(made?.subsets?.[0]?.ports, undefined);
});

test("includes the host name of a headless service's pod", () => {
  const named = pod({ ip: '10.0.0.1', ready: true });
  named.spec = { containers: [], hostname: 'h', subdomain: 'svc' };
  assert.equal(planned([named])?.subsets?.[0]?.addresses?.[0]?.hostname, 'h');
});

test('truncates Endpoints to a thousand addresses, ready addresses first, and sets the over-capacity annotation', () => {
  const pods = Array.from({ length: 1_100 }, (_, index) =>
    pod({ ip: `10.0.${index >> 8}.${index & 255}`, ready: index >= 100 }),
  );
  const made = planned(pods);
  assert.equal(made?.subsets?.[0]?.addresses?.length, 1_000);
  assert.equal(made?.subsets?.[0]?.notReadyAddresses, undefined);
  assert.equal(made?.metadata?.annotations?.['endpoints.kubernetes.io/over-capacity'], 'truncated');
  assert.equal(planEndpoints(http, pods, made).kind, 'none');
});

test('uses the address of a pod in the primary family of the service', () => {
  const plain = pod({ ip: '10.0.0.2', ready: true });
  const dual = { ...plain, status: { ...plain.status, podIPs: [{ ip: '10.0.0.2' }, { ip: 'fd00::2' }] } };
  const single = pod({ ip: '10.0.0.3', ready: true });
  const of = (spec: object) =>
    planned([dual, single], { ...http, spec: { ...http.spec, ...spec } })?.subsets?.flatMap(({ addresses = [] }) =>
      addresses.map(({ ip }) => ip),
    );
  assert.deepEqual(of({ ipFamilies: ['IPv6'] }), ['fd00::2']);
  assert.deepEqual(of({ clusterIP: 'fd01::1', ipFamilies: undefined }), ['fd00::2']);
  assert.deepEqual(of({ ipFamilies: ['IPv4', 'IPv6'] }), ['10.0.0.2', '10.0.0.3']);
  assert.deepEqual(of({ clusterIP: 'None', ipFamilies: undefined }), ['10.0.0.2', '10.0.0.3']);
});

test('plans thousands of ports for hundreds of pods in little time', () => {
  const ports = Array.from({ length: 5000 }, (_, index) => ({ name: `p${index}`, port: index + 1 }));
  const pods = Array.from({ length: 300 }, (_, index) => pod({ ip: `10.0.${index >> 8}.${index & 255}`, ready: true }));
  const started = performance.now();
  const made = planned(pods, service({ selector: { app: 'a' }, ports }));
  // An implementation that sorts and compares the ports for each pod takes a minute.
  assert.ok(performance.now() - started < 1500, `${performance.now() - started} ms`);
  assert.equal(made.subsets?.length, 1);
  assert.equal(made.subsets?.[0]?.ports?.length, 5000);
  assert.equal(made.subsets?.[0]?.addresses?.length, 300);
});
