/**
 * Identity providers, with the fields of the kind OAuth in `config.openshift.io/v1`. Source: openshift/api config/v1
 * types_oauth.go.
 */

export type MappingMethod = 'claim' | 'lookup' | 'add' | 'generate';

/** Identity that a provider reports for a login. */
export interface LoginIdentity {
  readonly provider: string;
  /** Identifier of the user at the provider. It is unique and never changes. */
  readonly id: string;
  readonly preferredUserName: string;
  readonly fullName: string;
  readonly extra: Readonly<Record<string, string>>;
  /** Groups of the user; undefined if the provider reports none. */
  readonly groups?: readonly string[];
}

interface Named {
  readonly name?: string;
}

export interface IdentityProvider {
  readonly name: string;
  readonly mappingMethod?: string;
  readonly type?: string;
  readonly htpasswd?: {
    /** Secret in openshift-config. Its key `htpasswd` contains the file. */
    readonly fileData?: Named;
    /** Path of a file on this host. Only accepted in the bootstrap file. */
    readonly file?: string;
  };
  readonly ldap?: {
    readonly url?: string;
    readonly bindDN?: string;
    readonly bindPassword?: Named;
    readonly bindPasswordFile?: string;
    readonly insecure?: boolean;
    readonly ca?: Named;
    readonly caFile?: string;
    readonly attributes?: {
      readonly id?: readonly string[];
      readonly preferredUsername?: readonly string[];
      readonly name?: readonly string[];
      readonly email?: readonly string[];
    };
  };
  readonly openID?: {
    readonly clientID?: string;
    readonly clientSecret?: Named;
    readonly clientSecretFile?: string;
    readonly issuer?: string;
    readonly ca?: Named;
    readonly caFile?: string;
    readonly extraScopes?: readonly string[];
    readonly extraAuthorizeParameters?: Readonly<Record<string, string>>;
    readonly claims?: {
      readonly preferredUsername?: readonly string[];
      readonly name?: readonly string[];
      readonly email?: readonly string[];
      readonly groups?: readonly string[];
    };
  };
  readonly requestHeader?: {
    readonly loginURL?: string;
    readonly challengeURL?: string;
    readonly ca?: Named;
    readonly caFile?: string;
    readonly clientCommonNames?: readonly string[];
    readonly headers?: readonly string[];
    readonly preferredUsernameHeaders?: readonly string[];
    readonly nameHeaders?: readonly string[];
    readonly emailHeaders?: readonly string[];
  };
}

/** `spec` of the OAuth object `cluster`. */
export interface OAuthConfiguration {
  readonly identityProviders?: readonly IdentityProvider[];
  readonly tokenConfig?: {
    readonly accessTokenMaxAgeSeconds?: number;
    /** Duration such as 10m. */
    readonly accessTokenInactivityTimeout?: string;
    readonly accessTokenInactivityTimeoutSeconds?: number;
  };
}
