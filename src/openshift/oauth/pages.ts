import { sha256Base64 } from '../../wire/digest.ts';

/** HTML pages of the OAuth server. They contain no scripts. */

const STYLE =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:34em;margin:4em auto;padding:0 1em}label{display:block;margin:1em 0}' +
  'input{display:block;width:100%;font:inherit;padding:.4em}button{font:inherit;padding:.4em 1.5em}pre{overflow:auto;background:#eee;padding:1em}' +
  '[role=alert]{color:#a00}';
const STYLE_HASH = sha256Base64(STYLE);

/**
 * Headers of all pages. The policy has no form-action: browsers also apply it to redirects after a form, and the
 * redirect after a login leads to the client's address.
 */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  pragma: 'no-cache',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; frame-ancestors 'none'; base-uri 'none'`,
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
};

export const escapeHtml = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');

const page = (title: string, body: string): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
  `<title>${escapeHtml(title)}</title><style>${STYLE}</style></head><body><main><h1>${escapeHtml(title)}</h1>${body}</main></body></html>`;

const hidden = (name: string, value: string): string =>
  `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`;

export interface LoginPage {
  readonly then: string;
  readonly csrf: string;
  readonly problem: string | undefined;
  readonly withPasswords: boolean;
  /** Names of the OpenID providers. */
  readonly openId: readonly string[];
}

export function loginPage({ then, csrf, problem, withPasswords, openId }: LoginPage): string {
  const form =
    `<form method="post" action="/login">${hidden('then', then)}${hidden('csrf', csrf)}` +
    '<label>Username<input name="username" autocomplete="username" autofocus required></label>' +
    '<label>Password<input name="password" type="password" autocomplete="current-password" required></label>' +
    '<button type="submit">Log in</button></form>';
  const links = openId.map(
    (name) =>
      `<p><a href="/login/${encodeURIComponent(name)}?then=${escapeHtml(encodeURIComponent(then))}">Log in with ${escapeHtml(name)}</a></p>`,
  );
  const alert = problem === undefined ? '' : `<p role="alert">${escapeHtml(problem)}</p>`;
  const none = !withPasswords && openId.length === 0 ? '<p>No identity provider is configured.</p>' : '';
  return page('Log in', `${alert}${withPasswords ? form : ''}${links.join('')}${none}`);
}

export const messagePage = (title: string, text: string): string => page(title, `<p>${escapeHtml(text)}</p>`);

export const linkPage = (title: string, text: string, href: string, label: string): string =>
  page(title, `<p>${escapeHtml(text)}</p><p><a href="${escapeHtml(href)}">${escapeHtml(label)}</a></p>`);

/** Page on which the user confirms before a token is displayed, so that opening a link never displays a token. */
export const displayConfirmation = (code: string, state: string, csrf: string): string =>
  page(
    'API token',
    `<form method="post" action="/oauth/token/display">${hidden('code', code)}${hidden('state', state)}${hidden('csrf', csrf)}` +
      '<button type="submit">Display token</button></form>',
  );

export const tokenPage = (token: string, server: string): string =>
  page(
    'Your API token',
    `<pre>${escapeHtml(token)}</pre><h2>Log in with this token</h2><pre>oc login --token=${escapeHtml(token)} --server=${escapeHtml(server)}</pre>` +
      `<p><a href="/oauth/token/request">Request another token</a></p>`,
  );

export const grantPage = (request: {
  readonly client: string;
  readonly scopes: readonly string[];
  readonly then: string;
  readonly csrf: string;
}): string =>
  page(
    'Authorize access',
    `<p>${escapeHtml(request.client)} requests access to your account:</p><ul>${request.scopes.map((each) => `<li>${escapeHtml(each)}</li>`).join('')}</ul>` +
      `<form method="post" action="/oauth/authorize/approve">${hidden('then', request.then)}${hidden('csrf', request.csrf)}` +
      '<button name="approve" value="yes" type="submit">Allow</button> <button name="approve" value="no" type="submit">Deny</button></form>',
  );
