/** The image of the control plane, which only its own static pods may use. */
import assert from 'node:assert/strict';
import { eventually } from '../../e2e/harness.ts';
import { helloImage } from '../../e2e/images.ts';
import type { AttackLab, Tenant } from '../lab.ts';
import type { AttackCase } from '../port.ts';

const ID = 'b2a643d7931c38a1f607e703aab40c181a43aacb80b4348a4a68819183a45b5a';
const SPELLINGS = [
  'hyperedge.local/host-root',
  'hyperedge.local/host-root:latest',
  'hyperedge.local/host-root:1',
  'hyperedge.local/host-root:programs',
  `hyperedge.local/host-root@sha256:${ID}`,
  `hyperedge.local/host-root:latest@sha256:${'0'.repeat(64)}`,
  'HyperEdge.Local/host-root',
  'docker.io/hyperedge.local/host-root',
  `sha256:${ID}`,
  ID,
];
/** Security context that the level `restricted` requires. */
const UNPRIVILEGED = {
  runAsNonRoot: true,
  runAsUser: 1000,
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
};
const container = (name: string, image: string): object => ({
  name,
  image,
  imagePullPolicy: 'IfNotPresent',
  command: ['/bin/sh', '-c', 'cat /etc/shadow; sleep 1000'],
  securityContext: UNPRIVILEGED,
});
const podOf = (name: string, spec: object, annotations: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, annotations },
  spec: { terminationGracePeriodSeconds: 0, containers: [container('main', helloImage)], ...spec },
});

async function refused(lab: AttackLab, tenant: Tenant, method: string, path: string, body: object): Promise<void> {
  const answer = await lab.request(tenant, method, `/api/v1/namespaces/${tenant.namespace}/pods${path}`, body);
  assert.equal(answer.code, 403, `${method} ${JSON.stringify(body)}: ${answer.code} ${answer.body}`);
  assert.match(answer.body, /host-root is reserved/);
}

export const cases: readonly AttackCase[] = [
  {
    finding: 1,
    title: 'the host-root image is refused to every pod of the API, by every name and in every field',
    attack: async (lab) => {
      const tenant = await lab.tenant('edit', { 'pod-security.kubernetes.io/enforce': 'restricted' });
      const create = (spec: object, annotations?: object): Promise<void> =>
        refused(lab, tenant, 'POST', '', podOf('stolen', spec, annotations));
      for (const image of SPELLINGS) await create({ containers: [container('main', image)] });
      const [image = ''] = SPELLINGS;
      await create({ initContainers: [container('init', image)] });
      await create({ volumes: [{ name: 'host', image: { reference: image } }] });
      const node = (await lab.pods.kubectl('get', 'nodes', '-o', 'name')).trim().replace('node/', '');
      await create(
        { containers: [container('main', image)], nodeName: node, automountServiceAccountToken: false },
        { 'kubernetes.io/config.mirror': 'x', 'kubernetes.io/config.source': 'file' },
      );

      const made = await lab.request(
        tenant,
        'POST',
        `/api/v1/namespaces/${tenant.namespace}/pods`,
        podOf('honest', { containers: [{ ...container('main', helloImage), command: ['/bin/sleep', '1000'] }] }),
      );
      assert.equal(made.code, 201, made.body);
      const updated = await lab.kubectlAs(tenant, ['set', 'image', 'pod/honest', `main=${image}`]);
      assert.match(updated.stderr, /host-root is reserved/);
      const inTenant = ['-n', tenant.namespace];
      const debugging = ['--verb=patch', '--resource=pods/ephemeralcontainers'];
      await lab.pods.kubectl('create', 'role', 'debug', ...inTenant, ...debugging);
      const account = `--serviceaccount=${tenant.namespace}:attacker`;
      await lab.pods.kubectl('create', 'rolebinding', 'debug', ...inTenant, '--role=debug', account);
      await refused(lab, tenant, 'PATCH', '/honest/ephemeralcontainers', {
        spec: { ephemeralContainers: [container('debug', image)] },
      });

      const labels = { app: 'stolen' };
      const deployment = {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'stolen', namespace: tenant.namespace },
        spec: {
          selector: { matchLabels: labels },
          template: { metadata: { labels }, spec: { containers: [container('main', image)] } },
        },
      };
      await lab.kubectlAs(tenant, ['create', '-f', '-'], JSON.stringify(deployment));
      await eventually('refused pods of a deployment', 20_000, async () => {
        const sets = await lab.pods.kubectl('get', 'replicasets', '-n', tenant.namespace, '-o', 'json');
        return /host-root is reserved/.test(sets) ? true : undefined;
      });
      const pods = lab.pods.podsOf('', tenant.namespace).map((each) => each.metadata?.name);
      assert.deepEqual(pods, ['honest']);
      await lab.pods.kubectl('delete', 'namespace', tenant.namespace, '--wait=false');
    },
  },
  {
    finding: 1,
    title: 'control plane containers see the host read-only, without /sys and without nested mounts',
    attack: async (lab) => {
      const mirror = await lab.pods.untilPods('the mirror pod of a static pod', () =>
        lab.pods.podsOf('master-api', 'kube-system').find((each) => each.status?.phase === 'Running'),
      );
      const { name = '', namespace = '' } = mirror.metadata ?? {};
      const mounts = await lab.pods.kubectl(...['exec', '-n', namespace, name, '--', 'cat', '/proc/self/mountinfo']);
      // With cgroup v1, the controllers' directories are in a file system of the container.
      const writable = mounts
        .split('\n')
        .filter((line) => !/ \/sys\/fs\/cgroup .* - tmpfs /.test(line))
        .map((line) => line.split(' '))
        .filter(([, , , , , options]) => options?.split(',')[0] === 'rw')
        .map(([, , , , point]) => point ?? '');
      const own = writable.filter((point) => !/^\/(?:tmp$|run$|dev$|dev\/|proc$|proc\/)/.test(point));
      const volumes = new Set(mirror.spec?.containers[0]?.volumeMounts?.map((each) => each.mountPath));
      assert.deepEqual(
        own.filter((point) => !volumes.has(point) && point !== '/etc/hosts'),
        [],
      );
      assert.match(mounts, / \/sys ro/);
    },
  },
];
