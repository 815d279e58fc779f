/** Services that claim addresses of the appliance, of loopback or of other services. */
import assert from 'node:assert/strict';
import type { Service } from '../../../src/api/generated/core/v1.ts';
import { eventually } from '../../e2e/harness.ts';
import { shell } from '../../e2e/pods/lab.ts';
import type { AttackLab } from '../lab.ts';
import type { AttackCase } from '../port.ts';

const FREE_PORT = 18_190;
const PORTS = [8443, 10_250, 2379, 443, FREE_PORT];
const WEB = 'mkdir -p /tmp/w; echo stolen > /tmp/w/index.html; exec httpd -f -p 8080 -h /tmp/w';

function service(name: string, spec: Service['spec']): object {
  const ports = PORTS.map((port) => ({ name: `p${port}`, port, targetPort: 8080 }));
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { selector: { app: 'thief' }, ports, ...spec },
  };
}

async function serviceTable(lab: AttackLab): Promise<string> {
  const { stdout } = await lab.appliance.inside('nft', ['list', 'ruleset']);
  return /^table ip hyperedge-\w{6} \{[\s\S]*?^\}/m.exec(stdout)?.[0] ?? '';
}

export const cases: readonly AttackCase[] = [
  {
    finding: 14,
    title: 'externalIPs are refused by default, and only cluster administrators write load balancer addresses',
    attack: async (lab) => {
      const tenant = await lab.tenant('edit');
      const at = `/api/v1/namespaces/${tenant.namespace}/services`;
      const node = await lab.pods.kubectl(
        'get',
        'nodes',
        '--selector=node-role.kubernetes.io/master',
        '-o',
        'jsonpath={.items[0].status.addresses[0].address}',
      );
      for (const address of [node, '192.0.2.1']) {
        const made = await lab.request(tenant, 'POST', at, service('thief', { externalIPs: [address] }));
        assert.equal(made.code, 403, made.body);
        assert.match(made.body, /Use of external IPs is denied by admission control/);
      }
      const plain = await lab.request(
        tenant,
        'POST',
        at,
        service('thief', { type: 'LoadBalancer', loadBalancerClass: 'example.com/own' }),
      );
      assert.equal(plain.code, 201, plain.body);
      const patched = await lab.request(tenant, 'PATCH', `${at}/thief`, { spec: { externalIPs: [node] } });
      assert.equal(patched.code, 403, patched.body);
      const status = { status: { loadBalancer: { ingress: [{ ip: node }] } } };
      assert.equal((await lab.request(tenant, 'PATCH', `${at}/thief/status`, status)).code, 403);
      const slice = {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: 'thief', labels: { 'kubernetes.io/service-name': 'thief' } },
        addressType: 'IPv4',
        endpoints: [{ addresses: ['127.0.0.1'] }],
        ports: [{ name: `p${FREE_PORT}`, port: 2379 }],
      };
      const slices = `/apis/discovery.k8s.io/v1/namespaces/${tenant.namespace}/endpointslices`;
      assert.equal((await lab.request(tenant, 'POST', slices, slice)).code, 403);
      await lab.pods.kubectl('delete', 'namespace', tenant.namespace, '--wait=false');
    },
  },
  {
    finding: 14,
    title: 'a load balancer address of a node, loopback or another service does not redirect traffic to this address',
    attack: async (lab) => {
      const tenant = await lab.tenant('edit');
      const at = `/api/v1/namespaces/${tenant.namespace}`;
      const node = await lab.pods.kubectl(
        'get',
        'nodes',
        '--selector=node-role.kubernetes.io/master',
        '-o',
        'jsonpath={.items[0].status.addresses[0].address}',
      );
      const kubernetes = await lab.pods.kubectl('get', 'service', 'kubernetes', '-o', 'jsonpath={.spec.clusterIP}');
      const pod = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'thief', labels: { app: 'thief' } },
        spec: { terminationGracePeriodSeconds: 0, containers: [shell(WEB)] },
      };
      assert.equal((await lab.request(tenant, 'POST', `${at}/pods`, pod)).code, 201);
      const made = await lab.request(
        tenant,
        'POST',
        `${at}/services`,
        service('thief', { type: 'LoadBalancer', loadBalancerClass: 'example.com/own' }),
      );
      assert.equal(made.code, 201, made.body);
      const ingress = [node, kubernetes, '192.0.2.50'].map((ip) => ({ ip }));
      await lab.pods.kubectl(
        ...['patch', 'service', 'thief', '-n', tenant.namespace, '--subresource=status', '--type=merge'],
        ...['-p', JSON.stringify({ status: { loadBalancer: { ingress } } })],
      );
      const free = await eventually('a port that is free is forwarded', 20_000, async () => {
        const answer = await lab.curl(`http://${node}:${FREE_PORT}/`, ['--connect-timeout', '1']);
        return answer.body === 'stolen\n' ? answer : undefined;
      });
      assert.equal(free.code, 200);
      const rules = await serviceTable(lab);
      assert.match(rules, /192\.0\.2\.50 \. tcp \. 8443 :/);
      for (const port of [8443, 10_250, 2379])
        assert.ok(!rules.includes(`${node} . tcp . ${port} :`), `${node}:${port} is in the maps`);
      assert.deepEqual(await lab.curl(`https://${node}:8443/readyz`), { code: 200, body: 'ok' });
      assert.equal((await lab.curl(`https://${node}:10250/pods`)).code, 401);
      assert.deepEqual(await lab.curl(`https://${kubernetes}:443/readyz`), { code: 200, body: 'ok' });
      await lab.pods.kubectl('delete', 'namespace', tenant.namespace, '--wait=false');
    },
  },
];
