/** API client library for components: client, informers, work queues, events and leader election. */
export { type ApiClientOptions, createApiClient, type FenceableClient } from './api-client.ts';
export type { ClientCredentials, CredentialsProvider } from './credentials.ts';
export { ConnectionError, isConnectionError } from './errors.ts';
export { createEventRecorder, type EventRecorderOptions } from './events/event-recorder.ts';
export { createInformerFactory, type InformerFactoryDeps } from './informers/informer-factory.ts';
export { createLastKnown, type LastKnown } from './informers/last-known.ts';
export { type ClusterAccess, type PemSource, parseKubeconfig } from './kubeconfig.ts';
export { Competition } from './leases/competition.ts';
export { createLeaderElector, type FencedLeaderElector, type LeaderElectorOptions } from './leases/leader-elector.ts';
export type { WriteFence } from './leases/write-fence.ts';
export { checkReady } from './readiness.ts';
export { openRemoteTerminal, type RemoteTerminalOptions } from './remote-terminal.ts';
export type * from './types.ts';
export { createWorkQueue, type WorkQueueOptions } from './work-queue.ts';
