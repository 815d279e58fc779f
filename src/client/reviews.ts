/**
 * Identities and permissions of callers, as the API server judges them. Every server of a host that takes bearer tokens
 * uses these two functions: an identity without its extra would lose the scopes that narrow its token.
 */
import type { ApiClient } from './types.ts';

/** A caller with everything that authorization depends on. */
export interface Identity {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

interface TokenReview {
  readonly status?: {
    readonly authenticated?: boolean;
    readonly user?: {
      readonly username?: string;
      readonly uid?: string;
      readonly groups?: readonly string[];
      readonly extra?: Identity['extra'];
    };
  };
}

export type AccessAttributes =
  | { readonly resourceAttributes: Readonly<Record<string, string>> }
  | { readonly nonResourceAttributes: { readonly path: string; readonly verb: string } };

/** Undefined: the token is not accepted. Throws what the request throws. */
export async function reviewToken(client: ApiClient, token: string): Promise<Identity | undefined> {
  const review = await client.request<TokenReview>('POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    spec: { token },
  });
  const { authenticated, user } = review.status ?? {};
  if (authenticated !== true || user?.username === undefined) return undefined;
  const { username: name, uid, groups = [], extra } = user;
  return { name, groups, ...(uid === undefined ? {} : { uid }), ...(extra === undefined ? {} : { extra }) };
}

/** Whether the identity may do what the attributes describe. Throws what the request throws. */
export async function reviewAccess(
  client: ApiClient,
  { name, uid, groups, extra }: Identity,
  attributes: AccessAttributes,
): Promise<boolean> {
  const review = await client.request<{ readonly status?: { readonly allowed?: boolean } }>(
    'POST',
    '/apis/authorization.k8s.io/v1/subjectaccessreviews',
    {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: {
        user: name,
        groups,
        ...(uid === undefined ? {} : { uid }),
        ...(extra === undefined ? {} : { extra }),
        ...attributes,
      },
    },
  );
  return review.status?.allowed === true;
}
