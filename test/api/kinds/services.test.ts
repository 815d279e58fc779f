/** Inputs with the responses of upstream's current API server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assignFamilies } from '../../../src/api/kinds/network/services/families.ts';
import type { JsonValue } from '../../../src/api/meta/object.ts';
import { at, context, type Document, defaulted, kindNamed, texts } from './samples.ts';

const services = kindNamed('Service');
type Fields = Record<string, JsonValue>;

function service(spec: Fields, annotations: Fields = {}): Document {
  return defaulted('Service', (document) => {
    document['spec'] = { ports: [{ port: 80 }], ...spec };
    at(document, 'metadata')['annotations'] = annotations;
  });
}

function refused(spec: Fields, ...errors: string[]): void {
  assert.deepEqual(texts(services.strategy.validate?.(service(spec))), errors);
}

test('rejects invalid services', () => {
  refused({ trafficDistribution: 'PreferSameNode' });
  refused(
    { trafficDistribution: 'x' },
    'spec.trafficDistribution: Unsupported value: "x": supported values: "PreferClose", "PreferSameZone", "PreferSameNode"',
  );
  refused(
    { internalTrafficPolicy: 'x' },
    'spec.internalTrafficPolicy: Unsupported value: "x": supported values: "Cluster", "Local"',
  );
  refused(
    { loadBalancerClass: 'a.b/c' },
    "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
  );
  refused({ type: 'LoadBalancer', loadBalancerClass: 'a.b/c' });
  refused(
    { externalIPs: ['127.0.0.1'] },
    'spec.externalIPs[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
  );
  refused(
    { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1', '10.0.0.2'] },
    'spec.clusterIPs: Invalid value: ["10.0.0.1","10.0.0.2"]: may specify no more than one IP for each IP family',
  );
  refused(
    { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1'], ipFamilies: ['IPv6', 'IPv6'] },
    'spec.ipFamilies[1]: Duplicate value: "IPv6"',
    'spec.clusterIPs[0]: Invalid value: "10.0.0.1": expected an IPv6 value as indicated by `ipFamilies[0]`',
  );
  refused(
    { clusterIPs: ['10.0.0.1'] },
    'spec.clusterIPs: Invalid value: ["10.0.0.1"]: must be empty when `clusterIP` is not specified',
  );
  const ranges = service({}, { 'service.beta.kubernetes.io/load-balancer-source-ranges': '10.0.0.0/8, x' });
  const path = 'metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]';
  assert.deepEqual(texts(services.strategy.validate?.(ranges)), [
    `${path}: Forbidden: may only be used when \`type\` is 'LoadBalancer'`,
    `${path}: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`,
  ]);
});

test('validates changes of a service', () => {
  const update = (before: Fields, now: Fields): string[] => {
    const old = service(before);
    const next = service({ ...before, ...now });
    services.strategy.prepareForUpdate?.(next, old, context);
    return texts([
      ...(services.strategy.validate?.(next) ?? []),
      ...(services.strategy.validateUpdate?.(next, old) ?? []),
    ]);
  };
  const one = { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1'], ipFamilies: ['IPv4'], ipFamilyPolicy: 'SingleStack' };
  const two = {
    ...one,
    clusterIPs: ['10.0.0.1', 'fd00::1'],
    ipFamilies: ['IPv4', 'IPv6'],
    ipFamilyPolicy: 'PreferDualStack',
  };
  assert.deepEqual(update(one, two), []);
  assert.deepEqual(update(two, one), []);
  assert.deepEqual(update(two, { ...one, ipFamilyPolicy: 'PreferDualStack' }), [
    `spec.ipFamilyPolicy: Invalid value: "PreferDualStack": must be set to 'SingleStack' when releasing the secondary clusterIP`,
    `spec.ipFamilyPolicy: Invalid value: "PreferDualStack": must be set to 'SingleStack' when releasing the secondary ipFamily`,
  ]);
  assert.deepEqual(update(one, { clusterIP: '10.0.0.2', clusterIPs: ['10.0.0.2'] }), [
    'spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set',
  ]);
  const local = { ...one, type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 30000 };
  assert.deepEqual(update(local, { healthCheckNodePort: 30001 }), [
    'spec.healthCheckNodePort: Forbidden: field is immutable',
  ]);
  const outside = service({ externalIPs: ['1.2.3.4'] });
  assert.equal(at(outside, 'spec')['externalTrafficPolicy'], 'Cluster');
  assert.deepEqual(update({ externalIPs: ['1.2.3.4'], externalTrafficPolicy: 'Cluster' }, { externalIPs: [] }), []);
});

test('validates the status of a load balancer', () => {
  const write = (type: string, ingress: Fields): string[] => {
    const old = service({ type });
    const next = structuredClone(old);
    next['status'] = { loadBalancer: { ingress: [ingress] } };
    services.setDefaults?.(next);
    services.statusStrategy?.prepareForUpdate?.(next, old, context);
    return texts(services.statusStrategy?.validateUpdate?.(next, old));
  };
  const path = 'status.loadBalancer.ingress';
  assert.deepEqual(write('LoadBalancer', { ip: '1.2.3.4' }), []);
  assert.deepEqual(write('ClusterIP', { ip: '1.2.3.4' }), [
    `${path}: Forbidden: may only be used when \`spec.type\` is 'LoadBalancer'`,
  ]);
  assert.deepEqual(write('LoadBalancer', { hostname: '1.2.3.4', ipMode: 'VIP' }), [
    `${path}[0].ipMode: Forbidden: may not be specified when \`ip\` is not set`,
    `${path}[0].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address`,
  ]);
});

test('warns about deprecated and ignored fields of a service', () => {
  const warned = (spec: Fields, ...warnings: string[]): void => {
    assert.deepEqual(services.strategy.warnings?.(service(spec), undefined), warnings);
  };
  warned(
    { externalIPs: ['1.2.3.4'] },
    'spec.externalIPs is deprecated and may no longer be implemented in some clusters',
  );
  warned({ clusterIP: 'None', sessionAffinity: 'ClientIP' }, 'spec.SessionAffinity is ignored for headless services');
  warned({ externalName: 'x' }, 'spec.externalName is ignored when spec.type is not "ExternalName"');
  warned(
    { trafficDistribution: 'PreferClose' },
    'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"',
  );
  warned(
    { type: 'LoadBalancer', loadBalancerSourceRanges: ['10.0.0.1/8', 'FD00::/8', '::ffff:10.0.0.0/104'] },
    'spec.loadBalancerSourceRanges[0]: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)',
    'spec.loadBalancerSourceRanges[1]: IPv6 CIDR value "FD00::/8" should be in RFC 5952 canonical format ("fd00::/8")',
    'spec.loadBalancerSourceRanges[2]: non-standard CIDR value "::ffff:10.0.0.0/104" is invalid: use "10.0.0.0/8"',
  );
  warned(
    { type: 'LoadBalancer', loadBalancerIP: '::ffff:1.2.3.4' },
    'spec.loadBalancerIP: non-standard IP address "::ffff:1.2.3.4" is invalid: use "1.2.3.4"',
  );
});

test('assigns IP families in a single-stack cluster', () => {
  const assign = (spec: Fields, before?: Fields): readonly [string[], unknown, unknown] => {
    const next = service(spec);
    const errors = texts(assignFamilies(next, before === undefined ? undefined : service(before), ['IPv4']));
    return [errors, at(next, 'spec')['ipFamilyPolicy'], at(next, 'spec')['ipFamilies']];
  };
  assert.deepEqual(assign({}), [[], 'SingleStack', ['IPv4']]);
  assert.deepEqual(assign({ ipFamilyPolicy: 'PreferDualStack' }), [[], 'PreferDualStack', ['IPv4']]);
  assert.deepEqual(assign({ clusterIP: 'None', clusterIPs: ['None'], selector: { a: 'b' } }), [
    [],
    'SingleStack',
    ['IPv4'],
  ]);
  assert.deepEqual(assign({ clusterIP: 'None', clusterIPs: ['None'] }), [[], 'RequireDualStack', ['IPv4', 'IPv6']]);
  assert.deepEqual(assign({ ipFamilyPolicy: 'RequireDualStack' })[0], [
    'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services',
  ]);
  assert.deepEqual(assign({ ipFamilies: ['IPv6'] })[0], [
    'spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster',
  ]);
  assert.deepEqual(assign({ clusterIP: 'fd00::1', clusterIPs: ['fd00::1'] })[0], [
    'spec.clusterIPs[0]: Invalid value: ["fd00::1"]: IPv6 is not configured on this cluster',
  ]);
  assert.deepEqual(assign({ ipFamilies: ['IPv4', 'IPv6'] })[0], [
    `spec.ipFamilyPolicy: Invalid value: "SingleStack": must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified`,
  ]);
});

test('assigns IP families in a dual-stack cluster', () => {
  const assign = (spec: Fields): readonly [string[], unknown, unknown] => {
    const next = service(spec);
    const errors = texts(assignFamilies(next, undefined, ['IPv6', 'IPv4']));
    return [errors, at(next, 'spec')['ipFamilyPolicy'], at(next, 'spec')['ipFamilies']];
  };
  assert.deepEqual(assign({}), [[], 'SingleStack', ['IPv6']]);
  assert.deepEqual(assign({ ipFamilyPolicy: 'PreferDualStack' }), [[], 'PreferDualStack', ['IPv6', 'IPv4']]);
  assert.deepEqual(assign({ ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv4'] }), [
    [],
    'RequireDualStack',
    ['IPv4', 'IPv6'],
  ]);
  assert.deepEqual(assign({ clusterIP: '172.30.0.9', clusterIPs: ['172.30.0.9'] }), [[], 'SingleStack', ['IPv4']]);
});
