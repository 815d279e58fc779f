export { createSealedFiles, type SealedFilesOptions } from './sealed-files.ts';
