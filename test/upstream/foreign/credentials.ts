/** Certificates and kubeconfigs of upstream's components, and the bootstrap token for the kubelet. */
import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createAuthority, issue, lifetimeFrom } from '../../../src/pki/index.ts';
import { createKubeconfig } from '../../../src/pki/kubeconfig.ts';

const TOKEN = { id: 'abcdef', secret: '0123456789abcdef' };

/** Writes certificates, keys and kubeconfigs of every component to `directory`. */
export async function writeCredentials(directory: string, server: string, address: string): Promise<void> {
  const at = (name: string): string => join(directory, name);
  const validity = lifetimeFrom(Date.now(), 2);
  const ca = await createAuthority('kubernetes', validity);
  const write = (name: string, text: string) => writeFile(at(name), text, { mode: 0o600 });
  const pair = async (name: string, { certPem, keyPem }: { certPem: string; keyPem: string }) => {
    await write(`${name}.crt`, certPem);
    await write(`${name}.key`, keyPem);
  };
  await pair('ca', ca);
  const names = { dns: ['kubernetes.default.svc'], ips: [address, '127.0.0.1', '10.96.0.1'] };
  const serving = { subject: { commonName: 'kube-apiserver' }, usages: ['server'] as const, names, validity };
  await pair('apiserver', await issue(ca, serving));
  const client = (commonName: string, ...organizations: string[]) =>
    issue(ca, { subject: { commonName, organizations }, usages: ['client'], validity });
  await pair('to-kubelet', await client('kube-apiserver', 'system:masters'));
  for (const [name, user, ...groups] of [
    ['admin', 'admin', 'system:masters'],
    ['kcm', 'system:kube-controller-manager'],
    ['scheduler', 'system:kube-scheduler'],
    ['proxy', 'system:kube-proxy'],
  ] as const) {
    const credentials = await client(user, ...groups);
    await write(`${name}.conf`, createKubeconfig({ server: server, caPem: ca.certPem, user, client: credentials }));
  }
  const bootstrap = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: server, 'certificate-authority': at('ca.crt') } }],
    users: [{ name: 'u', user: { token: `${TOKEN.id}.${TOKEN.secret}` } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'c',
  };
  await write('bootstrap.conf', JSON.stringify(bootstrap));
  const tokens = generateKeyPairSync('rsa', { modulusLength: 2048 });
  await write('sa.key', tokens.privateKey.export({ type: 'pkcs1', format: 'pem' }).toString());
  await write('sa.pub', tokens.publicKey.export({ type: 'spki', format: 'pem' }).toString());
}

/** Objects with which a kubelet can use the bootstrap token and have its certificates signed. */
export function enrolment(): object[] {
  const role = (name: string, clusterRole: string, group: string) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: clusterRole },
    subjects: [{ kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: group }],
  });
  const requests = 'system:certificates.k8s.io:certificatesigningrequests';
  return [
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: `bootstrap-token-${TOKEN.id}`, namespace: 'kube-system' },
      type: 'bootstrap.kubernetes.io/token',
      stringData: {
        'token-id': TOKEN.id,
        'token-secret': TOKEN.secret,
        'usage-bootstrap-authentication': 'true',
        'usage-bootstrap-signing': 'true',
      },
    },
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'cluster-info', namespace: 'kube-public' },
      data: { kubeconfig: 'apiVersion: v1\nkind: Config\n' },
    },
    role('lab-bootstrap', 'system:node-bootstrapper', 'system:bootstrappers'),
    role('lab-approve', `${requests}:nodeclient`, 'system:bootstrappers'),
    role('lab-renew', `${requests}:selfnodeclient`, 'system:nodes'),
  ];
}
