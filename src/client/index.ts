/** API client library of the components: client, informers, work queues, events and leader election. */
export { type ApiClientOptions, createApiClient, type FenceableClient } from './api-client.ts';
export { Competition } from './competition.ts';
export type { ClientCredentials, CredentialsProvider } from './credentials.ts';
export { ConnectionError, isConnectionError } from './errors.ts';
export { createEventRecorder, type EventRecorderOptions } from './event-recorder.ts';
export { createInformerFactory, type InformerFactoryDeps } from './informer-factory.ts';
export { type ClusterAccess, type PemSource, parseKubeconfig } from './kubeconfig.ts';
export { createLastKnown, type LastKnown } from './last-known.ts';
export { createLeaderElector, type FencedLeaderElector, type LeaderElectorOptions } from './leader-elector.ts';
export { checkReady } from './readiness.ts';
export { openRemoteTerminal, type RemoteTerminalOptions } from './remote-terminal.ts';
export type * from './types.ts';
export { createWorkQueue, type WorkQueueOptions } from './work-queue.ts';
export type { WriteFence } from './write-fence.ts';
