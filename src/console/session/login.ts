/**
 * Login with an authorization code and PKCE. The code and the token exist only in variables of this module. The code is
 * requested by a fetch that follows the redirect to `/console/callback`, so the code never appears in the address bar,
 * the history or storage. After a reload, a new token is obtained through the session cookie of the OAuth server.
 */
import { signal } from '@preact/signals';
import { serverClock } from './clock.ts';
import { createProofKey, randomText } from './pkce.ts';

const CLIENT = 'console';
const CALLBACK = '/console/callback';
/** Interval of session renewals. A session of the OAuth server ends five minutes after its last renewal. */
const RENEW_MS = 120_000;
const OTHER_TABS = 'hyperedge-console';
const LOGGED_IN = 'logged-in';
const LOGGED_OUT = 'logged-out';
/** View that a login in another tab ends with. */
export const CONTINUE_PATH = '/continue';

export type SessionState = 'starting' | 'in' | 'expired' | 'out' | 'failed';

/**
 * State of the login. `expired`: the session ended by itself, so the view and its unsaved text are kept until the user
 * has logged in again in another tab. `failed`: the API server did not respond.
 */
export const sessionState = signal<SessionState>('starting');
/** Name of the user; '' before it is known. */
export const userName = signal('');

let token: string | undefined;
/** Pending renewal of the token, shared by all requests that wait for it. */
let renewal: Promise<boolean> | undefined;
const otherTabs = new BroadcastChannel(OTHER_TABS);

/** The token, for the Authorization header and for WebSockets. Never write it into an address, storage or the page. */
export const currentToken = (): string | undefined => token;

/** Redeems the link of `hyperedge console`, then gets a token. Returns false if the user must log in. */
export async function startSession(): Promise<boolean> {
  otherTabs.onmessage = ({ data }) => {
    if (data === LOGGED_OUT) endLocally();
    if (data === LOGGED_IN && sessionState.value === 'expired') void renewToken();
  };
  // Opening a link in this tab changes only the fragment, which does not load the page. It must be reloaded.
  addEventListener('hashchange', () => {
    if (location.hash.startsWith('#login=')) location.reload();
  });
  const redeemed = await redeemLink();
  const known = await renewToken();
  if (!known && !redeemed && sessionState.value === 'out') toLoginPage();
  if (!known) return false;
  otherTabs.postMessage(LOGGED_IN);
  setInterval(() => void keepSession(), RENEW_MS);
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState !== 'visible') return;
    if (sessionState.value === 'expired') void renewToken();
    else void keepSession();
  });
  addEventListener('pagehide', ({ persisted }) => {
    // The page is being closed or reloaded, so its token is not needed any more.
    if (!persisted) void post('/oauth/console/revoke', { keepalive: true });
  });
  return true;
}

/**
 * Gets a new token through the session. Concurrent calls share one request. Resolves with false if there is no session.
 */
export function renewToken(): Promise<boolean> {
  renewal ??= authorize().finally(() => {
    renewal = undefined;
  });
  return renewal;
}

/** Revokes the token, ends the session in all tabs, and shows the page for the next login. */
export async function logout(): Promise<void> {
  const answer = await post('/oauth/console/logout', {});
  if (answer === undefined || (!answer.ok && answer.status !== 401))
    throw new Error('The API server did not end the session. Try again.');
  otherTabs.postMessage(LOGGED_OUT);
  endLocally();
}

/** Address of the login page of the OAuth server, which redirects to `then`. */
export const loginAddress = (then: string): string => `/login?${new URLSearchParams([['then', then]]).toString()}`;

/** Opens the login page, which redirects back to this view. */
export const toLoginPage = (): void => location.assign(loginAddress(`${location.pathname}${location.search}`));

function endLocally(): void {
  token = undefined;
  userName.value = '';
  sessionState.value = 'out';
}

/** Handles a refused renewal. After a server error, the session may still be valid, so the token stays in use. */
function onRefusal(status: number): false {
  const wasIn = sessionState.value === 'in' || sessionState.value === 'expired';
  if (status >= 500) {
    if (!wasIn) sessionState.value = 'failed';
    return false;
  }
  token = undefined;
  sessionState.value = wasIn ? 'expired' : 'out';
  return false;
}

async function authorize(): Promise<boolean> {
  const { verifier, challenge } = await createProofKey();
  const state = randomText();
  const redirect = `${location.origin}${CALLBACK}`;
  const query = new URLSearchParams({
    client_id: CLIENT,
    redirect_uri: redirect,
    response_type: 'code',
    state,
    code_challenge: challenge,
    code_challenge_method: 'S256',
  });
  try {
    const answer = await fetch(`/oauth/authorize?${query.toString()}`, {
      credentials: 'same-origin',
      cache: 'no-store',
    });
    const target = new URL(answer.url);
    const code = target.searchParams.get('code');
    if (target.pathname !== CALLBACK || code === null || target.searchParams.get('state') !== state)
      return onRefusal(answer.status);
    return await exchange({ code, verifier, redirect });
  } catch {
    // The network or the API server is not available. The token may still be valid.
    if (sessionState.value !== 'expired' && token === undefined) sessionState.value = 'failed';
    return false;
  }
}

interface Exchange {
  readonly code: string;
  readonly verifier: string;
  readonly redirect: string;
}

async function exchange({ code, verifier, redirect }: Exchange): Promise<boolean> {
  const answer = await fetch('/oauth/token', {
    method: 'POST',
    credentials: 'omit',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: CLIENT,
      code,
      redirect_uri: redirect,
      code_verifier: verifier,
    }),
  });
  serverClock.observe(answer.headers.get('date'));
  if (!answer.ok) return onRefusal(answer.status);
  const { access_token: received } = (await answer.json()) as { readonly access_token?: string };
  if (received === undefined) return onRefusal(answer.status);
  token = received;
  sessionState.value = 'in';
  return true;
}

/** Extends the session while a tab is open. */
async function keepSession(): Promise<void> {
  if (token === undefined) return;
  const answer = await post('/oauth/console/renew', {});
  if (answer?.status === 401) await renewToken();
}

/**
 * Exchanges the secret of a one-time link for a session. The secret is in the fragment, which browsers send to no
 * server, and is removed from the address before it is used. Returns false if there is no link.
 */
async function redeemLink(): Promise<boolean> {
  const [, secret] = /^#login=([A-Za-z0-9_-]{43})$/.exec(location.hash) ?? [];
  if (secret === undefined) return false;
  history.replaceState(undefined, '', location.pathname);
  try {
    const answer = await fetch('/oauth/console/redeem', {
      method: 'POST',
      credentials: 'same-origin',
      headers: { 'content-type': 'application/json', 'x-csrf-token': '1' },
      body: JSON.stringify({ secret }),
    });
    linkRefused.value = !answer.ok;
    return !answer.ok;
  } catch {
    linkRefused.value = true;
    return true;
  }
}

/** True if the one-time link was already used, has expired, or belongs to another API server. */
export const linkRefused = signal(false);

async function post(path: string, options: RequestInit): Promise<Response | undefined> {
  if (token === undefined) return undefined;
  try {
    return await fetch(path, {
      method: 'POST',
      credentials: 'same-origin',
      headers: { authorization: `Bearer ${token}` },
      ...options,
    });
  } catch {
    return undefined;
  }
}
