/** Files encrypted with a key of this host. */
export { createSealedFiles, type SealedFilesOptions } from './sealed-files.ts';
