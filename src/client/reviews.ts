/**
 * Authentication and authorization of callers by the API server. Every server on a host that accepts bearer tokens uses
 * these functions. They keep the user's `extra` attributes, because these contain the scopes that restrict the token.
 */
import type { ApiClient } from './types.ts';

/** A caller with all attributes that authorization depends on. */
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

/** Identity of a token's user; undefined if the token is invalid. Rejects if the request fails. */
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

/** Whether the identity may perform the action. Rejects if the request fails. */
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
