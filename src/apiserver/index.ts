/**
 * The API server. Start it with `createApiServer(deps).start()`. The served kinds are declared in `src/api/registry`.
 */
export type { AdmissionSettings } from './admission/settings.ts';
export { type BatchSettings, batchedSink } from './audit/batches.ts';
export { AUDIT_LEVELS, AUDIT_STAGES, type AuditPolicy } from './audit/policy.ts';
export type { AuditMode } from './audit/port.ts';
export type { AuditSettings } from './audit/trail.ts';
export { createAuditWebhook } from './audit/webhook-sink.ts';
export {
  type ClaimExpression,
  type ClaimMapping,
  type ClaimPurpose,
  compileClaimExpression,
} from './authentication/claims.ts';
export type { TokenIssuer } from './authentication/issuers.ts';
export { SIGNING_ALGORITHMS } from './authentication/issuers.ts';
export { compileAccessConditions } from './authorization/conditions.ts';
export type {
  ApiServerConfig,
  AuthorizationMode,
  Authorizer,
  CertificateSettings,
  Followed,
  FollowedCertificates,
  IdentitySettings,
  Reloads,
} from './config/server-config.ts';
export type { EncryptionConfiguration, EncryptionProvider, EncryptionSource } from './encryption/configuration.ts';
export type { KmsPlugin } from './encryption/kms-port.ts';
export { type EncryptionScan, scanEncryption } from './encryption/scan.ts';
export type { NamedCertificate } from './port.ts';
export type { ApiServer, ApiServerDeps } from './server/deps.ts';
export { createApiServer } from './server/server.ts';
export type { WebhookIdentities, WebhookIdentity } from './webhooks/identities.ts';
export type { RemoteEndpoint } from './webhooks/remote.ts';
