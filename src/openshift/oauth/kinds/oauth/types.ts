/** Types of oauth.openshift.io/v1. Source: openshift/api oauth/v1 of release 4.10. */
import type { KubeObject } from '../../../../api/meta/object.ts';

/** Annotation of an access token: number of seconds without use after which the token expires. */
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
  /** Lifetime in seconds since the creation; 0 means that it never expires. */
  expiresIn?: number;
  scopes?: string[];
  redirectURI?: string;
  userName?: string;
  userUID?: string;
}

/** An access token. Its name is the hash of the secret token. */
export interface OAuthAccessToken extends Issued {
  authorizeToken?: string;
  refreshToken?: string;
  /**
   * Seconds since the creation after which the token expires due to inactivity. Increased while the token is in use.
   */
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
