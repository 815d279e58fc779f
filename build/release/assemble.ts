/** Files of a release, made from finished executables. The output depends on the options only. */
import type { KeyObject } from 'node:crypto';
import { chmod, copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createOffline, type OfflineOptions } from '../../src/host/install/offline-bundle.ts';
import { releaseNotes } from './notes.ts';
import { type Architecture, debName, writePackage } from './package-files.ts';
import { type BundledPackage, sbomText } from './sbom.ts';
import { writeSums } from './sums.ts';

export interface ReleaseOptions {
  /** Directory for the files. Its content is replaced after all files are written. */
  readonly directory: string;
  readonly version: string;
  /** Modification time of all files, in seconds since 1970. */
  readonly epoch: number;
  readonly key: KeyObject;
  readonly executables: ReadonlyMap<Architecture, string>;
  /** Bundled Debian packages by Debian architecture. */
  readonly bundled: ReadonlyMap<string, readonly BundledPackage[]>;
  /** Path of package-lock.json. */
  readonly lock: string;
  readonly changelog: string;
  /** Content of the offline bundle in addition to executables and packages. Undefined: no offline bundle is written. */
  readonly offline?: Pick<OfflineOptions, 'images' | 'manifests' | 'join'>;
  readonly say: (line: string) => void;
}

/** Writes a release. If it throws, the error contains the fix, and an earlier release in the directory is unchanged. */
export async function assembleRelease(options: ReleaseOptions): Promise<void> {
  const { directory, version, epoch, key, executables, bundled, say } = options;
  const notes = releaseNotes(await readFile(options.changelog, 'utf8'), version);
  const work = `${directory}.work`;
  await rm(work, { recursive: true, force: true });
  await mkdir(work, { recursive: true });
  try {
    for (const [architecture, executable] of executables) {
      const name = `hyperedge-linux-${architecture}`;
      await copyFile(executable, join(work, name));
      await chmod(join(work, name), 0o755);
      const deb = debName(version, architecture);
      await writePackage(join(work, deb), { executable, architecture, version, epoch, notes });
      say(`${name}, ${deb}`);
    }
    const lock = JSON.parse(await readFile(options.lock, 'utf8'));
    await writeFile(join(work, `hyperedge-${version}.cdx.json`), sbomText({ version, epoch, lock, bundled }));
    await writeFile(join(work, 'RELEASE-NOTES.md'), notes);
    if (options.offline !== undefined) {
      const bundle = join(work, `hyperedge-${version}.offline`);
      const packages = [...executables.keys()].map((each) => join(work, debName(version, each)));
      await createOffline({ ...options.offline, bundle, version, key, executables, packages });
      say(`hyperedge-${version}.offline`);
    }
    await writeSums(work, key);
    await rm(directory, { recursive: true, force: true });
    await rename(work, directory);
  } catch (error) {
    await rm(work, { recursive: true, force: true });
    throw error;
  }
}
