import type { ProcessFacts } from '../../base/linux/process-facts.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import type { Store } from '../../store/port.ts';
import type { ReadSigningRequest } from '../admission/identity/certificates.ts';
import type { AuditSettings } from '../audit/trail.ts';
import type { ImageRegistries } from '../computed-resources/image-streams/registry-port.ts';
import type {
  ApiServerConfig,
  Authorizer,
  Followed,
  FollowedCertificates,
  IdentitySettings,
} from '../config/server-config.ts';
import type { ConsoleFiles } from '../console/console.ts';
import type { EncryptionSource } from '../encryption/configuration.ts';
import type { HttpPort } from '../port.ts';
import type { CreateLogin } from './login-port.ts';
import type { ReleaseSource } from './release-port.ts';

export interface ApiServerDeps {
  readonly store: Store;
  /** Current addresses of this host's network interfaces. Client requests are never proxied to them. Default: none. */
  readonly ownAddresses?: () => readonly string[];
  /** `createHttp()` of `src/apiserver/io/http`. */
  readonly http: HttpPort;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly config: ApiServerConfig;
  /** Audit settings. Undefined: requests are not audited. */
  readonly audit?: AuditSettings;
  /** Configuration of encryption at rest. Undefined: values are not encrypted. */
  readonly encryption?: EncryptionSource;
  /** Authorizers that can change at run time. Replaces the value of the configuration. */
  readonly authorizers?: Followed<readonly Authorizer[]>;
  /** Identity settings that can change at run time. Replaces the values of the configuration. */
  readonly identities?: Followed<IdentitySettings>;
  /** Certificates that can change at run time. Replaces the values of the configuration. */
  readonly certificates?: FollowedCertificates;
  /**
   * Loads the descriptions of the built-in types for OpenAPI and `kubectl explain`. Called on the first request, so
   * that the descriptions neither delay the start nor use memory before. Undefined: documents without descriptions.
   */
  readonly loadSchemaDescriptions?: () => Promise<unknown>;
  /** Source of the process metrics. Undefined: process metrics are not served. */
  readonly processFacts?: ProcessFacts;
  /** `parseSigningRequest()` of `src/pki`. */
  readonly readSigningRequest: ReadSigningRequest;
  /** Files of imported releases, which are served to other hosts. Undefined: no files are served. */
  readonly releases?: ReleaseSource;
  /** Creates the OAuth server. Undefined: its paths are not served. */
  readonly login?: CreateLogin;
  /**
   * Loads the files of the web console, on the first request. Returns undefined if there are none. Without this
   * function, the paths of the console are not public.
   */
  readonly loadConsole?: () => ConsoleFiles | undefined;
  /** Registries for image imports. Undefined: images are imported only from the stores of the hosts. */
  readonly imageRegistries?: ImageRegistries;
}

export interface ApiServer {
  /**
   * Loads the watch cache, writes the bootstrap objects and starts to serve. Resolves when the server accepts requests.
   */
  start(): Promise<{ readonly port: number }>;
  /** Stops accepting connections, ends watches and waits for requests in flight. Idempotent. */
  stop(): Promise<void>;
}
