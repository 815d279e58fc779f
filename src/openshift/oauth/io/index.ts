/** Adapters of the OAuth server: password hashes, LDAP, and HTTP requests to identity providers. */
export { issuedBy } from './certificates.ts';
export { ldap } from './ldap.ts';
export { hashPassword, PasswordThread } from './passwords.ts';
export { createWeb } from './web.ts';
