/** API server with its OAuth server, and the requests of `oc login`. */
import { createHash, randomBytes } from 'node:crypto';
import { silentLog } from '../../../src/base/log.ts';
import type { Clock } from '../../../src/base/time/clock.ts';
import { systemClock, systemRandom } from '../../../src/host/process/process.ts';
import { createOAuthServer, type IdentityProvider } from '../../../src/openshift/oauth/index.ts';
import { createWeb, issuedBy, ldap, PasswordThread } from '../../../src/openshift/oauth/io/index.ts';
import { type Answer, type HarnessOptions, startServer, type TestServer } from '../../apiserver/harness.ts';

export const CHALLENGING = 'openshift-challenging-client';

export interface LoginServerOptions {
  readonly identityProviders: readonly IdentityProvider[];
  readonly files?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  /** Whether the server has the web console. Default: false. */
  readonly console?: boolean;
  readonly audit?: NonNullable<HarnessOptions['audit']>;
}

/** `verifyMs`, `verifyCount`: total duration and number of password verifications. */
export interface LoginTestServer extends TestServer {
  readonly verifyMs: () => number;
  readonly verifyCount: () => number;
}

export async function startLoginServer(options: LoginServerOptions): Promise<LoginTestServer> {
  const thread = new PasswordThread();
  let verifyMs = 0;
  let verifyCount = 0;
  const clock = options.clock ?? systemClock;
  const server = await startServer({
    clock,
    ...(options.audit === undefined ? {} : { audit: options.audit }),
    login: (objects) =>
      createOAuthServer(objects, {
        ports: {
          passwords: {
            verify: async (password, hash) => {
              verifyCount += 1;
              const began = performance.now();
              const good = await thread.verify(password, hash);
              verifyMs += performance.now() - began;
              return good;
            },
            stop: () => thread.stop(),
          },
          ldap,
          web: createWeb({ noProxy: [] }),
          issuedBy,
          readFile: async (path) => {
            const text = options.files?.[path];
            if (text === undefined) throw new Error(`${path}: no such file`);
            return text;
          },
        },
        log: silentLog,
        clock,
        random: systemRandom,
        identityProviders: options.identityProviders,
        address: 'https://192.0.2.10:6443',
        domain: 'apps.example.com',
        console: options.console ?? false,
      }),
  });
  return Object.assign(server, { verifyMs: () => verifyMs, verifyCount: () => verifyCount });
}

export const basic = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

export const newVerifier = (): { readonly verifier: string; readonly challenge: string } => {
  const verifier = randomBytes(32).toString('base64url');
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') };
};

export type Parameters = Readonly<Record<string, string>>;

export const form = (fields: Parameters, headers: Record<string, string> = {}) => ({
  as: null,
  raw: new URLSearchParams(fields).toString(),
  type: 'application/x-www-form-urlencoded',
  headers,
});

/** Authorization request that `oc login -u` sends with a password. */
export const authorize = (
  server: TestServer,
  user: string,
  password: string,
  parameters: Parameters,
): Promise<Answer> =>
  server.call('GET', `/oauth/authorize?${new URLSearchParams(parameters).toString()}`, {
    as: null,
    headers: { 'x-csrf-token': '1', authorization: basic(user, password) },
  });

export const implicitUri = (server: TestServer): string => `https://127.0.0.1:${server.port}/oauth/token/implicit`;

/** Code flow of `oc login -u`. Throws when a step is rejected. */
export async function login(
  server: TestServer,
  user: string,
  password: string,
  scope?: string,
): Promise<{ readonly token: string; readonly code: string; readonly verifier: string }> {
  const { verifier, challenge } = newVerifier();
  const answer = await authorize(server, user, password, {
    client_id: CHALLENGING,
    response_type: 'code',
    redirect_uri: implicitUri(server),
    code_challenge: challenge,
    code_challenge_method: 'S256',
    state: 'x',
    ...(scope === undefined ? {} : { scope }),
  });
  if (answer.code !== 302) throw new Error(`authorize: ${answer.code} ${answer.text}`);
  const code = new URL(String(answer.headers.location)).searchParams.get('code') ?? '';
  const exchanged = await exchange(server, code, verifier);
  if (exchanged.code !== 200) throw new Error(`token: ${exchanged.code} ${exchanged.text}`);
  return { token: exchanged.body.access_token, code, verifier };
}

export const exchange = (
  server: TestServer,
  code: string,
  verifier: string,
  more: Parameters = {},
): Promise<Answer<{ access_token: string; expires_in: number; error?: string }>> =>
  server.call(
    'POST',
    '/oauth/token',
    form(
      {
        grant_type: 'authorization_code',
        code,
        redirect_uri: implicitUri(server),
        ...(verifier === '' ? {} : { code_verifier: verifier }),
        ...more,
      },
      { authorization: basic(CHALLENGING, '') },
    ),
  );

export const withToken = <T = Record<string, unknown>>(
  server: TestServer,
  token: string,
  method: string,
  path: string,
): Promise<Answer<T>> => server.call<T>(method, path, { as: null, headers: { authorization: `Bearer ${token}` } });

export const OWN_USER = '/apis/user.openshift.io/v1/users/~';

export async function whoami(server: TestServer, token: string): Promise<string> {
  const { code, body } = await withToken<{ metadata: { name: string } }>(server, token, 'GET', OWN_USER);
  return code === 200 ? body.metadata.name : String(code);
}
