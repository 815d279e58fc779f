/** Clients that exist in every cluster. Source: openshift/cluster-authentication-operator and openshift/oc. */

import { isApiError } from '../../api/meta/status.ts';
import type { LoginObjects } from '../../apiserver/server/login-port.ts';
import type { Route } from '../../network/router/kinds/routes/types.ts';
import type { OAuthClient } from './kinds/oauth/types.ts';

export const CLIENTS = 'oauthclients.oauth.openshift.io';
const ROUTES = 'routes.route.openshift.io';
const CONSOLE_NAMESPACE = 'openshift-console';
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

/** Host of the console's route. Undefined when the cluster has no console. */
function consoleHost(objects: LoginObjects): string | undefined {
  const host = objects.get<Route>(ROUTES, CONSOLE_CLIENT, CONSOLE_NAMESPACE)?.spec?.host ?? '';
  return host === '' ? undefined : host;
}

/**
 * Whether a request to exchange a code is from this server's own console. It has no secret, because its code is public;
 * the proof key is required instead.
 */
export const isOwnConsole = (id: string, secret: string, redirect: string, origin: string | undefined): boolean =>
  id === CONSOLE_CLIENT && secret === '' && origin !== undefined && redirect === consoleCallback(origin);

export interface ConsoleClientOptions {
  readonly domain: string;
  /** This server's URL if it serves the console itself. */
  readonly address: string | undefined;
  readonly newSecret: () => string;
}

/**
 * Creates the client of the console: for the one that this server has, and for one with a route. Without a console, a
 * client whose only redirect is the default one is deleted, because earlier releases created it for a host without an
 * owner. The secret is for a console with a route; this server's own console has none and must send a proof key.
 */
export async function ensureConsoleClient(objects: LoginObjects, options: ConsoleClientOptions): Promise<void> {
  const { domain, address, newSecret } = options;
  const host = consoleHost(objects);
  const present = objects.get<OAuthClient>(CLIENTS, CONSOLE_CLIENT);
  if (host === undefined) {
    const orphan = `https://console-openshift-console.${domain}/auth/callback`;
    if (present?.redirectURIs?.join() === orphan) {
      await objects.remove(CLIENTS, CONSOLE_CLIENT);
      await objects.freshen();
    } else if (present !== undefined || address === undefined) return;
  }
  if (objects.get<OAuthClient>(CLIENTS, CONSOLE_CLIENT) !== undefined || (host ?? address) === undefined) return;
  try {
    await objects.create<OAuthClient>(CLIENTS, {
      metadata: { name: CONSOLE_CLIENT },
      secret: newSecret(),
      grantMethod: 'auto',
      // The redirect of this server's own console is accepted for each of its names (`ownRedirects`).
      redirectURIs: [
        ...(host === undefined ? [] : [`https://${host}/auth/callback`]),
        ...(address === undefined ? [] : [consoleCallback(address)]),
      ],
    });
  } catch (error) {
    if (!isApiError(error, 'AlreadyExists')) throw error;
  }
  await objects.freshen();
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
