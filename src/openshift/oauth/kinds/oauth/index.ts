/** OAuth clients, authorize codes and access tokens. Source: openshift/oauth-apiserver pkg/oauth/apiserver/registry. */

import { column, nameColumn } from '../../../../api/printing/columns.ts';
import type { Column, KindAlias, KindDefinition } from '../../../../api/registry/definition.ts';
import { ALL_VERBS } from '../../../../api/registry/strategies.ts';
import { timestamp } from '../../../../base/time/timestamps.ts';
import type { OAuthAccessToken, OAuthAuthorizeToken, OAuthClient, OAuthClientAuthorization } from './types.ts';
import {
  validateAccessToken,
  validateAuthorization,
  validateAuthorizeToken,
  validateClient,
  validateTokenUpdate,
} from './validation.ts';

const GROUP = 'oauth.openshift.io';
/** Lifetime of a code. Clients exchange it for a token immediately. */
const CODE_SECONDS = 300;
const SCHEMA = 'com.github.openshift.api.oauth.v1';

const tokenColumns = <T extends OAuthAccessToken | OAuthAuthorizeToken>(): readonly Column<T>[] => [
  nameColumn,
  column<T>('User Name', 'The user.', ({ userName }) => userName ?? ''),
  column<T>('Client Name', 'The client.', ({ clientName }) => clientName ?? ''),
  column<T>('Created', 'When it was issued.', ({ metadata }) => metadata?.creationTimestamp ?? ''),
  column<T>('Expires', 'When it expires.', (token) => expiryText(token)),
  column<T>('Redirect URI', 'The redirect.', ({ redirectURI }) => redirectURI ?? ''),
  column<T>('Scopes', 'Scopes of the token.', ({ scopes }) => (scopes ?? []).join(',')),
];

function expiryText({ metadata, expiresIn = 0 }: OAuthAccessToken): string {
  const created = Date.parse(metadata?.creationTimestamp ?? '');
  if (expiresIn === 0 || Number.isNaN(created)) return 'never';
  return timestamp(created + expiresIn * 1000);
}

const base = { group: GROUP, version: 'v1', namespaced: false, nameRule: 'pathSegment' } as const;

export const clients: KindDefinition<OAuthClient> = {
  ...base,
  kind: 'OAuthClient',
  plural: 'oauthclients',
  singular: 'oauthclient',
  listKind: 'OAuthClientList',
  verbs: ALL_VERBS,
  schemaName: `${SCHEMA}.OAuthClient`,
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/oauthclients',
  strategy: { validate: validateClient },
  columns: [
    nameColumn,
    column<OAuthClient>('Secret', 'Whether the client has a secret.', ({ secret }) => (secret ? '<redacted>' : '')),
    column<OAuthClient>('WWW-Challenge', 'Whether challenges are sent.', (client) =>
      String(client.respondWithChallenges ?? false),
    ),
    column<OAuthClient>('Token-Max-Age', 'Age of tokens.', ({ accessTokenMaxAgeSeconds: age }) =>
      age === undefined ? 'default' : age === 0 ? 'unexpiring' : `${age}s`,
    ),
    column<OAuthClient>('Redirect URIs', 'Redirects.', ({ redirectURIs }) => (redirectURIs ?? []).join(',')),
  ],
};

const ownTokens: KindAlias<OAuthAccessToken> = {
  group: GROUP,
  version: 'v1',
  onlyReadable: true,
  isOwn: ({ userName }, user) => userName === user.name,
  names: {
    kind: 'UserOAuthAccessToken',
    plural: 'useroauthaccesstokens',
    singular: 'useroauthaccesstoken',
    listKind: 'UserOAuthAccessTokenList',
    verbs: ['delete', 'get', 'list', 'watch'],
    schemaName: `${SCHEMA}.UserOAuthAccessToken`,
    columns: tokenColumns<OAuthAccessToken>(),
  },
  convertTo: (object) => object as OAuthAccessToken,
  convertFrom: (token) => token,
};

export const accessTokens: KindDefinition<OAuthAccessToken> = {
  ...base,
  kind: 'OAuthAccessToken',
  plural: 'oauthaccesstokens',
  singular: 'oauthaccesstoken',
  listKind: 'OAuthAccessTokenList',
  verbs: ALL_VERBS,
  schemaName: `${SCHEMA}.OAuthAccessToken`,
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/oauthaccesstokens',
  strategy: { validate: validateAccessToken, validateUpdate: validateTokenUpdate },
  aliases: [ownTokens],
  fieldSelectors: {
    clientName: (token) => token.clientName ?? '',
    userName: (token) => token.userName ?? '',
    userUID: (token) => token.userUID ?? '',
    authorizeToken: (token) => token.authorizeToken ?? '',
  },
  columns: tokenColumns<OAuthAccessToken>(),
};

export const authorizeTokens: KindDefinition<OAuthAuthorizeToken> = {
  ...base,
  kind: 'OAuthAuthorizeToken',
  plural: 'oauthauthorizetokens',
  singular: 'oauthauthorizetoken',
  listKind: 'OAuthAuthorizeTokenList',
  verbs: ALL_VERBS,
  schemaName: `${SCHEMA}.OAuthAuthorizeToken`,
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/oauthauthorizetokens',
  ttlSeconds: CODE_SECONDS,
  strategy: { validate: validateAuthorizeToken, validateUpdate: validateTokenUpdate },
  fieldSelectors: {
    clientName: (token) => token.clientName ?? '',
    userName: (token) => token.userName ?? '',
    userUID: (token) => token.userUID ?? '',
  },
  columns: tokenColumns<OAuthAuthorizeToken>(),
};

export const clientAuthorizations: KindDefinition<OAuthClientAuthorization> = {
  ...base,
  kind: 'OAuthClientAuthorization',
  plural: 'oauthclientauthorizations',
  singular: 'oauthclientauthorization',
  listKind: 'OAuthClientAuthorizationList',
  verbs: ALL_VERBS,
  schemaName: `${SCHEMA}.OAuthClientAuthorization`,
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/oauthclientauthorizations',
  strategy: { validate: validateAuthorization },
  fieldSelectors: {
    clientName: (each) => each.clientName ?? '',
    userName: (each) => each.userName ?? '',
    userUID: (each) => each.userUID ?? '',
  },
  columns: [
    nameColumn,
    column<OAuthClientAuthorization>('User Name', 'The user.', ({ userName }) => userName ?? ''),
    column<OAuthClientAuthorization>('Client Name', 'The client.', ({ clientName }) => clientName ?? ''),
    column<OAuthClientAuthorization>('Scopes', 'Granted scopes.', ({ scopes }) => (scopes ?? []).join(',')),
  ],
};

export const oauthKinds: readonly KindDefinition[] = [clients, accessTokens, authorizeTokens, clientAuthorizations];
