export type { OciRuntimeDeps, RuntimePrograms } from './containers/context.ts';
export { createCriHost } from './cri-host.ts';
export type { HeldImage, ImageConfig, ImageStorePort, PodAttachments, PodEndpoint, PodNetwork } from './port.ts';
export { createOciRuntime, type OciRuntime } from './runtime.ts';
export type { CgroupDriver } from './spec/spec.ts';
