/** Clients that exist in every cluster. Source: openshift/cluster-authentication-operator and openshift/oc. */

import { isApiError } from '../../../api/meta/status.ts';
import type { LoginObjects } from '../../../apiserver/server/login-port.ts';
import type { Route } from '../../../network/router/kinds/routes/types.ts';
import { CONSOLE_NAME, CONSOLE_NAMESPACE, consoleHost, MANAGED_LABEL } from '../../console-route/core/plan.ts';
import type { OAuthClient } from '../kinds/oauth/types.ts';

export const CLIENTS = 'oauthclients.oauth.openshift.io';
const ROUTES = 'routes.route.openshift.io';
export const CONSOLE_CLIENT = 'console';
export const BROWSER_CLIENT = 'openshift-browser-client';
export const CHALLENGING_CLIENT = 'openshift-challenging-client';

/** Redirect paths of this server's own clients, valid for every name of this server. */
const OWN_PATHS: ReadonlyMap<string, string> = new Map([
  [BROWSER_CLIENT, '/oauth/token/display'],
  [CHALLENGING_CLIENT, '/oauth/token/implicit'],
  [CONSOLE_CLIENT, '/console/callback'],
]);

/** Redirect of this server's own console. */
export const consoleCallback = (origin: string): string => `${origin}/console/callback`;

/** Redirect of the request's own server, accepted in addition to the registered redirects. */
export function ownRedirects(client: OAuthClient, origin: string | undefined): readonly string[] {
  const path = OWN_PATHS.get(client.metadata?.name ?? '');
  return path === undefined || origin === undefined ? [] : [`${origin}${path}`];
}

/** `address`: this server's URL. `secret`: secret of the browser client when it is created. */
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

/** Route of the console. `isOwn`: it leads to the console of the API servers. Undefined without a route. */
function consoleRoute(objects: LoginObjects): { readonly host: string; readonly isOwn: boolean } | undefined {
  const route = objects.get<Route>(ROUTES, CONSOLE_NAME, CONSOLE_NAMESPACE);
  const host = route?.spec?.host ?? '';
  return host === '' ? undefined : { host, isOwn: route?.metadata?.labels?.[MANAGED_LABEL] === 'true' };
}

/**
 * Whether a request to exchange a code is from this server's own console. It has no secret, because its code is public;
 * the proof key is required instead.
 */
export const isOwnConsole = (id: string, secret: string, redirect: string, origin: string | undefined): boolean =>
  id === CONSOLE_CLIENT && secret === '' && origin !== undefined && redirect === consoleCallback(origin);

export interface ConsoleClientOptions {
  readonly domain: string;
  /** This server's URL. */
  readonly address: string;
  /** Whether this server serves the console itself. */
  readonly isServed: boolean;
  readonly newSecret: () => string;
}

/**
 * Maintains the client of the console: for the one that this server has, and for one with a route. Redirects of a
 * console that does not exist any more are removed, because their host may get another owner. The secret is for a
 * console with pods; this server's own console has none and must send a proof key.
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

/** Redirects that the client must have. `present`: those that it has; undefined if there is no client. */
function consoleRedirects(
  present: readonly string[] | undefined,
  route: ReturnType<typeof consoleRoute>,
  { domain, address, isServed }: ConsoleClientOptions,
): readonly string[] {
  const usual = `https://${consoleHost(domain)}`;
  const byRoute = isServed && route?.isOwn === true ? consoleCallback(`https://${route.host}`) : undefined;
  const stale = [
    // Earlier releases created this redirect for a host without an owner.
    ...(route === undefined && present?.length === 1 ? [`${usual}/auth/callback`] : []),
    ...(isServed ? [] : [consoleCallback(address)]),
    ...(byRoute === consoleCallback(usual) ? [] : [consoleCallback(usual)]),
  ];
  const kept = present?.filter((each) => !stale.includes(each)) ?? [];
  // The redirect of this server's own console is accepted for each of its names (`ownRedirects`).
  const first = [
    ...(route === undefined || route.isOwn ? [] : [`https://${route.host}/auth/callback`]),
    ...(isServed ? [consoleCallback(address)] : []),
  ];
  const wanted = [...(kept.length === 0 ? first : kept), ...(byRoute === undefined ? [] : [byRoute])];
  return [...new Set(wanted)];
}

/** Creates missing clients, and adds this server's redirects to those of the other servers. */
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
