/**
 * OAuth server within the API server: handles `/oauth/…`, `/login`, `/logout` and the metadata of the OAuth server.
 * Source: openshift/oauth-server pkg/oauthserver; RFC 6749, RFC 8414.
 */
import type { Secret } from '../../api/generated/core/v1.ts';
import { isApiError } from '../../api/meta/status.ts';
import type { ConnectionInfo, HttpRequest, HttpResponse } from '../../apiserver/port.ts';
import type { LoginObjects, LoginServer } from '../../apiserver/server/login-port.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource, Timer } from '../../base/time/clock.ts';
import {
  type AuthorizeRequest,
  grantAuthorization,
  needsConsent,
  readRequest,
  recordConsent,
  refuseAuthorization,
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
  type HttpCall,
  header,
  httpCallOf,
  readForm,
  redirect,
  sendError,
  sendJson,
  sendPage,
} from './http.ts';
import type { OAuthClient } from './kinds/oauth/types.ts';
import { consolePaths } from './login/console.ts';
import { ConsoleLinks, LINK_SECONDS } from './login/console-links.ts';
import { FailureLimits } from './login/failure-limits.ts';
import { answerLogout, checkPassword, handleLogin, handleOpenId } from './login/login.ts';
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
  /** URL of this server, without a path. */
  readonly address: string;
  /** Domain of routes, which determines the usual host of a console with a route. */
  readonly domain: string;
  /** Whether this server serves the web console. Default: false. */
  readonly console?: boolean;
}

/** Objects that all handlers share. */
export interface OAuthContext {
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
  /** Requests that wait for an OpenID provider. Their number is limited. */
  readonly openIdLogins: Set<HttpCall>;
  /** Returns 32 random bytes in base64url. */
  readonly random: () => string;
  /** Key that signs sessions. All servers share it. Throws while the key does not exist yet. */
  key(): Uint8Array;
}

type Handler = (call: HttpCall) => Promise<void> | void;

export function createOAuthServer(objects: LoginObjects, options: OAuthServerOptions): LoginServer {
  return new OAuthServer(objects, options);
}

class OAuthServer implements LoginServer {
  readonly #options: OAuthServerOptions;
  readonly #context: OAuthContext;
  readonly #paths: ReadonlyMap<string, Handler>;
  #sweep: Timer | undefined;
  #stopped = false;

  constructor(objects: LoginObjects, options: OAuthServerOptions) {
    this.#options = options;
    const { ports, log, clock, random, identityProviders } = options;
    const providers = new Providers({ objects, ports, log, configured: identityProviders });
    const newSecret = (): string => Buffer.from(random.bytes(32)).toString('base64url');
    this.#context = {
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
      [METADATA, (call) => this.#metadata(call)],
      ['/oauth/authorize', (call) => this.#authorize(call)],
      ['/oauth/authorize/approve', (call) => this.#approve(call)],
      ['/oauth/token', (call) => answerToken(call, this.#exchange())],
      ['/oauth/token/request', (call) => this.#requestToken(call)],
      ['/oauth/token/display', (call) => this.#displayToken(call)],
      ['/oauth/token/implicit', (call) => sendPage(call, 200, implicitPage)],
      ['/login', (call) => handleLogin(this.#context, call)],
      ['/logout', answerLogout],
      ...(options.console === true ? consolePaths(this.#context) : []),
    ]);
  }

  handles(path: string): boolean {
    return this.#paths.has(path) || path.startsWith('/login/') || path.startsWith('/oauth2callback/');
  }

  async answer(request: HttpRequest, response: HttpResponse, connection: ConnectionInfo): Promise<void> {
    const call = httpCallOf(request, response, connection);
    const { path } = call;
    await this.#context.objects.freshen();
    if (path.startsWith('/login/')) return handleOpenId(this.#context, call, 'begin');
    if (path.startsWith('/oauth2callback/')) return handleOpenId(this.#context, call, 'finish');
    await this.#paths.get(path)?.(call);
  }

  async prepare(): Promise<void> {
    const { address, log, clock } = this.#options;
    const { objects, random, issuer } = this.#context;
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
    const { objects, links } = this.#context;
    const { address, console } = this.#options;
    if (console !== true) return undefined;
    await objects.freshen();
    const admin = objects.bootstrapUser();
    if (admin === undefined) return undefined;
    const secret = links.issue({ name: BOOTSTRAP_USER, uid: admin.uid });
    // Browsers do not send the fragment of a URL, so the secret appears in no log and no Referer header.
    return { url: `${address}/console/#login=${secret}`, seconds: LINK_SECONDS };
  }

  #ensureConsoleClient(): Promise<void> {
    const { address, domain, console } = this.#options;
    const { objects, random } = this.#context;
    return ensureConsoleClient(objects, { domain, address, isServed: console === true, newSecret: random });
  }

  #exchange() {
    const { objects, issuer, log, clock } = this.#context;
    return { objects, issuer, log, nowMs: () => clock.nowMs() };
  }

  #metadata(call: HttpCall): void {
    const issuer = call.origin ?? this.#options.address;
    sendJson(call, 200, {
      issuer,
      authorization_endpoint: `${issuer}/oauth/authorize`,
      token_endpoint: `${issuer}/oauth/token`,
      scopes_supported: SCOPES,
      response_types_supported: ['code', 'token'],
      grant_types_supported: ['authorization_code', 'implicit'],
      code_challenge_methods_supported: ['S256'],
    });
  }

  async #authorize(call: HttpCall): Promise<void> {
    if (call.request.method !== 'GET') return sendError(call, 405, 'invalid_request', 'use GET', { allow: 'GET' });
    const { objects, issuer } = this.#context;
    // The console may have been installed after this server started, so its OAuth client is updated first.
    if (call.query.get('client_id') === CONSOLE_CLIENT) await this.#ensureConsoleClient();
    const request = readRequest(call, objects);
    if (request === undefined) return;
    const user = await this.#identify(call, request);
    if (user === undefined) return;
    if (!needsConsent(objects, request, user)) return grantAuthorization(call, request, user, issuer);
    if (request.client.respondWithChallenges === true) {
      refuseAuthorization(call, request, 'access_denied', 'the user has not granted the scopes to the client');
      return;
    }
    const { csrf, headers } = formToken(call, this.#context.random);
    const { scopes, client } = request;
    const then = `${call.path}?${call.query.toString()}`;
    sendPage(call, 200, grantPage({ client: client.metadata?.name ?? '', scopes, then, csrf }), headers);
  }

  /**
   * User of the request. Returns undefined after sending a response: a challenge, an error or a redirect to a login.
   */
  async #identify(call: HttpCall, { client }: AuthorizeRequest): Promise<LoginUser | undefined> {
    const context = this.#context;
    const known = sessionUser(call, context.key(), context.objects, context.clock.nowMs());
    if (known !== undefined) return known;
    const proxied = await this.#fromProxy(call);
    if (proxied !== undefined) return proxied;
    const proxy = context.providers.all.find(({ requestHeader }) => requestHeader !== undefined)?.requestHeader;
    const { challengeURL = '', loginURL = '' } = proxy ?? {};
    const withPasswords = context.providers.takePasswords;
    if (client.respondWithChallenges === true) {
      if (challengeURL !== '' && !withPasswords) redirect(call, proxyUrl(challengeURL, call));
      else return this.#challenge(call);
      return undefined;
    }
    const others = withPasswords || context.providers.all.some(({ openID }) => openID !== undefined);
    if (loginURL !== '' && !others) redirect(call, proxyUrl(loginURL, call));
    else
      redirect(call, `/login?${new URLSearchParams([['then', `${call.path}?${call.query.toString()}`]]).toString()}`);
    return undefined;
  }

  async #fromProxy(call: HttpCall): Promise<LoginUser | undefined> {
    const { providers, ports, log } = this.#context;
    for (const provider of providers.all) {
      const { requestHeader } = provider;
      if (requestHeader === undefined) continue;
      try {
        const ca = await providers.text('configmaps', requestHeader.ca, requestHeader.caFile, 'ca.crt');
        const identity = fromProxy(call, provider, ca, ports);
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

  /** Checks Basic credentials. The client must send X-CSRF-Token, a header that pages of other sites cannot send. */
  async #challenge(call: HttpCall): Promise<LoginUser | undefined> {
    if ((header(call, 'x-csrf-token') ?? '') === '') {
      const warning = '199 hyperedge "A non-empty X-CSRF-Token header is required to receive basic-auth challenges"';
      sendError(call, 401, 'access_denied', 'a non-empty X-CSRF-Token header is required', { warning });
      return undefined;
    }
    const given = basicCredentials(call);
    const outcome =
      given === undefined
        ? { failed: true as const }
        : await checkPassword(this.#context, call, given.user, given.secret);
    if ('user' in outcome) return outcome.user;
    if ('waitSeconds' in outcome)
      sendError(call, 429, 'access_denied', 'too many failed logins', { 'retry-after': String(outcome.waitSeconds) });
    else if ('busy' in outcome) sendError(call, 503, 'temporarily_unavailable', 'the login cannot be checked now');
    else
      sendError(call, 401, 'access_denied', 'user name or password is wrong', {
        'www-authenticate': 'Basic realm="openshift"',
      });
    return undefined;
  }

  /** Handles the form in which the user approves or rejects the scopes of a client. */
  async #approve(call: HttpCall): Promise<void> {
    const { objects, issuer, key, clock } = this.#context;
    const form = call.request.method === 'POST' ? await readForm(call) : undefined;
    const user = sessionUser(call, key(), objects, clock.nowMs());
    if (form === undefined || user === undefined || !isOwnForm(call, form))
      return sendPage(call, 403, messagePage('Authorize access', 'The form has expired. Go back and try again.'));
    const then = safePath(form.get('then'));
    const mark = then.indexOf('?');
    const request = readRequest(call, objects, new URLSearchParams(mark < 0 ? '' : then.slice(mark + 1)));
    if (request === undefined) return;
    if (form.get('approve') !== 'yes') {
      refuseAuthorization(call, request, 'access_denied', 'the user denied the request');
      return;
    }
    await recordConsent(objects, request, user);
    await grantAuthorization(call, request, user, issuer);
  }

  /** Redirects the browser to a login, which ends at the page that displays a token. */
  #requestToken(call: HttpCall): void {
    const query = new URLSearchParams({
      client_id: BROWSER_CLIENT,
      redirect_uri: `${call.origin ?? this.#options.address}/oauth/token/display`,
      response_type: 'code',
    });
    redirect(call, `/oauth/authorize?${query.toString()}`);
  }

  async #displayToken(call: HttpCall): Promise<void> {
    const failed = (text: string): void =>
      sendPage(call, 400, linkPage('API token', text, '/oauth/token/request', 'Request another token'));
    if (call.request.method !== 'POST') {
      const code = call.query.get('code') ?? '';
      if (code === '') return failed(`No code: ${call.query.get('error') ?? 'request a token first'}.`);
      const { csrf, headers } = formToken(call, this.#context.random);
      return sendPage(call, 200, displayConfirmation(code, call.query.get('state') ?? '', csrf), headers);
    }
    const form = await readForm(call);
    if (form === undefined || !isOwnForm(call, form)) return failed('The form has expired.');
    const client = this.#context.objects.get<OAuthClient>(CLIENTS, BROWSER_CLIENT);
    if (client === undefined) return failed(`OAuthClient ${BROWSER_CLIENT} is missing; restart the API server.`);
    const server = call.origin ?? this.#options.address;
    const issued = await exchangeCode(this.#exchange(), {
      client,
      code: form.get('code') ?? '',
      redirect: `${server}/oauth/token/display`,
      verifier: '',
    });
    if (issued === undefined) return failed('The code is unknown, used or expired.');
    sendPage(call, 200, tokenPage(issued.token, server));
  }
}

const implicitPage = linkPage(
  'API token',
  'The token of an implicit grant is in the fragment of the address of this page, for programs that requested it.',
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
