/**
 * Secrets of type kubernetes.io/service-account-token: who makes one that names an account gets a token of it, which
 * lasts as long as the secret. Source: upstream's tokens_controller and pkg/serviceaccount/legacy.go.
 */
import type { Secret, ServiceAccount } from 'kubernetes-types/core/v1';

export const TOKEN_SECRET_TYPE = 'kubernetes.io/service-account-token';
const NAME = 'kubernetes.io/service-account.name';
const UID = 'kubernetes.io/service-account.uid';

export type TokenSecretPlan =
  | { readonly kind: 'none' }
  /** Its account is gone, or another one of the same name has come. */
  | { readonly kind: 'delete' }
  | { readonly kind: 'update'; readonly secret: Secret };

export interface TokenSecretFacts {
  readonly caPem: string;
  /** Signs the claims of a token. */
  readonly sign: (claims: Readonly<Record<string, string>>) => string;
}

/** The name of the account that a secret is for; undefined when it is none of these. */
export function accountOf(secret: Secret): string | undefined {
  const name = secret.metadata?.annotations?.[NAME];
  return secret.type === TOKEN_SECRET_TYPE && name !== '' ? name : undefined;
}

/** `account`: the one that the secret names, as it is now. */
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

/** The account without its mention of a secret that is gone; undefined: it mentions none. */
export function withoutSecret(account: ServiceAccount, secret: string): ServiceAccount | undefined {
  const left = account.secrets?.filter(({ name }) => name !== secret);
  return left === undefined || left.length === account.secrets?.length ? undefined : { ...account, secrets: left };
}

/** Of ASCII text. */
const base64 = (text: string): string => btoa(text);
