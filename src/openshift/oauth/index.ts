/** OAuth server of OpenShift: logs users in and issues tokens to clients. */
export type { LdapEntry, LdapPort, LdapQuery, LoginPorts, PasswordPort, WebAnswer, WebPort } from './port.ts';
export { createOAuthServer, type OAuthServerOptions } from './server.ts';
export type { IdentityProvider } from './types.ts';
