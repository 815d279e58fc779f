/** oauth.openshift.io/v1. Source: openshift/api oauth/v1 of release 4.10. */
import type { KubeObject } from '../../meta/object.ts';

/** Annotation of access tokens: seconds without a use after which the token expires. */
export const INACTIVITY_SECONDS = 'hyperedge.io/oauth-inactivity-seconds';

export interface ScopeRestriction {
  literals?: string[];
  clusterRole?: { roleNames?: string[]; namespaces?: string[]; allowEscalation?: boolean };
}

export interface OAuthClient extends KubeObject {
  secret?: string;
  additionalSecrets?: string[];
  respondWithChallenges?: boolean;
  redirectURIs?: string[];
  grantMethod?: string;
  scopeRestrictions?: ScopeRestriction[];
  accessTokenMaxAgeSeconds?: number;
  accessTokenInactivityTimeoutSeconds?: number;
}

interface Issued extends KubeObject {
  clientName?: string;
  /** Seconds from the creation; 0: no end. */
  expiresIn?: number;
  scopes?: string[];
  redirectURI?: string;
  userName?: string;
  userUID?: string;
}

/** Named by the hash of the token. */
export interface OAuthAccessToken extends Issued {
  authorizeToken?: string;
  refreshToken?: string;
  /** Seconds from the creation; grows while the token is used. */
  inactivityTimeoutSeconds?: number;
}

export interface OAuthAuthorizeToken extends Issued {
  state?: string;
  codeChallenge?: string;
  codeChallengeMethod?: string;
}

export interface OAuthClientAuthorization extends KubeObject {
  clientName?: string;
  userName?: string;
  userUID?: string;
  scopes?: string[];
}
