/** External services of the OAuth server: password hashes, LDAP and the providers' web servers. */
export { issuedBy } from './certificates.ts';
export { ldap } from './ldap.ts';
export { hashPassword, PasswordThread } from './passwords.ts';
export { createWeb } from './web.ts';
