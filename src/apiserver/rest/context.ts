/**
 * Dependencies of the request handlers and of the server's own controllers, as ports. Each handler and controller
 * declares the dependencies that it uses.
 */

import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
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

/** Reads of stored objects. */
export interface ReadContext {
  readonly authorization: Authorization;
  readonly cache: WatchCache;
  readonly clock: Clock;
  readonly store: Store;
}

/** Writes of objects through admission and validation. */
export interface WriteContext {
  readonly admission: Admission;
  /** Allocators by the storage prefix of the kind. */
  readonly allocators: ReadonlyMap<string, Allocator>;
  readonly cache: WatchCache;
  readonly clock: Clock;
  readonly config: ApiServerConfig;
  readonly kinds: Kinds;
  readonly objects: ObjectStore;
  readonly random: RandomSource;
}

/** Requests to other servers: aggregated API servers, kubelets and services. */
export interface BackendContext {
  readonly backends: BackendConnector;
  readonly cache: WatchCache;
  readonly clock: Clock;
  readonly destinations: Destinations;
  readonly random: RandomSource;
  /** Signal that aborts when the server stops. It ends watches and streams. */
  readonly stopping: AbortSignal;
}

/** Work that the server repeats until it stops. */
export interface LoopContext {
  readonly clock: Clock;
  readonly log: Log;
  readonly stopping: AbortSignal;
}

/** Dependencies of all handlers to which dispatch.ts routes requests. */
export interface RestContext extends ReadContext, WriteContext, BackendContext, LoopContext {
  readonly authenticator: Authenticator;
  readonly certificates: Followed<CertificateSettings>;
  readonly imageRegistries: ImageRegistries | undefined;
  readonly tokens: ServiceAccountTokens;
}

/** Dependencies of the server. */
export interface ServerContext extends RestContext {
  readonly apiServices: ApiServices;
  readonly audit: AuditTrail | undefined;
  readonly identities: Followed<IdentitySettings>;
  readonly services: ServiceAllocator;
}
