export { createCredentialProviders, type ProviderConfig } from './credential-providers.ts';
