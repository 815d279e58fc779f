/** OAuth server of OpenShift: logins of users, and tokens for clients. */
export type { LdapEntry, LdapPort, LdapQuery, LoginPorts, PasswordPort, WebAnswer, WebPort } from './port.ts';
export { createOAuthServer, type OAuthServerOptions } from './server.ts';
export type { IdentityProvider } from './types.ts';
