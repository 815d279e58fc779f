export { type InspectedImage, inspectImage, isConfigured } from './inspect.ts';
export { type FoundImage, findImage } from './lookup.ts';
export { type Platform, parsePlatform, platformArchitecture } from './platforms.ts';
export type { RegistryHost, RegistryOptions, Rewrite } from './registry/registry.ts';
export { createImageStore, type ImageStore, type ImageStoreDeps, type ImportedImage } from './store.ts';
