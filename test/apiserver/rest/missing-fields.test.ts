/** Objects without required fields, which plug-ins and reviews read before or beside the validation. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startServer, type TestServer } from '../harness.ts';

const CERTIFICATES = '/apis/certificates.k8s.io';
const WEBHOOKS = '/apis/admissionregistration.k8s.io/v1';
const REVIEWS = '/apis/authorization.k8s.io/v1';
const webhook = {
  name: 'a.example.com',
  clientConfig: { url: 'https://192.0.2.1/' },
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
  matchConditions: [{}],
};
const selected = { resourceAttributes: { labelSelector: { requirements: [{}] } } };

describe('objects without required fields', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer();
    const made = await server.call('POST', '/api/v1/namespaces/default/serviceaccounts', {
      body: { metadata: { name: 'default' } },
    });
    assert.ok(made.code === 201 || made.code === 409, made.text);
  });
  after(() => server.stop());

  const cases: [what: string, path: string, fields: object, field: string][] = [
    [
      'a volume without a name',
      '/api/v1/namespaces/default/pods',
      { spec: { containers: [{ name: 'a', image: 'b' }], volumes: [{}] } },
      'spec.volumes[0].name',
    ],
    [
      'a certificate signing request without a request',
      `${CERTIFICATES}/v1beta1/certificatesigningrequests`,
      { spec: { usages: ['client auth'] } },
      'spec.request',
    ],
    [
      'a certificate signing request for a client without a request',
      `${CERTIFICATES}/v1/certificatesigningrequests`,
      { spec: { usages: ['client auth'], signerName: 'kubernetes.io/kube-apiserver-client' } },
      'spec.request',
    ],
    [
      'a match condition of a validating webhook without an expression',
      `${WEBHOOKS}/validatingwebhookconfigurations`,
      { webhooks: [webhook] },
      'webhooks[0].matchConditions[0].expression',
    ],
    [
      'a match condition of a mutating webhook without an expression',
      `${WEBHOOKS}/mutatingwebhookconfigurations`,
      { webhooks: [webhook] },
      'webhooks[0].matchConditions[0].expression',
    ],
    [
      'a selector of an access review without a key',
      `${REVIEWS}/selfsubjectaccessreviews`,
      { spec: selected },
      'spec.resourceAttributes.labelSelector.requirements[0].key',
    ],
    [
      'a selector of an access review of another user without a key',
      `${REVIEWS}/subjectaccessreviews`,
      { spec: { user: 'ann', ...selected } },
      'spec.resourceAttributes.labelSelector.requirements[0].key',
    ],
  ];
  for (const [what, path, fields, field] of cases)
    it(`rejects ${what} with the field`, async () => {
      const body = { metadata: { name: 'missing' }, ...fields };
      const rejected = await server.call<{ details?: { causes?: { field: string }[] } }>('POST', path, { body });
      assert.equal(rejected.code, 422, rejected.text);
      assert.ok(
        rejected.body.details?.causes?.some((cause) => cause.field === field),
        rejected.text,
      );
    });
});
