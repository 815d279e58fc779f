/**
 * OAuth server in the process of the API server: `/oauth/…`, `/login`, `/logout` and its metadata. Source:
 * openshift/oauth-server pkg/oauthserver; RFC 6749, RFC 8414.
 */
import type { Secret } from '../../api/generated/core/v1.ts';
import { isApiError } from '../../api/meta/status.ts';
import type { ConnectionInfo, HttpRequest, HttpResponse } from '../../apiserver/port.ts';
import type { LoginObjects, LoginServer } from '../../apiserver/server/login-port.ts';
import type { Clock, RandomSource, Timer } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import {
  type AuthorizeRequest,
  grant,
  needsConsent,
  readRequest,
  recordConsent,
  refuse,
} from './authorization/authorize.ts';
import {
  BROWSER_CLIENT,
  CLIENTS,
  CONSOLE_CLIENT,
  ensureClients,
  ensureConsoleClient,
} from './authorization/clients.ts';
import { answerToken, exchangeCode } from './authorization/exchange.ts';
import { safePath } from './authorization/redirects.ts';
import { TokenIssuer } from './authorization/tokens.ts';
import {
  basicCredentials,
  header,
  readForm,
  redirect,
  sendError,
  sendJson,
  sendPage,
  type Visit,
  visitOf,
} from './http.ts';
import type { OAuthClient } from './kinds/oauth/types.ts';
import { consolePaths } from './login/console.ts';
import { ConsoleLinks, LINK_SECONDS } from './login/console-links.ts';
import { FailureLimits } from './login/limits.ts';
import { answerLogin, answerLogout, answerOpenId, checkPassword } from './login/login.ts';
import { formToken, isOwnForm, sessionUser } from './login/session.ts';
import { displayConfirmation, grantPage, linkPage, messagePage, tokenPage } from './pages.ts';
import type { LoginPorts } from './port.ts';
import { Discoveries } from './providers/discovery.ts';
import { type LoginUser, MappingError } from './providers/mapping.ts';
import { BOOTSTRAP_USER, Providers } from './providers/providers.ts';
import { fromProxy, proxyUrl } from './providers/request-header.ts';
import type { IdentityProvider } from './types.ts';

const METADATA = '/.well-known/oauth-authorization-server';
const SESSION_SECRET = 'hyperedge-oauth-session';
const SWEEP_MS = 600_000;
const SCOPES = ['user:check-access', 'user:full', 'user:info', 'user:list-projects', 'user:list-scoped-projects'];

export interface OAuthServerOptions {
  readonly ports: LoginPorts;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Providers from the bootstrap file. */
  readonly identityProviders: readonly IdentityProvider[];
  /** This server's URL, without a path. */
  readonly address: string;
  /** Domain of routes, for the console's client. */
  readonly domain: string;
  /** Whether this server has the web console. Default: false. */
  readonly console?: boolean;
}

/** Context shared by the pages. */
export interface OAuthRoom {
  readonly objects: LoginObjects;
  readonly ports: LoginPorts;
  readonly providers: Providers;
  readonly issuer: TokenIssuer;
  readonly limits: FailureLimits;
  readonly log: Log;
  readonly clock: Clock;
  readonly discoveries: Discoveries;
  /** One-time links to the console. */
  readonly links: ConsoleLinks;
  /** Requests waiting for an OpenID provider. */
  readonly openIdLogins: Set<Visit>;
  /** Returns 32 random bytes in base64url. */
  readonly random: () => string;
  /** Key that signs sessions, shared by all servers. Throws before it exists. */
  key(): Uint8Array;
}

type Handler = (visit: Visit) => Promise<void> | void;

export function createOAuthServer(objects: LoginObjects, options: OAuthServerOptions): LoginServer {
  return new OAuthServer(objects, options);
}

class OAuthServer implements LoginServer {
  readonly #options: OAuthServerOptions;
  readonly #room: OAuthRoom;
  readonly #paths: ReadonlyMap<string, Handler>;
  #sweep: Timer | undefined;
  #stopped = false;

  constructor(objects: LoginObjects, options: OAuthServerOptions) {
    this.#options = options;
    const { ports, log, clock, random, identityProviders } = options;
    const providers = new Providers({ objects, ports, log, configured: identityProviders });
    const newSecret = (): string => Buffer.from(random.bytes(32)).toString('base64url');
    this.#room = {
      objects,
      ports,
      providers,
      issuer: new TokenIssuer(objects, random, () => providers.configuration),
      limits: new FailureLimits(() => clock.monotonicMs()),
      log,
      clock,
      discoveries: new Discoveries(ports.web, clock),
      links: new ConsoleLinks(newSecret, () => clock.monotonicMs()),
      openIdLogins: new Set(),
      random: newSecret,
      key: () => sessionKey(objects),
    };
    this.#paths = new Map<string, Handler>([
      [METADATA, (visit) => this.#metadata(visit)],
      ['/oauth/authorize', (visit) => this.#authorize(visit)],
      ['/oauth/authorize/approve', (visit) => this.#approve(visit)],
      ['/oauth/token', (visit) => answerToken(visit, this.#exchange())],
      ['/oauth/token/request', (visit) => this.#requestToken(visit)],
      ['/oauth/token/display', (visit) => this.#displayToken(visit)],
      ['/oauth/token/implicit', (visit) => sendPage(visit, 200, implicitPage)],
      ['/login', (visit) => answerLogin(this.#room, visit)],
      ['/logout', answerLogout],
      ...(options.console === true ? consolePaths(this.#room) : []),
    ]);
  }

  handles(path: string): boolean {
    return this.#paths.has(path) || path.startsWith('/login/') || path.startsWith('/oauth2callback/');
  }

  async answer(request: HttpRequest, response: HttpResponse, connection: ConnectionInfo): Promise<void> {
    const visit = visitOf(request, response, connection);
    const { path } = visit;
    await this.#room.objects.freshen();
    if (path.startsWith('/login/')) return answerOpenId(this.#room, visit, 'begin');
    if (path.startsWith('/oauth2callback/')) return answerOpenId(this.#room, visit, 'finish');
    await this.#paths.get(path)?.(visit);
  }

  async prepare(): Promise<void> {
    const { address, log, clock } = this.#options;
    const { objects, random, issuer } = this.#room;
    await objects.freshen();
    await ensureSessionKey(objects, random());
    await ensureClients(objects, address, random);
    await this.#ensureConsoleClient();
    const again = (): void => {
      if (this.#stopped) return;
      this.#sweep = clock.setTimer(SWEEP_MS, () => {
        issuer
          .sweep(clock.nowMs())
          .catch((error: unknown) => log.warn('cannot delete expired tokens', { error: messageOf(error) }))
          .finally(again);
      });
    };
    this.#sweep?.cancel();
    again();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#sweep?.cancel();
    await this.#options.ports.passwords.stop();
  }

  async consoleLink(): Promise<{ readonly url: string; readonly seconds: number } | undefined> {
    const { objects, links } = this.#room;
    const { address, console } = this.#options;
    if (console !== true) return undefined;
    await objects.freshen();
    const admin = objects.bootstrapUser();
    if (admin === undefined) return undefined;
    const secret = links.issue({ name: BOOTSTRAP_USER, uid: admin.uid });
    // Browsers do not send the fragment, so the secret is in no log and no Referer header.
    return { url: `${address}/console/#login=${secret}`, seconds: LINK_SECONDS };
  }

  #ensureConsoleClient(): Promise<void> {
    const { address, domain, console } = this.#options;
    const { objects, random } = this.#room;
    return ensureConsoleClient(objects, { domain, address, isServed: console === true, newSecret: random });
  }

  #exchange() {
    const { objects, issuer, log, clock } = this.#room;
    return { objects, issuer, log, nowMs: () => clock.nowMs() };
  }

  #metadata(visit: Visit): void {
    const issuer = visit.origin ?? this.#options.address;
    sendJson(visit, 200, {
      issuer,
      authorization_endpoint: `${issuer}/oauth/authorize`,
      token_endpoint: `${issuer}/oauth/token`,
      scopes_supported: SCOPES,
      response_types_supported: ['code', 'token'],
      grant_types_supported: ['authorization_code', 'implicit'],
      code_challenge_methods_supported: ['S256'],
    });
  }

  async #authorize(visit: Visit): Promise<void> {
    if (visit.request.method !== 'GET') return sendError(visit, 405, 'invalid_request', 'use GET', { allow: 'GET' });
    const { objects, issuer } = this.#room;
    // The console may have been installed after this server started.
    if (visit.query.get('client_id') === CONSOLE_CLIENT) await this.#ensureConsoleClient();
    const request = readRequest(visit, objects);
    if (request === undefined) return;
    const user = await this.#identify(visit, request);
    if (user === undefined) return;
    if (!needsConsent(objects, request, user)) return grant(visit, request, user, issuer);
    if (request.client.respondWithChallenges === true) {
      refuse(visit, request, 'access_denied', 'the user has not granted the scopes to the client');
      return;
    }
    const { csrf, headers } = formToken(visit, this.#room.random);
    const { scopes, client } = request;
    const then = `${visit.path}?${visit.query.toString()}`;
    sendPage(visit, 200, grantPage({ client: client.metadata?.name ?? '', scopes, then, csrf }), headers);
  }

  /** User of the request. Undefined after a response was sent: a challenge or the login page. */
  async #identify(visit: Visit, { client }: AuthorizeRequest): Promise<LoginUser | undefined> {
    const room = this.#room;
    const known = sessionUser(visit, room.key(), room.objects, room.clock.nowMs());
    if (known !== undefined) return known;
    const proxied = await this.#fromProxy(visit);
    if (proxied !== undefined) return proxied;
    const proxy = room.providers.all.find(({ requestHeader }) => requestHeader !== undefined)?.requestHeader;
    const { challengeURL = '', loginURL = '' } = proxy ?? {};
    const withPasswords = room.providers.takePasswords;
    if (client.respondWithChallenges === true) {
      if (challengeURL !== '' && !withPasswords) redirect(visit, proxyUrl(challengeURL, visit));
      else return this.#challenge(visit);
      return undefined;
    }
    const others = withPasswords || room.providers.all.some(({ openID }) => openID !== undefined);
    if (loginURL !== '' && !others) redirect(visit, proxyUrl(loginURL, visit));
    else
      redirect(
        visit,
        `/login?${new URLSearchParams([['then', `${visit.path}?${visit.query.toString()}`]]).toString()}`,
      );
    return undefined;
  }

  async #fromProxy(visit: Visit): Promise<LoginUser | undefined> {
    const { providers, ports, log } = this.#room;
    for (const provider of providers.all) {
      const { requestHeader } = provider;
      if (requestHeader === undefined) continue;
      try {
        const ca = await providers.text('configmaps', requestHeader.ca, requestHeader.caFile, 'ca.crt');
        const identity = fromProxy(visit, provider, ca, ports);
        if (identity !== undefined) return await providers.userOf(provider, identity);
      } catch (error) {
        log.warn(error instanceof MappingError ? 'login refused' : 'identity provider failed', {
          provider: provider.name,
          error: messageOf(error),
        });
      }
    }
    return undefined;
  }

  /** Checks Basic credentials of clients that send X-CSRF-Token, which a page of another site cannot send. */
  async #challenge(visit: Visit): Promise<LoginUser | undefined> {
    if ((header(visit, 'x-csrf-token') ?? '') === '') {
      const warning = '199 hyperedge "A non-empty X-CSRF-Token header is required to receive basic-auth challenges"';
      sendError(visit, 401, 'access_denied', 'a non-empty X-CSRF-Token header is required', { warning });
      return undefined;
    }
    const given = basicCredentials(visit);
    const outcome =
      given === undefined
        ? { failed: true as const }
        : await checkPassword(this.#room, visit, given.user, given.secret);
    if ('user' in outcome) return outcome.user;
    if ('waitSeconds' in outcome)
      sendError(visit, 429, 'access_denied', 'too many failed logins', { 'retry-after': String(outcome.waitSeconds) });
    else if ('busy' in outcome) sendError(visit, 503, 'temporarily_unavailable', 'the login cannot be checked now');
    else
      sendError(visit, 401, 'access_denied', 'user name or password is wrong', {
        'www-authenticate': 'Basic realm="openshift"',
      });
    return undefined;
  }

  /** Handles the user's decision about the scopes of a client. */
  async #approve(visit: Visit): Promise<void> {
    const { objects, issuer, key, clock } = this.#room;
    const form = visit.request.method === 'POST' ? await readForm(visit) : undefined;
    const user = sessionUser(visit, key(), objects, clock.nowMs());
    if (form === undefined || user === undefined || !isOwnForm(visit, form))
      return sendPage(visit, 403, messagePage('Authorize access', 'The form has expired. Go back and try again.'));
    const then = safePath(form.get('then'));
    const mark = then.indexOf('?');
    const request = readRequest(visit, objects, new URLSearchParams(mark < 0 ? '' : then.slice(mark + 1)));
    if (request === undefined) return;
    if (form.get('approve') !== 'yes') {
      refuse(visit, request, 'access_denied', 'the user denied the request');
      return;
    }
    await recordConsent(objects, request, user);
    await grant(visit, request, user, issuer);
  }

  /** Redirects the browser through a login to the page that shows a token. */
  #requestToken(visit: Visit): void {
    const query = new URLSearchParams({
      client_id: BROWSER_CLIENT,
      redirect_uri: `${visit.origin ?? this.#options.address}/oauth/token/display`,
      response_type: 'code',
    });
    redirect(visit, `/oauth/authorize?${query.toString()}`);
  }

  async #displayToken(visit: Visit): Promise<void> {
    const failed = (text: string): void =>
      sendPage(visit, 400, linkPage('API token', text, '/oauth/token/request', 'Request another token'));
    if (visit.request.method !== 'POST') {
      const code = visit.query.get('code') ?? '';
      if (code === '') return failed(`No code: ${visit.query.get('error') ?? 'request a token first'}.`);
      const { csrf, headers } = formToken(visit, this.#room.random);
      return sendPage(visit, 200, displayConfirmation(code, visit.query.get('state') ?? '', csrf), headers);
    }
    const form = await readForm(visit);
    if (form === undefined || !isOwnForm(visit, form)) return failed('The form has expired.');
    const client = this.#room.objects.get<OAuthClient>(CLIENTS, BROWSER_CLIENT);
    if (client === undefined) return failed(`OAuthClient ${BROWSER_CLIENT} is missing; restart the API server.`);
    const server = visit.origin ?? this.#options.address;
    const issued = await exchangeCode(this.#exchange(), {
      client,
      code: form.get('code') ?? '',
      redirect: `${server}/oauth/token/display`,
      verifier: '',
    });
    if (issued === undefined) return failed('The code is unknown, used or expired.');
    sendPage(visit, 200, tokenPage(issued.token, server));
  }
}

const implicitPage = linkPage(
  'API token',
  'The token of an implicit grant is in the fragment of the address of this page, for programs that asked for it.',
  '/oauth/token/request',
  'Request a token to copy',
);

function sessionKey(objects: LoginObjects): Uint8Array {
  const secret = objects.get<Secret>('secrets.', SESSION_SECRET, 'kube-system');
  const key = Buffer.from(secret?.data?.['key'] ?? '', 'base64');
  if (key.length < 32)
    throw new Error(`secret kube-system/${SESSION_SECRET}: has no key; delete it and restart the API server`);
  return key;
}

async function ensureSessionKey(objects: LoginObjects, key: string): Promise<void> {
  if (objects.get<Secret>('secrets.', SESSION_SECRET, 'kube-system') !== undefined) return;
  try {
    const data = { key: Buffer.from(key).toString('base64') };
    await objects.create<Secret>('secrets.', { metadata: { name: SESSION_SECRET, namespace: 'kube-system' }, data });
  } catch (error) {
    if (!isApiError(error, 'AlreadyExists')) throw error;
  }
}
