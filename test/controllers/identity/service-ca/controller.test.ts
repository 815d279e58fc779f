/** Serving certificates of services and injected bundles on a real API server. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { resources } from '../../../../src/api/resources.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../harness.ts';

const SECRET_NAME = 'service.beta.openshift.io/serving-cert-secret-name';
const INJECT = { 'service.beta.openshift.io/inject-cabundle': 'true' };

describe('service CA', () => {
  let plane: ControlPlane;
  before(async () => {
    plane = await startControlPlane({ router: true });
    await plane.of(resources.namespaces).create({ metadata: { name: 'shop' } });
  });
  after(() => plane.stop());

  const serve = (name: string, secret: string, namespace = 'shop', spec: object = {}) =>
    plane.of(resources.services).create({
      metadata: { name, namespace, annotations: { [SECRET_NAME]: secret } },
      spec: { ports: [{ port: 443 }], ...spec },
    });
  const certificateIn = (name: string) =>
    eventually(async () => {
      const { type, data } = await plane.of(resources.secrets).get(name, 'shop');
      assert.equal(type, 'kubernetes.io/tls');
      assert.match(Buffer.from(data?.['tls.key'] ?? '', 'base64').toString(), /PRIVATE KEY/);
      return new X509Certificate(Buffer.from(data?.['tls.crt'] ?? '', 'base64'));
    }, `secret ${name}`);

  it('issues a certificate for an annotated service, and a new certificate when its secret is deleted', async () => {
    await serve('api', 'api-tls');
    const first = await certificateIn('api-tls');
    for (const host of ['api.shop.svc', 'api.shop.svc.cluster.local']) assert.equal(first.checkHost(host), host);
    assert.equal(first.checkHost('other.shop.svc'), undefined);
    assert.ok(first.checkIssued(new X509Certificate(plane.api.ca.certPem)));
    const { metadata } = await plane.of(resources.secrets).get('api-tls', 'shop');
    assert.equal(metadata?.ownerReferences?.[0]?.kind, 'Service');
    await eventually(async () => {
      const service = await plane.of(resources.services).get('api', 'shop');
      return service.metadata?.annotations?.['service.beta.openshift.io/serving-cert-signed-by'] !== undefined;
    }, 'annotation of the signer');
    await plane.of(resources.secrets).delete('api-tls', 'shop');
    const second = await certificateIn('api-tls');
    assert.notEqual(second.serialNumber, first.serialNumber);
    await serve('peers', 'peers-tls', 'shop', { clusterIP: 'None' });
    assert.equal((await certificateIn('peers-tls')).checkHost('db-0.peers.shop.svc'), '*.peers.shop.svc');
  });

  it('service CA does not change secrets of other owners, and issues no certificate for names of the API server', async () => {
    await plane.of(resources.secrets).create({ metadata: { name: 'mine', namespace: 'shop' }, stringData: { a: 'b' } });
    await serve('thief', 'mine');
    const failed = (namespace: string, text: RegExp) =>
      eventually(async () => {
        const { items } = await plane.of(resources.events).list({ namespace });
        return items.some(({ reason, message }) => reason === 'ServingCertificateFailed' && text.test(message ?? ''));
      }, 'an event');
    await failed('shop', /secret mine exists and does not belong to this service/);
    assert.deepEqual(Object.keys((await plane.of(resources.secrets).get('mine', 'shop')).data ?? {}), ['a']);
    await plane.of(resources.services).patch('kubernetes', 'default', 'merge', {
      metadata: { annotations: { [SECRET_NAME]: 'stolen' } },
    });
    await failed('default', /names of this service are reserved for the API server/);
    await assert.rejects(plane.of(resources.secrets).get('stolen', 'default'), /not found/);
  });

  it('injects the bundle into annotated config maps and webhook configurations', async () => {
    const maps = plane.of(resources.configMaps);
    await maps.create({ metadata: { name: 'bundle', namespace: 'shop', annotations: INJECT }, data: { own: 'x' } });
    await maps.create({ metadata: { name: 'plain', namespace: 'shop' }, data: {} });
    const injected = () =>
      eventually(async () => {
        const { data } = await maps.get('bundle', 'shop');
        assert.deepEqual(data, { own: 'x', 'service-ca.crt': plane.api.ca.certPem });
        return true;
      }, 'the bundle');
    await injected();
    await maps.patch('bundle', 'shop', 'merge', { data: { 'service-ca.crt': 'other' } });
    await injected();
    assert.deepEqual((await maps.get('plain', 'shop')).data ?? {}, {});
    const hooks = plane.of(resources.validatingWebhookConfigurations);
    const hook = {
      name: 'a.shop.example',
      clientConfig: { service: { name: 'api', namespace: 'shop' } },
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
      failurePolicy: 'Ignore',
      rules: [{ apiGroups: ['x'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['x'] }],
    };
    await hooks.create({ metadata: { name: 'hook', annotations: INJECT }, webhooks: [hook] });
    await eventually(async () => {
      const found = (await hooks.get('hook')).webhooks?.[0]?.clientConfig.caBundle ?? '';
      return Buffer.from(found, 'base64').toString() === plane.api.ca.certPem;
    }, 'the bundle of the webhook');
  });

  it('injects the bundle into the conversion webhooks of annotated definitions', async () => {
    const definitions = plane.of(resources.customResourceDefinitions);
    const version = (name: string, storage: boolean) => ({
      name,
      storage,
      served: true,
      schema: { openAPIV3Schema: { type: 'object' } },
    });
    const define = (plural: string, conversion: object) =>
      definitions.create({
        metadata: { name: `${plural}.shop.example`, annotations: INJECT },
        spec: {
          group: 'shop.example',
          names: { plural, kind: `K${plural}`, listKind: `K${plural}List`, singular: plural },
          scope: 'Namespaced',
          versions: [version('v1', true), version('v2', false)],
          ...conversion,
        },
      });
    const clientConfig = { service: { name: 'api', namespace: 'shop', path: '/convert' } };
    await define('carts', {
      conversion: { strategy: 'Webhook', webhook: { clientConfig, conversionReviewVersions: ['v1'] } },
    });
    await define('tills', { conversion: { strategy: 'None' } });
    await eventually(async () => {
      const { spec } = await definitions.get('carts.shop.example');
      const { caBundle = '', service } = spec.conversion?.webhook?.clientConfig ?? {};
      assert.equal(service?.path, '/convert');
      return Buffer.from(caBundle, 'base64').toString() === plane.api.ca.certPem;
    }, 'the bundle of the conversion webhook');
    assert.deepEqual((await definitions.get('tills.shop.example')).spec.conversion, { strategy: 'None' });
  });

  it('publishes the CA bundle in each namespace, and restores a changed or deleted bundle', async () => {
    const name = 'openshift-service-ca.crt';
    const maps = plane.of(resources.configMaps);
    const published = (namespace: string) =>
      eventually(async () => {
        const { data, metadata } = await maps.get(name, namespace);
        assert.deepEqual(data, { 'service-ca.crt': plane.api.ca.certPem });
        assert.equal(metadata?.annotations?.['service.beta.openshift.io/inject-cabundle'], 'true');
        return true;
      }, `the bundle in ${namespace}`);
    await published('shop');
    await published('default');
    await plane.of(resources.namespaces).create({ metadata: { name: 'later' } });
    await published('later');
    await maps.delete(name, 'later');
    await published('later');
    await maps.patch(name, 'later', 'merge', { metadata: { annotations: null }, data: { 'service-ca.crt': 'other' } });
    await published('later');
    await plane.of(resources.namespaces).delete('later');
    await eventually(async () => {
      await assert.rejects(plane.of(resources.namespaces).get('later'), /not found/);
      return true;
    }, 'the end of the namespace');
  });
});
