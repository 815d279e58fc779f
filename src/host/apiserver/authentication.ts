/** Converts the authentication and authorization flags to settings of the API server. */

import { type AuthenticationFile, parseAuthentication } from '../../apiserver/config/authentication.ts';
import type { ApiValues } from '../../apiserver/config/index.ts';
import {
  type ApiServerConfig,
  type Authorizer,
  type IdentitySettings,
  SIGNING_ALGORITHMS,
  type TokenIssuer,
} from '../../apiserver/index.ts';
import type { Log } from '../../base/log.ts';
import { type OpenSecret, readReferenced, readSecret } from '../config/files.ts';
import { type FollowedFile, followFile } from '../config/followed-file.ts';
import { authorizersOf } from './authorization.ts';
import { readRemoteEndpoint } from './remote-endpoint.ts';

type AuthenticationConfig = Pick<
  ApiServerConfig,
  | 'anonymous'
  | 'anonymousPaths'
  | 'authorizers'
  | 'bootstrapTokens'
  | 'clientCa'
  | 'requestHeader'
  | 'serviceAccounts'
  | 'staticTokens'
  | 'tokenIssuers'
  | 'tokenWebhook'
>;

/** Authentication settings. Throws CodedErrors and ApiUsageProblems that name the flag or the file. */
export async function authenticationOf(
  values: ApiValues,
  { referredToBy, ownHost, onOpenSecret }: Surroundings,
): Promise<AuthenticationConfig> {
  const { authorizers } = await authorizersOf(values, referredToBy, onOpenSecret);
  const identities = await identitiesOf(values, authorizers, { referredToBy, ownHost });
  const clientCa = values.file('client-ca-file');
  const tokens = values.file('token-auth-file');
  const webhook = values.file('authentication-token-webhook-config-file');
  return {
    ...identities,
    authorizers,
    bootstrapTokens: values.boolean('enable-bootstrap-token-auth'),
    ...(clientCa === undefined ? {} : { clientCa: await readReferenced(clientCa, referredToBy) }),
    ...(await requestHeader(values, referredToBy)),
    serviceAccounts: await serviceAccounts(values, referredToBy, onOpenSecret),
    ...(tokens === undefined ? {} : { staticTokens: await readSecret(tokens, referredToBy, onOpenSecret) }),
    ...(webhook === undefined
      ? {}
      : {
          tokenWebhook: {
            endpoint: await readRemoteEndpoint(webhook, referredToBy, onOpenSecret),
            version: values.text('authentication-token-webhook-version') === 'v1beta1' ? 'v1beta1' : 'v1',
            cacheMs: values.milliseconds('authentication-token-webhook-cache-ttl'),
          },
        }),
  };
}

interface Surroundings {
  readonly referredToBy: string;
  readonly ownHost: boolean;
  /** Called for world-readable secret files; if undefined, they are rejected. */
  readonly onOpenSecret?: OpenSecret | undefined;
}

async function identitiesOf(
  values: ApiValues,
  authorizers: readonly Authorizer[],
  { referredToBy, ownHost }: Surroundings,
): Promise<IdentitySettings> {
  const file = values.file('authentication-config');
  if (file === undefined) {
    const issuer = await issuerOfFlags(values, referredToBy);
    return {
      ...anonymous(values, authorizers, ownHost, undefined),
      tokenIssuers: issuer === undefined ? [] : [issuer],
    };
  }
  if (values.has('oidc-issuer-url'))
    values.refuse('authentication-config', 'and --oidc-issuer-url exclude each other; write the issuer into the file');
  return identitiesOfFile(values, authorizers, ownHost, file)(await readReferenced(file, referredToBy));
}

const identitiesOfFile =
  (values: ApiValues, authorizers: readonly Authorizer[], ownHost: boolean, file: string) =>
  (text: string): IdentitySettings => {
    const structured = parseAuthentication(text, file);
    return { ...anonymous(values, authorizers, ownHost, structured), tokenIssuers: structured.issuers };
  };

/** Identities from the configuration file, reloaded on change; undefined if no flag names a file. */
export async function followIdentities(
  values: ApiValues,
  authorizers: readonly Authorizer[],
  { referredToBy, ownHost }: Surroundings,
  log: Log,
): Promise<FollowedFile<IdentitySettings> | undefined> {
  const file = values.file('authentication-config');
  if (file === undefined) return undefined;
  const parse = identitiesOfFile(values, authorizers, ownHost, file);
  return followFile(file, { what: 'authentication', log, first: () => readReferenced(file, referredToBy), parse });
}

function anonymous(
  values: ApiValues,
  authorizers: readonly Authorizer[],
  ownHost: boolean,
  structured: AuthenticationFile | undefined,
): Pick<AuthenticationConfig, 'anonymous' | 'anonymousPaths'> {
  // Upstream disables anonymous requests with AlwaysAllow: every anonymous request would be authorized.
  if (authorizers.some(({ type }) => type === 'AlwaysAllow')) return { anonymous: 'none' };
  if (structured?.anonymous !== undefined) {
    const { enabled, paths } = structured.anonymous;
    if (!enabled) return { anonymous: 'none' };
    return paths === undefined ? { anonymous: 'all' } : { anonymous: 'paths', anonymousPaths: paths };
  }
  if (ownHost && !values.has('anonymous-auth')) return { anonymous: 'health' };
  return { anonymous: values.boolean('anonymous-auth') ? 'all' : 'none' };
}

async function requestHeader(
  values: ApiValues,
  referredToBy: string,
): Promise<Pick<AuthenticationConfig, 'requestHeader'>> {
  const ca = values.file('requestheader-client-ca-file');
  if (ca === undefined) return {};
  const lower = (name: Parameters<ApiValues['list']>[0]): string[] =>
    values.list(name).map((each) => each.toLowerCase());
  const uidHeaders = lower('requestheader-uid-headers');
  return {
    requestHeader: {
      ca: await readReferenced(ca, referredToBy),
      allowedNames: values.list('requestheader-allowed-names'),
      userHeaders: lower('requestheader-username-headers'),
      groupHeaders: lower('requestheader-group-headers'),
      extraPrefixes: lower('requestheader-extra-headers-prefix'),
      ...(uidHeaders.length === 0 ? {} : { uidHeaders }),
    },
  };
}

async function serviceAccounts(
  values: ApiValues,
  referredToBy: string,
  onOpenSecret: OpenSecret | undefined,
): Promise<ApiServerConfig['serviceAccounts']> {
  const signing = values.file('service-account-signing-key-file');
  const [issuer, ...otherIssuers] = values.list('service-account-issuer');
  if (signing === undefined)
    return values.refuse('service-account-signing-key-file', 'is missing; name a private key, RSA or EC P-256');
  if (issuer === undefined)
    return values.refuse('service-account-issuer', 'is missing; give a URL such as https://kubernetes.default.svc');
  const audiences = values.list('api-audiences');
  const longestMs = values.milliseconds('service-account-max-token-expiration');
  const jwksUri = jwksUriOf(values);
  if (longestMs !== 0 && longestMs < 3_600_000)
    values.refuse('service-account-max-token-expiration', 'is shorter than an hour; give 1h or more');
  const files = await Promise.all(
    values.files('service-account-key-file').map((file) => readReferenced(file, referredToBy)),
  );
  return {
    signingKey: await readSecret(signing, referredToBy, onOpenSecret),
    publicKeys: files.flatMap(pemBlocks),
    issuer,
    otherIssuers,
    ...(jwksUri === '' ? {} : { jwksUri }),
    ...(longestMs === 0 ? {} : { maxTokenSeconds: longestMs / 1000 }),
    extendTokens: values.boolean('service-account-extend-token-expiration'),
    ...(audiences.length === 0 ? {} : { audiences }),
  };
}

/** The flag's value. Without the flag, a URL at the external hostname, or '' if no external hostname is set either. */
function jwksUriOf(values: ApiValues): string {
  const given = values.text('service-account-jwks-uri');
  const host = values.text('external-hostname');
  if (given !== '' || host === '') return given;
  const port = /:\d+$/.test(host) ? '' : `:${values.number('secure-port')}`;
  return `https://${host}${port}/openid/v1/jwks`;
}

/** Splits a PEM file, which may contain several keys and certificates. */
export function pemBlocks(pem: string): string[] {
  return pem.match(/-----BEGIN ([A-Z0-9 ]+)-----[\s\S]+?-----END \1-----/g) ?? [pem];
}

async function issuerOfFlags(values: ApiValues, referredToBy: string): Promise<TokenIssuer | undefined> {
  const url = values.text('oidc-issuer-url');
  if (url === '') return undefined;
  if (!/^https:\/\/[^?#]+$/.test(url)) values.refuse('oidc-issuer-url', `"${url}" is not an https:// address`);
  const clientId = values.text('oidc-client-id');
  if (clientId === '') values.refuse('oidc-client-id', 'is required with --oidc-issuer-url');
  const algorithms = values.list('oidc-signing-algs');
  const strange = algorithms.find((each) => !SIGNING_ALGORITHMS.includes(each));
  if (strange !== undefined)
    values.refuse('oidc-signing-algs', `"${strange}" is not accepted; give some of ${SIGNING_ALGORITHMS.join(', ')}`);
  const claim = values.text('oidc-username-claim');
  const prefix = values.text('oidc-username-prefix');
  const groups = values.text('oidc-groups-claim');
  const ca = values.file('oidc-ca-file');
  const required = values.list('oidc-required-claim').map((pair) => {
    const at = pair.indexOf('=');
    if (at <= 0) values.refuse('oidc-required-claim', `"${pair}" is not claim=value`);
    return [pair.slice(0, at), pair.slice(at + 1)] as const;
  });
  return {
    url,
    ...(ca === undefined ? {} : { ca: await readReferenced(ca, referredToBy) }),
    audiences: [clientId],
    algorithms,
    username: {
      claim,
      // User names are unique per issuer only; e-mail addresses are globally unique.
      prefix: prefix === '-' ? '' : prefix === '' && claim !== 'email' ? `${url}#` : prefix,
    },
    ...(groups === '' ? {} : { groups: { claim: groups, prefix: values.text('oidc-groups-prefix') } }),
    requiredClaims: new Map(required),
  };
}
