/**
 * `hyperedge etcd`: etcd's v3 API on a log of revisions. See `EtcdServerDeps` for its dependencies. The composition
 * passes `io/sqlite` as the log and `io/grpc` as the listener.
 */
export { createTokens } from './auth/auth-tokens.ts';
export { storeMissing } from './membership/join.ts';
export { lostOf } from './recovery/recovery.ts';
export { NEWEST_LEVEL } from './replication/log-level.ts';
export { createEtcdServer } from './server.ts';
export type { EtcdServer, EtcdServerDeps, Fallback, WentBack } from './server-port.ts';
