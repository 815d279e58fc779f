/**
 * Secrets of type kubernetes.io/service-account-token: a secret that names an account gets a token of it, which is
 * valid as long as the secret exists. Source: upstream's tokens_controller and pkg/serviceaccount/legacy.go.
 */
import type { Secret, ServiceAccount } from '../../../api/generated/core/v1.ts';

export const TOKEN_SECRET_TYPE = 'kubernetes.io/service-account-token';
const NAME = 'kubernetes.io/service-account.name';
const UID = 'kubernetes.io/service-account.uid';

export type TokenSecretPlan =
  | { readonly kind: 'none' }
  /** The account was deleted or replaced by another account of the same name. */
  | { readonly kind: 'delete' }
  | { readonly kind: 'update'; readonly secret: Secret };

export interface TokenSecretFacts {
  readonly caPem: string;
  /** Signs the claims of a token. */
  readonly sign: (claims: Readonly<Record<string, string>>) => string;
}

/** Name of the account in a token secret; undefined for other secrets. */
export function accountOf(secret: Secret): string | undefined {
  const name = secret.metadata?.annotations?.[NAME];
  return secret.type === TOKEN_SECRET_TYPE && name !== '' ? name : undefined;
}

/** @param account The account that the secret names, read from the API server. */
export function planTokenSecret(
  secret: Secret,
  account: ServiceAccount | undefined,
  { caPem, sign }: TokenSecretFacts,
): TokenSecretPlan {
  const name = accountOf(secret);
  if (name === undefined || secret.metadata?.deletionTimestamp !== undefined) return { kind: 'none' };
  const { namespace = '', annotations = {} } = secret.metadata ?? {};
  const uid = account?.metadata?.uid ?? '';
  if (account === undefined || (annotations[UID] ?? uid) !== uid) return { kind: 'delete' };
  const data: Record<string, string> = { ...secret.data };
  const ca = base64(caPem);
  const complete =
    annotations[UID] === uid &&
    data['ca.crt'] === ca &&
    (data['namespace'] ?? '') !== '' &&
    (data['token'] ?? '') !== '';
  if (complete) return { kind: 'none' };
  data['ca.crt'] = ca;
  data['namespace'] ||= base64(namespace);
  data['token'] ||= base64(
    sign({
      iss: 'kubernetes/serviceaccount',
      'kubernetes.io/serviceaccount/namespace': namespace,
      'kubernetes.io/serviceaccount/secret.name': secret.metadata?.name ?? '',
      'kubernetes.io/serviceaccount/service-account.name': name,
      'kubernetes.io/serviceaccount/service-account.uid': uid,
      sub: `system:serviceaccount:${namespace}:${name}`,
    }),
  );
  const metadata = { ...secret.metadata, annotations: { ...annotations, [UID]: uid } };
  return { kind: 'update', secret: { ...secret, metadata, data } };
}

/** Returns the account without the reference to a deleted secret; undefined if it has none. */
export function withoutSecret(account: ServiceAccount, secret: string): ServiceAccount | undefined {
  const left = account.secrets?.filter(({ name }) => name !== secret);
  return left === undefined || left.length === account.secrets?.length ? undefined : { ...account, secrets: left };
}

/** @param text ASCII only. */
const base64 = (text: string): string => btoa(text);
