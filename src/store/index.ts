/**
 * `hyperedge etcd`: etcd's v3 API on a log of revisions. See `EtcdServerDeps` for its dependencies. The composition
 * passes `store/disk` as the log and `wire/grpc` as the listener.
 */
export { createTokens } from './auth/auth-tokens.ts';
export { storeMissing } from './membership/join.ts';
export { lostOf } from './recovery/recovery.ts';
export { NEWEST_LEVEL } from './replication/maintenance/log-level.ts';
export { createEtcdServer } from './server/server.ts';
export type { EtcdServer, EtcdServerDeps, Fallback, FallbackResult } from './server/server-port.ts';
