/** oauth.openshift.io/v1. Source: openshift/api oauth/v1 of release 4.10. */
import { type DeclaredField, declarePackage } from './declare.ts';

const issued: Readonly<Record<string, DeclaredField>> = {
  clientName: ['string', 'The client that the token was issued to.'],
  expiresIn: ['int64', 'Seconds from the creation until the token expires; 0: it does not.'],
  scopes: ['[]string', 'Scopes of the token.'],
  redirectURI: ['string', 'The redirect of the authorization.'],
};
const holder: Readonly<Record<string, DeclaredField>> = {
  userName: ['string', 'Name of the user.'],
  userUID: ['string', 'UID of the user; a user of the same name with another UID cannot use the token.'],
};
const accessToken: Readonly<Record<string, DeclaredField>> = {
  ...issued,
  ...holder,
  authorizeToken: ['string', 'Name of the authorize token that was exchanged for this token.'],
  refreshToken: ['string', 'Refresh tokens are not issued.'],
  inactivityTimeoutSeconds: ['int32', 'Seconds from the creation after which the token is unused for too long.'],
};

export const oauthPackage = declarePackage('oauth.v1', {
  OAuthClient: {
    isKind: true,
    about: 'OAuthClient is a client that tokens are issued to.',
    fields: {
      secret: ['string', 'Secret of a confidential client.'],
      additionalSecrets: ['[]string', 'Further secrets, for rotation.'],
      respondWithChallenges: ['boolean', 'Requests without credentials get a challenge in the place of a login page.'],
      redirectURIs: ['[]string', 'Accepted redirects.'],
      grantMethod: ['string', 'auto: grant without confirmation; prompt: the user must confirm.'],
      scopeRestrictions: ['[]#ScopeRestriction', 'Scopes that the client may request; none: all.'],
      accessTokenMaxAgeSeconds: ['int32', 'Overrides the age of access tokens; 0: no limit.'],
      accessTokenInactivityTimeoutSeconds: ['int32', 'Overrides the inactivity limit; 0: no limit, else at least 300.'],
    },
  },
  ScopeRestriction: {
    about: 'ScopeRestriction names scopes by one of its fields.',
    fields: {
      literals: ['[]string', 'The scopes, literally.'],
      clusterRole: ['#ClusterRoleScopeRestriction', 'Scopes of cluster roles.'],
    },
  },
  ClusterRoleScopeRestriction: {
    about: 'ClusterRoleScopeRestriction names role scopes.',
    fields: {
      roleNames: ['![]string', 'Names of cluster roles; * is any.'],
      namespaces: ['![]string', 'Namespaces; * is any.'],
      allowEscalation: ['!boolean', 'Whether scopes that end with ! are accepted.'],
    },
  },
  OAuthAccessToken: {
    isKind: true,
    about: 'OAuthAccessToken is a token of a user. Its name is the hash of the token, which is not stored.',
    fields: accessToken,
  },
  UserOAuthAccessToken: {
    isKind: true,
    about: 'UserOAuthAccessToken is an OAuthAccessToken as its own user sees it.',
    fields: accessToken,
  },
  OAuthAuthorizeToken: {
    isKind: true,
    about: 'OAuthAuthorizeToken is a code that a client exchanges for an access token, once. Its name is a hash.',
    fields: {
      ...issued,
      state: ['string', 'State of the request.'],
      ...holder,
      codeChallenge: ['string', 'Challenge of PKCE (RFC 7636).'],
      codeChallengeMethod: ['string', 'S256.'],
    },
  },
  OAuthClientAuthorization: {
    isKind: true,
    about: 'OAuthClientAuthorization records which scopes a user has granted to a client.',
    fields: {
      clientName: ['string', 'The client.'],
      ...holder,
      scopes: ['[]string', 'The granted scopes.'],
    },
  },
});
