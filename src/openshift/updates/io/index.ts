/** Releases on disk and between hosts: bundles, files by digest, executables of several versions. */
export { type BundleKind, type ReadBundle, readBundle, readSigned, writeBundle, writeSigned } from './bundle.ts';
export { download, fromMasters, type Masters } from './download.ts';
export { createExecutables, GUARD_LINK } from './executables.ts';
export { DigestStore, digestOf } from './files.ts';
export { createVerifier, parseSigningKey, parseTrustedKey, signatureOf, verifySigned } from './keys.ts';
