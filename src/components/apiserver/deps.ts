import type { Clock, RandomSource } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { ProcessFacts } from '../../base/process-facts.ts';
import type { Store } from '../../core/mvcc/port.ts';
import type { ReadSigningRequest } from './admission/certificates.ts';
import type { AuditSettings } from './audit/trail.ts';
import type { ApiServerConfig, Authorizer, Followed, FollowedCertificates, IdentitySettings } from './config.ts';
import type { EncryptionSource } from './encryption/configuration.ts';
import type { ImageRegistries } from './images/registry-port.ts';
import type { CreateLogin } from './login-port.ts';
import type { HttpPort } from './port.ts';
import type { ReleaseSource } from './release-port.ts';

export interface ApiServerDeps {
  readonly store: Store;
  /** The addresses of this host's links, now: none of them is a destination of a client's. Default: none. */
  readonly ownAddresses?: () => readonly string[];
  /** `createHttp()` of `src/io/http`. */
  readonly http: HttpPort;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly config: ApiServerConfig;
  /** What is recorded of requests; undefined: nothing. */
  readonly audit?: AuditSettings;
  /** What is encrypted in the store; undefined: nothing. */
  readonly encryption?: EncryptionSource;
  /** Those who are asked about requests, where that may change; in the place of the configuration's. */
  readonly authorizers?: Followed<readonly Authorizer[]>;
  /** Whom it believes, where that may change; in the place of the configuration's. */
  readonly identities?: Followed<IdentitySettings>;
  /** Certificates, where they may change; in the place of the configuration's. */
  readonly certificates?: FollowedCertificates;
  /**
   * The documentation of the built-in types for OpenAPI and `kubectl explain`: loaded on the first request, so that it
   * neither delays the start nor occupies memory before. Undefined: documents without descriptions.
   */
  readonly loadSchemaDescriptions?: () => Promise<unknown>;
  /** For the metrics of the process; undefined: they are not shown. */
  readonly processFacts?: ProcessFacts;
  /** `parseSigningRequest()` of `src/io/pki`. */
  readonly readSigningRequest: ReadSigningRequest;
  /** Files of imported releases, for other hosts; undefined: none. */
  readonly releases?: ReleaseSource;
  /** The OAuth server; undefined: its paths are not served. */
  readonly login?: CreateLogin;
  /** Where images are imported from besides the hosts' stores; undefined: from these alone. */
  readonly imageRegistries?: ImageRegistries;
}

export interface ApiServer {
  /**
   * Loads the watch cache, writes what every cluster must have and begins to serve. Resolves once requests are
   * answered.
   */
  start(): Promise<{ readonly port: number }>;
  /** Stops accepting, ends watches, lets requests in flight finish. Idempotent. */
  stop(): Promise<void>;
}
