export { ANONYMOUS, type Authenticator, createAuthenticator, unauthorized } from './authenticator.ts';
