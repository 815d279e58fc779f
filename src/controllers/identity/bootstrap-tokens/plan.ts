/**
 * Bootstrap token secrets: their validity and expiration, and the signatures of the config map
 * `kube-public/cluster-info`. Source: k8s.io/kubernetes/pkg/controller/bootstrap; docs "Authenticating with bootstrap
 * tokens".
 */
import type { ConfigMap, Secret } from '../../../api/generated/core/v1.ts';
import { decodeBase64 } from '../../../api/validation/base64.ts';

export const TOKEN_TYPE = 'bootstrap.kubernetes.io/token';
export const TOKEN_NAMESPACE = 'kube-system';
export const CLUSTER_INFO = { namespace: 'kube-public', name: 'cluster-info' } as const;
export const SIGNATURE_PREFIX = 'jws-kubeconfig-';
const NAME_PREFIX = 'bootstrap-token-';
const ID = /^[a-z0-9]{6}$/;
const SECRET = /^[a-z0-9]{16}$/;

/** A field of a token's secret; '' when it is missing or not base64. */
export function tokenField(secret: Secret, name: string): string {
  const data = secret.data ?? {};
  return Object.hasOwn(data, name) ? (decodeBase64(data[name] ?? '') ?? '') : '';
}

/** Expiration time of a token; undefined if it never expires. A token with an invalid time counts as expired. */
export function expiresAtMs(secret: Secret): number | undefined {
  const text = tokenField(secret, 'expiration');
  if (text === '') return undefined;
  const parsed = Date.parse(text);
  return Number.isNaN(parsed) ? 0 : parsed;
}

/**
 * Milliseconds until the token must be deleted; 0 if it must be deleted now. Undefined if the secret is not a token or
 * never expires.
 */
export function deleteInMs(secret: Secret, nowMs: number): number | undefined {
  if (secret.type !== TOKEN_TYPE || secret.metadata?.deletionTimestamp !== undefined) return undefined;
  const expires = expiresAtMs(secret);
  return expires === undefined ? undefined : Math.max(0, expires - nowMs);
}

export interface SigningToken {
  readonly id: string;
  readonly secret: string;
}

/** The token in the secret; undefined if it is invalid or its usages do not include signing. */
export function signingToken(secret: Secret, nowMs: number): SigningToken | undefined {
  const id = tokenField(secret, 'token-id');
  const key = tokenField(secret, 'token-secret');
  const valid =
    secret.type === TOKEN_TYPE &&
    secret.metadata?.deletionTimestamp === undefined &&
    ID.test(id) &&
    SECRET.test(key) &&
    secret.metadata?.name === NAME_PREFIX + id &&
    tokenField(secret, 'usage-bootstrap-signing') === 'true' &&
    deleteInMs(secret, nowMs) !== 0;
  return valid ? { id, secret: key } : undefined;
}

/** Returns the config map with exactly these signatures, keyed by token ID; undefined if nothing changes. */
export function planSignatures(map: ConfigMap, signatures: ReadonlyMap<string, string>): ConfigMap | undefined {
  const others = Object.entries(map.data ?? {}).filter(([name]) => !name.startsWith(SIGNATURE_PREFIX));
  const signed = [...signatures].map(([id, signature]) => [SIGNATURE_PREFIX + id, signature] as const);
  const data: Record<string, string> = Object.fromEntries([...others, ...signed]);
  const present = map.data ?? {};
  const same =
    Object.keys(present).length === Object.keys(data).length &&
    Object.entries(data).every(([name, value]) => present[name] === value);
  return same ? undefined : { ...map, data };
}
