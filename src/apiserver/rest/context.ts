/** Dependencies of the resource handlers. */

import type { Clock, RandomSource } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Store } from '../../store/port.ts';
import type { ApiServices } from '../aggregation/services.ts';
import type { AuditTrail } from '../audit/trail.ts';
import type { Authenticator } from '../authentication/index.ts';
import type { ServiceAccountTokens } from '../authentication/service-accounts.ts';
import type { Authorization } from '../authorization/index.ts';
import type { ImageRegistries } from '../computed-resources/image-streams/registry-port.ts';
import type { ApiServerConfig, CertificateSettings, Followed, IdentitySettings } from '../config/server-config.ts';
import type { Admission } from '../pipeline/admission.ts';
import type { Allocator } from '../pipeline/allocator.ts';
import type { Kinds } from '../pipeline/kinds.ts';
import type { BackendConnector } from '../port.ts';
import type { Destinations } from '../server/destinations.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import type { ServiceAllocator } from '../storage/service-allocator.ts';
import type { WatchCache } from '../watch-cache/watch-cache.ts';

export interface RestContext {
  readonly cache: WatchCache;
  readonly store: Store;
  readonly objects: ObjectStore;
  readonly kinds: Kinds;
  readonly apiServices: ApiServices;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
  readonly config: ApiServerConfig;
  readonly identities: Followed<IdentitySettings>;
  readonly certificates: Followed<CertificateSettings>;
  readonly audit: AuditTrail | undefined;
  readonly authorization: Authorization;
  readonly authenticator: Authenticator;
  readonly tokens: ServiceAccountTokens;
  readonly admission: Admission;
  readonly services: ServiceAllocator;
  /** Allocators by the storage prefix of the kind. */
  readonly allocators: ReadonlyMap<string, Allocator>;
  readonly backends: BackendConnector;
  readonly destinations: Destinations;
  readonly imageRegistries: ImageRegistries | undefined;
  /** Aborts when the server stops, which ends watches and streams. */
  readonly stopping: AbortSignal;
}
