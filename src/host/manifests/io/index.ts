export { createManifestDirectory } from './manifest-directory.ts';
