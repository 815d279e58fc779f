/**
 * Publishes the cluster's CA in every namespace, for pods that use the API. Source: KEP-1205, upstream's
 * rootcacertpublisher.
 */
import type { ConfigMap, Namespace } from '../../../api/generated/core/v1.ts';

export const ROOT_CA_CONFIG_MAP = 'kube-root-ca.crt';
const KEY = 'ca.crt';
const DESCRIPTION = 'kubernetes.io/description';
const TEXT =
  'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal ' +
  'service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.';

export type RootCaPlan =
  | { readonly kind: 'none' }
  | { readonly kind: 'create'; readonly configMap: ConfigMap }
  | { readonly kind: 'update'; readonly configMap: ConfigMap };

export function planRootCa(
  namespace: Namespace | undefined,
  existing: ConfigMap | undefined,
  bundle: string,
): RootCaPlan {
  if (namespace === undefined || namespace.metadata?.deletionTimestamp !== undefined) return { kind: 'none' };
  if (existing === undefined) {
    return {
      kind: 'create',
      configMap: {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: {
          name: ROOT_CA_CONFIG_MAP,
          namespace: namespace.metadata?.name ?? '',
          annotations: { [DESCRIPTION]: TEXT },
        },
        data: { [KEY]: bundle },
      },
    };
  }
  const data = existing.data ?? {};
  const isRight =
    Object.keys(data).length === 1 &&
    data[KEY] === bundle &&
    existing.metadata?.annotations?.[DESCRIPTION] !== undefined;
  if (isRight) return { kind: 'none' };
  return {
    kind: 'update',
    configMap: {
      ...existing,
      metadata: { ...existing.metadata, annotations: { ...existing.metadata?.annotations, [DESCRIPTION]: TEXT } },
      data: { [KEY]: bundle },
    },
  };
}
