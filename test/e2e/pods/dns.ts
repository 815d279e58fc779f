/** Name resolution in pods: cluster DNS on every host, and the DNS policies. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../harness.ts';
import { idle, type PodLab, pod, shell } from './lab.ts';

const LIMIT = { timeout: 60_000 };
const DNS_IP = '172.30.0.10';
/** Maximum time from a change in the API to the DNS response, including kubectl and exec. */
const CHANGE_MS = 10_000;

export function nameTests(lab: () => PodLab): void {
  test('resolves services, endpoints and ports by name, and their changes', LIMIT, async () => {
    const serve = shell('echo found > /tmp/index.html; exec httpd -f -p 8080 -h /tmp');
    const port = { name: 'http', port: 80, targetPort: 8080 };
    const web = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'named-web' } };
    const all = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'named-all' } };
    const labels = { app: 'named' };
    const server = pod('named-server', { hostname: 'first', subdomain: 'named-all', containers: [serve] });
    await lab().apply(
      { ...web, spec: { selector: labels, ports: [port] } },
      { ...all, spec: { clusterIP: 'None', selector: labels, ports: [{ ...port, port: 8080 }] } },
      { ...server, metadata: { ...server.metadata, labels } },
      pod('named-client', { containers: [idle()] }),
    );
    const { status } = await lab().ready('named-server');
    await lab().ready('named-client');
    const lookUp = (name: string, ...more: string[]): Promise<string> =>
      lab()
        .exec('named-client', 'nslookup', ...more, name)
        .catch((error: Error) => error.message);
    await eventually('the name of the endpoint', CHANGE_MS, async () =>
      (await lookUp('first.named-all.default.svc.cluster.local')).includes(`: ${status?.podIP}`) ? true : undefined,
    );
    for (const name of ['named-web', 'named-web.default', 'named-web.default.svc.cluster.local']) {
      // The service proxy follows the endpoint independently of DNS.
      await eventually(`http://${name}/`, CHANGE_MS, async () =>
        (await lab().exec('named-client', 'wget', '-qO-', `http://${name}/`)).trim() === 'found' ? true : undefined,
      );
    }
    assert.match(await lookUp('_http._tcp.named-all.default.svc.cluster.local', '-type=SRV'), /8080 first\.named-all/);
    assert.match(await lookUp('no-such-name.default.svc.cluster.local'), /NXDOMAIN/);
    await lab().remove('named-server');
    await eventually('NXDOMAIN without an endpoint', CHANGE_MS, async () =>
      (await lookUp('named-all.default.svc.cluster.local')).includes('NXDOMAIN') ? true : undefined,
    );
    await lab().remove('named-client');
    await lab().kubectl('delete', 'service', 'named-web', 'named-all');
  });

  test('writes resolv.conf for each DNS policy and reaches cluster DNS from the host network', LIMIT, async () => {
    const policies = {
      'dns-first': {},
      'dns-first-host': { hostNetwork: true },
      'dns-host': { hostNetwork: true, dnsPolicy: 'ClusterFirstWithHostNet' },
      'dns-default': { dnsPolicy: 'Default' },
      'dns-none': {
        dnsPolicy: 'None',
        dnsConfig: { nameservers: ['192.0.2.53'], searches: ['lab.example'], options: [{ name: 'ndots', value: '2' }] },
      },
    };
    await lab().apply(
      ...Object.entries(policies).map(([name, spec]) => pod(name, { ...spec, containers: [idle()] } as never)),
    );
    const files = new Map<string, string>();
    for (const name of Object.keys(policies)) {
      await lab().ready(name);
      files.set(name, await lab().exec(name, 'cat', '/etc/resolv.conf'));
    }
    for (const name of ['dns-first', 'dns-host']) {
      assert.match(files.get(name) ?? '', new RegExp(`^nameserver ${DNS_IP}$`, 'm'));
      assert.match(files.get(name) ?? '', /^search default\.svc\.cluster\.local svc\.cluster\.local cluster\.local/m);
      assert.match(files.get(name) ?? '', /^options ndots:5$/m);
      assert.match(await lab().exec(name, 'nslookup', 'kubernetes.default.svc.cluster.local'), /172\.30\.0\.1$/m);
    }
    for (const name of ['dns-first-host', 'dns-default']) assert.doesNotMatch(files.get(name) ?? '', /172\.30\.0\.10/);
    assert.match(files.get('dns-none') ?? '', /^search lab\.example$/m);
    assert.match(files.get('dns-none') ?? '', /^nameserver 192\.0\.2\.53$/m);
    assert.match(files.get('dns-none') ?? '', /^options ndots:2$/m);
    assert.match(
      await lab().kubectl('get', 'service', '-n', 'kube-system', 'kube-dns'),
      /ClusterIP +172\.30\.0\.10 .*53\/UDP,53\/TCP/,
    );
    await lab().remove(...Object.keys(policies));
    const stub = `--from-literal=stubDomains={"lab.example": ["192.0.2.53"]}`;
    await lab().kubectl('create', 'configmap', 'kube-dns', '-n', 'kube-system', stub);
    await eventually('the ConfigMap of the DNS server', CHANGE_MS, () =>
      /DNS upstream servers set .*stubDomains=.*lab\.example/.test(lab().appliance.output) ? true : undefined,
    );
    await lab().kubectl('delete', 'configmap', 'kube-dns', '-n', 'kube-system');
  });
}
