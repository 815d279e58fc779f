/**
 * Signs the kubeconfig in `kube-public/cluster-info` with each bootstrap token, so that a joining host can verify it.
 * Source: k8s.io/kubernetes/pkg/controller/bootstrap/bootstrapsigner.go; detached JWS of RFC 7515 appendix F.
 */
import { CompactSign } from 'jose';
import type { ConfigMap, Secret } from '../../../api/generated/core/v1.ts';
import { resources } from '../../../api/resources.ts';
import type { ControllerSpec } from '../../framework/framework.ts';
import {
  CLUSTER_INFO,
  deleteInMs,
  planSignatures,
  type SigningToken,
  signingToken,
  TOKEN_NAMESPACE,
  TOKEN_TYPE,
} from './plan.ts';

const KEY = `${CLUSTER_INFO.namespace}/${CLUSTER_INFO.name}`;

export const bootstrapSignerController: ControllerSpec = {
  name: 'bootstrapsigner',
  reads: [resources.secrets, resources.configMaps],
  writes: [resources.configMaps],
  prepare: (handle) => {
    const secrets = handle.informer(resources.secrets, {
      namespace: TOKEN_NAMESPACE,
      fieldSelector: `type=${TOKEN_TYPE}`,
    });
    const maps = handle.informer(resources.configMaps, {
      namespace: CLUSTER_INFO.namespace,
      fieldSelector: `metadata.name=${CLUSTER_INFO.name}`,
    });
    const client = handle.writer(resources.configMaps);
    return (scope) => {
      const queue = scope.queue(async () => {
        const map = maps.get(KEY);
        if (map === undefined) return;
        const { nowMs } = handle.plan();
        const signed = await planSigned(map, secrets.list(), nowMs);
        if (signed !== undefined) await client.update(signed);
        const ends = secrets.list().flatMap((secret) => deleteInMs(secret, nowMs) ?? []);
        const next = ends.filter((inMs) => inMs > 0);
        if (next.length > 0) queue.addAfter(KEY, Math.min(...next));
      }, 1);
      const wake = (_: Secret | ConfigMap): void => queue.add(KEY);
      scope.onChange(secrets, { added: wake, updated: wake, deleted: wake });
      scope.onChange(maps, { added: wake, updated: wake });
    };
  },
};

async function planSigned(map: ConfigMap, secrets: readonly Secret[], nowMs: number): Promise<ConfigMap | undefined> {
  const content = map.data?.['kubeconfig'];
  const tokens = content === undefined ? [] : secrets.flatMap((secret) => signingToken(secret, nowMs) ?? []);
  const signatures = await Promise.all(
    tokens.map(async (token) => [token.id, await detachedSignature(content ?? '', token)] as const),
  );
  return planSignatures(map, new Map(signatures));
}

/** JWS of the content without the payload, in the form `header..signature`. */
async function detachedSignature(content: string, { id, secret }: SigningToken): Promise<string> {
  const text = new TextEncoder();
  const compact = await new CompactSign(text.encode(content))
    .setProtectedHeader({ alg: 'HS256', kid: id })
    .sign(text.encode(secret));
  const [header = '', , signature = ''] = compact.split('.');
  return `${header}..${signature}`;
}
