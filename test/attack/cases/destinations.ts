/** Addresses to which the API server must not be made to connect. */
import assert from 'node:assert/strict';
import type { AttackCase } from '../port.ts';

/** Spellings of loopback, of the API server's service and of a cloud's metadata service. */
const ADDRESSES = [
  '127.0.0.1',
  '0.0.0.0',
  '172.30.0.1',
  '169.254.169.254',
  '::ffff:7f00:1',
  '::ffff:ac1e:1',
  '64:ff9b::ac1e:1',
  '0x7f.1',
  '2130706433',
];

export const cases: readonly AttackCase[] = [
  {
    finding: 16,
    title: 'the API server does not connect to a node that claims an address of a service or of loopback',
    attack: async (lab) => {
      const tenant = await lab.tenant();
      const { namespace } = tenant;
      const account = `--serviceaccount=${namespace}:attacker`;
      await lab.pods.kubectl(
        ...['create', 'clusterrole', namespace, '--verb=*', '--resource=nodes,nodes/status,nodes/proxy'],
      );
      await lab.pods.kubectl('create', 'clusterrolebinding', namespace, `--clusterrole=${namespace}`, account);
      const node = `/api/v1/nodes/${namespace}`;
      const made = await lab.request(tenant, 'POST', '/api/v1/nodes', {
        metadata: { name: namespace },
        spec: { unschedulable: true },
      });
      assert.equal(made.code, 201, made.body);
      for (const address of ADDRESSES) {
        const status = {
          addresses: [{ type: 'InternalIP', address }],
          daemonEndpoints: { kubeletEndpoint: { Port: 443 } },
        };
        const reported = await lab.request(tenant, 'PATCH', `${node}/status`, { status });
        assert.equal(reported.code, 200, reported.body.slice(0, 300));
        const answer = await lab.request(tenant, 'GET', `${node}/proxy/api/v1/namespaces/kube-system/secrets`);
        assert.equal(answer.code, 403, `${address}: ${answer.code} ${answer.body.slice(0, 300)}`);
        assert.match(answer.body, /is not allowed/, address);
      }
      await lab.request(tenant, 'DELETE', node);
      await lab.pods.kubectl('delete', `clusterrolebinding/${namespace}`, `clusterrole/${namespace}`);
    },
  },
  {
    finding: 19,
    title: 'a webhook with a link-local address is not called, in any spelling of the address',
    attack: async (lab) => {
      const tenant = await lab.tenant('edit');
      const { namespace } = tenant;
      for (const host of ['169.254.169.254', '[::ffff:a9fe:a9fe]', '[64:ff9b::a9fe:a9fe]', '[fe80::1]', '0xa9fea9fe']) {
        await lab.pods.apply({
          apiVersion: 'admissionregistration.k8s.io/v1',
          kind: 'ValidatingWebhookConfiguration',
          metadata: { name: namespace },
          webhooks: [
            {
              name: 'metadata.attack.example.com',
              clientConfig: { url: `https://${host}/latest/meta-data` },
              rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }],
              namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
              failurePolicy: 'Fail',
              sideEffects: 'None',
              timeoutSeconds: 1,
              admissionReviewVersions: ['v1'],
            },
          ],
        });
        const answer = await lab.request(tenant, 'POST', `/api/v1/namespaces/${namespace}/configmaps`, {
          metadata: { name: 'any' },
        });
        assert.equal(answer.code, 500, `${host}: ${answer.code} ${answer.body.slice(0, 300)}`);
        assert.match(answer.body, /address .* is not allowed/, host);
      }
      await lab.pods.kubectl('delete', 'validatingwebhookconfiguration', namespace);
    },
  },
];
