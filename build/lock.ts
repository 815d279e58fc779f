/** Verification of archives against the digests in `package-lock.json`. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';

interface LockedPackage {
  readonly version: string;
  /** Subresource integrity (W3C SRI): `sha512-<base64>`. */
  readonly integrity: string;
}

interface LockFile {
  readonly packages: Readonly<Record<string, { readonly version?: string; readonly integrity?: string }>>;
}

const LOCK = join(import.meta.dirname, '..', 'package-lock.json');

/** Reads a top-level package from the lock file. Throws if the package has no version and integrity there. */
export async function lockedPackage(name: string, lock = LOCK): Promise<LockedPackage> {
  const { packages } = JSON.parse(await readFile(lock, 'utf8')) as LockFile;
  const { version, integrity } = packages[`node_modules/${name}`] ?? {};
  if (version === undefined || integrity === undefined)
    throw new Error(`${basename(lock)}: ${name} has no version and integrity; run npm install`);
  return { version, integrity };
}

/** Verifies the digest of a file. Throws if the file does not have the expected digest. */
export async function checkIntegrity(file: string, integrity: string): Promise<void> {
  const [, algorithm, expected] = /^(sha512|sha384|sha256)-([A-Za-z0-9+/]+=*)$/.exec(integrity) ?? [];
  if (algorithm === undefined) throw new Error(`integrity ${integrity}: not a SHA-2 digest; run npm install`);
  const actual = createHash(algorithm)
    .update(await readFile(file))
    .digest('base64');
  if (actual !== expected)
    throw new Error(
      `${basename(file)}: ${algorithm}-${actual} is not the locked ${integrity}; the registry's archive was replaced`,
    );
}
