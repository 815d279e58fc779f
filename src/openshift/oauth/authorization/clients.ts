/** Clients that exist in every cluster. Source: openshift/cluster-authentication-operator and openshift/oc. */

import { isApiError } from '../../../api/meta/status.ts';
import type { LoginObjects } from '../../../apiserver/server/login-port.ts';
import type { Route } from '../../../network/router/kinds/routes/types.ts';
import { CONSOLE_NAME, CONSOLE_NAMESPACE, consoleHost, MANAGED_LABEL } from '../../console-route/core/plan.ts';
import type { OAuthClient } from '../kinds/oauth/types.ts';
import { isServiceAccountClient, serviceAccountClient } from './service-account-clients.ts';

export const CLIENTS = 'oauthclients.oauth.openshift.io';
const ROUTES = 'routes.route.openshift.io';
export const CONSOLE_CLIENT = 'console';
export const BROWSER_CLIENT = 'openshift-browser-client';
export const CHALLENGING_CLIENT = 'openshift-challenging-client';

/** Redirect paths of the clients that are part of this server. They are valid for every host name of this server. */
const OWN_PATHS: ReadonlyMap<string, string> = new Map([
  [BROWSER_CLIENT, '/oauth/token/display'],
  [CHALLENGING_CLIENT, '/oauth/token/implicit'],
  [CONSOLE_CLIENT, '/console/callback'],
]);

/** Redirect URI of the console that this server serves. */
export const consoleCallback = (origin: string): string => `${origin}/console/callback`;

/** The client with this ID: an OAuthClient, or a service account with redirect URIs. */
export const clientOf = (objects: LoginObjects, id: string): OAuthClient | undefined =>
  isServiceAccountClient(id) ? serviceAccountClient(objects, id) : objects.get<OAuthClient>(CLIENTS, id);

/** Redirect URI for the host name in the request. It is accepted in addition to the registered redirect URIs. */
export function ownRedirects(client: OAuthClient, origin: string | undefined): readonly string[] {
  const path = OWN_PATHS.get(client.metadata?.name ?? '');
  return path === undefined || origin === undefined ? [] : [`${origin}${path}`];
}

/**
 * Clients with the redirect URIs of this server. `address`: URL of this server. `secret`: secret for a new browser
 * client.
 */
function defaultClients(address: string, secret: string): readonly OAuthClient[] {
  return [
    {
      metadata: { name: BROWSER_CLIENT },
      secret,
      grantMethod: 'auto',
      redirectURIs: [`${address}/oauth/token/display`],
    },
    {
      metadata: { name: CHALLENGING_CLIENT },
      respondWithChallenges: true,
      grantMethod: 'auto',
      redirectURIs: [`${address}/oauth/token/implicit`],
    },
    {
      metadata: { name: 'openshift-cli-client' },
      grantMethod: 'auto',
      redirectURIs: ['http://127.0.0.1/callback', 'http://[::1]/callback'],
    },
  ];
}

/**
 * Route of the console; undefined if there is none. `isOwn`: whether the route leads to the console of the API servers.
 */
function consoleRoute(objects: LoginObjects): { readonly host: string; readonly isOwn: boolean } | undefined {
  const route = objects.get<Route>(ROUTES, CONSOLE_NAME, CONSOLE_NAMESPACE);
  const host = route?.spec?.host ?? '';
  return host === '' ? undefined : { host, isOwn: route?.metadata?.labels?.[MANAGED_LABEL] === 'true' };
}

/**
 * Whether a request to exchange a code is from the console that this server serves. This console has no secret, because
 * its code is public. It must send a PKCE verifier instead.
 */
export const isOwnConsole = (id: string, secret: string, redirect: string, origin: string | undefined): boolean =>
  id === CONSOLE_CLIENT && secret === '' && origin !== undefined && redirect === consoleCallback(origin);

export interface ConsoleClientOptions {
  readonly domain: string;
  /** URL of this server. */
  readonly address: string;
  /** Whether this server serves the console itself. */
  readonly isServed: boolean;
  readonly newSecret: () => string;
}

/**
 * Maintains the OAuth client of the console, for the console that this server serves and for a console behind a route.
 * Redirect URIs of a console that no longer exists are removed, because another owner may get their host. The secret is
 * for a console that runs in pods; the console that this server serves has none and must send a PKCE verifier.
 */
export async function ensureConsoleClient(objects: LoginObjects, options: ConsoleClientOptions): Promise<void> {
  const { newSecret } = options;
  const route = consoleRoute(objects);
  const present = objects.get<OAuthClient>(CLIENTS, CONSOLE_CLIENT);
  const redirectURIs = consoleRedirects(present?.redirectURIs, route, options);
  if (redirectURIs.join() === (present?.redirectURIs ?? []).join()) return;
  try {
    if (redirectURIs.length === 0) await objects.remove(CLIENTS, CONSOLE_CLIENT);
    else if (present !== undefined)
      await objects.update<OAuthClient>(CLIENTS, CONSOLE_CLIENT, (current) => ({
        ...current,
        redirectURIs: [...consoleRedirects(current.redirectURIs, route, options)],
      }));
    else
      await objects.create<OAuthClient>(CLIENTS, {
        metadata: { name: CONSOLE_CLIENT },
        secret: newSecret(),
        grantMethod: 'auto',
        redirectURIs: [...redirectURIs],
      });
  } catch (error) {
    if (!isApiError(error, 'AlreadyExists')) throw error;
  }
  await objects.freshen();
}

/** Redirect URIs that the client must have. `present`: its current ones; undefined if the client does not exist. */
function consoleRedirects(
  present: readonly string[] | undefined,
  route: ReturnType<typeof consoleRoute>,
  { domain, address, isServed }: ConsoleClientOptions,
): readonly string[] {
  const usual = `https://${consoleHost(domain)}`;
  const byRoute = isServed && route?.isOwn === true ? consoleCallback(`https://${route.host}`) : undefined;
  const stale = [
    // Earlier releases created this redirect URI even if no route owned its host.
    ...(route === undefined && present?.length === 1 ? [`${usual}/auth/callback`] : []),
    ...(isServed ? [] : [consoleCallback(address)]),
    ...(byRoute === consoleCallback(usual) ? [] : [consoleCallback(usual)]),
  ];
  const kept = present?.filter((each) => !stale.includes(each)) ?? [];
  // For the server's own console, one URI suffices: `ownRedirects` accepts every other host name of the server.
  const first = [
    ...(route === undefined || route.isOwn ? [] : [`https://${route.host}/auth/callback`]),
    ...(isServed ? [consoleCallback(address)] : []),
  ];
  const wanted = [...(kept.length === 0 ? first : kept), ...(byRoute === undefined ? [] : [byRoute])];
  return [...new Set(wanted)];
}

/** Creates missing clients. Adds the redirect URIs of this server to clients that other servers have created. */
export async function ensureClients(objects: LoginObjects, address: string, newSecret: () => string): Promise<void> {
  await objects.freshen();
  for (const client of defaultClients(address, newSecret())) {
    const name = client.metadata?.name ?? '';
    const present = objects.get<OAuthClient>(CLIENTS, name);
    if (present === undefined) {
      try {
        await objects.create<OAuthClient>(CLIENTS, client);
        continue;
      } catch (error) {
        if (!isApiError(error, 'AlreadyExists')) throw error;
      }
    }
    const missing = (known: OAuthClient): string[] =>
      OWN_PATHS.has(name)
        ? (client.redirectURIs ?? []).filter((each) => known.redirectURIs?.includes(each) !== true)
        : [];
    if (present !== undefined && missing(present).length === 0) continue;
    await objects.update<OAuthClient>(CLIENTS, name, (current) => ({
      ...current,
      redirectURIs: [...(current.redirectURIs ?? []), ...missing(current)],
    }));
  }
}
