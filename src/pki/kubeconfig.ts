/** Creates kubeconfigs. Their entries are named as in OKD: cluster `host-8443`, user `system:admin/host-8443`. */
import { stringify } from 'yaml';

export interface KubeconfigOptions {
  /** URL such as `https://host:8443`. */
  readonly server: string;
  readonly caPem: string;
  readonly user: string;
  /** PEM text to embed, or absolute paths of files that are rotated, or a bearer token. */
  readonly client:
    | { readonly certPem: string; readonly keyPem: string }
    | { readonly certFile: string; readonly keyFile: string }
    | { readonly token: string };
  /** Namespace of the context. Default: 'default'. */
  readonly namespace?: string;
}

export function createKubeconfig(options: KubeconfigOptions): string {
  const host = new URL(options.server).host.replaceAll('.', '-').replaceAll(':', '-').replaceAll(/[[\]]/g, '');
  const user = `${options.user}/${host}`;
  const namespace = options.namespace ?? 'default';
  const context = `${namespace}/${host}/${options.user}`;
  return stringify(
    {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        { name: host, cluster: { 'certificate-authority-data': base64(options.caPem), server: options.server } },
      ],
      users: [
        {
          name: user,
          user: credentialsOf(options.client),
        },
      ],
      contexts: [{ name: context, context: { cluster: host, namespace, user } }],
      'current-context': context,
      preferences: {},
    },
    { lineWidth: 0 },
  );
}

const base64 = (text: string): string => Buffer.from(text, 'utf8').toString('base64');

function credentialsOf(client: KubeconfigOptions['client']): Record<string, string> {
  if ('token' in client) return { token: client.token };
  return 'certPem' in client
    ? { 'client-certificate-data': base64(client.certPem), 'client-key-data': base64(client.keyPem) }
    : { 'client-certificate': client.certFile, 'client-key': client.keyFile };
}
