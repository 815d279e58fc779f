/**
 * Service accounts as OAuth clients, which programs such as oauth-proxy use. Source: openshift/oauth-server
 * pkg/oauth/oauthserviceaccountclient.
 */

import type { ServiceAccount } from '../../../api/generated/core/v1.ts';
import type { LoginObjects } from '../../../apiserver/server/login-port.ts';
import type { Route } from '../../../network/router/kinds/routes/types.ts';
import type { OAuthClient } from '../kinds/oauth/types.ts';

const USER_PREFIX = 'system:serviceaccount:';
const ANNOTATIONS = 'serviceaccounts.openshift.io/';
const WANTS_CHALLENGES = `${ANNOTATIONS}oauth-want-challenges`;
const REDIRECT_URI = `${ANNOTATIONS}oauth-redirecturi.`;
const REDIRECT_REFERENCE = `${ANNOTATIONS}oauth-redirectreference.`;

/** Parts of a redirect URI. An annotation may set only some of them, and replaces those of a route. */
interface RedirectParts {
  readonly scheme?: string;
  readonly host?: string;
  readonly port?: string;
  readonly path?: string;
}

/** Groups: scheme, host, port, path. A host name with a wildcard does not match. */
const URI = /^(?:(https?):)?(?:\/\/([A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?)?([^?#*\s\\]*)$/;

export const isServiceAccountClient = (id: string): boolean => id.startsWith(USER_PREFIX);

/**
 * The client of the service account with this user name. Undefined if the account does not exist or has no redirect
 * URI. Its secrets are the tokens of the account, and its scopes are limited to the identity of the user and to roles
 * in its own namespace.
 */
export function serviceAccountClient(objects: LoginObjects, id: string): OAuthClient | undefined {
  const [namespace = '', name = '', ...rest] = id.slice(USER_PREFIX.length).split(':');
  if (namespace === '' || name === '' || rest.length > 0) return undefined;
  const account = objects.get<ServiceAccount>('serviceaccounts.', name, namespace);
  if (account === undefined) return undefined;
  const annotations = account.metadata?.annotations ?? {};
  const redirectURIs = redirectsOf(objects, namespace, annotations);
  if (redirectURIs.length === 0) return undefined;
  return {
    metadata: { name: id },
    grantMethod: 'prompt',
    respondWithChallenges: annotations[WANTS_CHALLENGES] === 'true',
    redirectURIs: [...redirectURIs],
    scopeRestrictions: [
      { literals: ['user:info', 'user:check-access'] },
      { clusterRole: { roleNames: ['*'], namespaces: [namespace], allowEscalation: true } },
    ],
  };
}

/**
 * Redirect URI of a request if it is one of the client's URIs or a path below one of them; otherwise undefined. A route
 * determines only the host, so the client chooses the path.
 */
export function acceptedServiceAccountRedirect(client: OAuthClient, requested: string | null): string | undefined {
  const registered = client.redirectURIs ?? [];
  if (requested === null || requested === '') return registered.length === 1 ? registered[0] : undefined;
  if (!URL.canParse(requested) || requested.includes('#') || /[\\\s\p{Cc}]/u.test(requested)) return undefined;
  const url = new URL(requested);
  // An encoded slash may become a separator at the client, which would leave the registered path.
  if (url.username !== '' || url.password !== '' || /%2f|%5c/i.test(url.pathname)) return undefined;
  const matches = registered.some((each) => {
    const known = new URL(each);
    const below = known.pathname.endsWith('/') ? known.pathname : `${known.pathname}/`;
    return url.origin === known.origin && (url.pathname === known.pathname || url.pathname.startsWith(below));
  });
  return matches ? requested : undefined;
}

function redirectsOf(
  objects: LoginObjects,
  namespace: string,
  annotations: Readonly<Record<string, string>>,
): readonly string[] {
  const found = new Set<string>();
  for (const [key, value] of Object.entries(annotations)) {
    if (!key.startsWith(REDIRECT_URI)) continue;
    // With a reference of the same name, the URI only replaces parts of the route's URI.
    if (annotations[`${REDIRECT_REFERENCE}${key.slice(REDIRECT_URI.length)}`] !== undefined) continue;
    add(found, partsOf(value));
  }
  for (const [key, value] of Object.entries(annotations)) {
    if (!key.startsWith(REDIRECT_REFERENCE)) continue;
    const replaced = annotations[`${REDIRECT_URI}${key.slice(REDIRECT_REFERENCE.length)}`];
    const parts = replaced === undefined ? {} : partsOf(replaced);
    const name = routeNameOf(value, namespace);
    const route = name === undefined ? undefined : objects.get<Route>('routes.route.openshift.io', name, namespace);
    if (parts === undefined || route === undefined) continue;
    for (const each of partsOfRoute(route)) add(found, { ...each, ...parts });
  }
  return [...found].sort();
}

function add(found: Set<string>, parts: RedirectParts | undefined): void {
  const { scheme = '', host = '', port, path = '' } = parts ?? {};
  if (scheme === '' || host === '') return;
  const text = `${scheme}://${host}${port === undefined ? '' : `:${port}`}${path.startsWith('/') ? '' : '/'}${path}`;
  if (URL.canParse(text)) found.add(new URL(text).href);
}

/** Undefined if the annotation is not a URI of `http` or `https`, or a part of one. */
function partsOf(text: string): RedirectParts | undefined {
  const match = URI.exec(text);
  if (match === null) return undefined;
  const names = ['scheme', 'host', 'port', 'path'] as const;
  const given = names.map((name, index) => [name, match[index + 1] ?? ''] as const);
  return Object.fromEntries(given.filter(([, part]) => part !== ''));
}

/** Hosts of the route that a router has admitted: another route of the same host has no right to it. */
function partsOfRoute({ spec, status }: Route): readonly RedirectParts[] {
  const scheme = spec?.tls === undefined ? 'http' : 'https';
  const path = spec?.path ?? '';
  const admitted = (status?.ingress ?? []).filter(({ conditions }) =>
    conditions?.some((condition) => condition.type === 'Admitted' && condition.status === 'True'),
  );
  const hosts = admitted.flatMap(({ host }) => (host === undefined || !/^[A-Za-z0-9._-]+$/.test(host) ? [] : [host]));
  return [...hosts.map((host) => ({ scheme, host, path })), ...(hosts.length === 0 ? [{ scheme, path }] : [])];
}

/** Name of the route in an OAuthRedirectReference; undefined for another kind, or another namespace. */
function routeNameOf(text: string, namespace: string): string | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof parsed !== 'object' || parsed === null || !('reference' in parsed)) return undefined;
  if (!('kind' in parsed) || parsed.kind !== 'OAuthRedirectReference') return undefined;
  const { reference } = parsed;
  if (typeof reference !== 'object' || reference === null) return undefined;
  const of: Readonly<Record<string, unknown>> = { ...reference };
  const { kind, name, group = 'route.openshift.io', namespace: own = namespace } = of;
  const isRoute = kind === 'Route' && (group === '' || group === 'route.openshift.io') && own === namespace;
  return isRoute && typeof name === 'string' && name !== '' ? name : undefined;
}
