/**
 * `hyperedge install --from`: installs a host from an offline bundle. No file is installed before the whole bundle is
 * verified.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, copyFile, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ARCHITECTURES } from '../../api/releases/manifest.ts';
import type { OfflineFile, OfflineManifest } from '../../api/releases/offline.ts';
import { adding, type Progress, transferring } from '../../base/command-line/progress.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import { countText } from '../../base/text/count-text.ts';
import { DigestStore, digestOf } from '../../openshift/updates/io/index.ts';
import { canonicalRoot } from '../config/paths.ts';
import type { Settings } from '../config/settings.ts';
import { openImportStore } from '../node/images.ts';
import { trustedKeys } from '../openshift/release-trust.ts';
import { type InstallOptions, install } from './install.ts';
import { readOffline } from './offline-bundle.ts';

export interface OfflineInstallOptions extends Omit<InstallOptions, 'payload'> {
  readonly from: string;
  /** Path of a public key. By default, the key of this executable's release is trusted. */
  readonly key: string | undefined;
  /** Arguments of this call. They are passed to the bundle's executable if that differs from this one. */
  readonly argv: readonly string[];
  /** Shows the progress of the verification and of the image imports. */
  readonly progress: Progress;
}

const STAGING = 'var/cache/hyperedge';

/** Installs the host. Resolves with the exit code. Throws CodedErrors of one line with the fix. */
export async function installFrom(options: OfflineInstallOptions): Promise<number> {
  if (process.geteuid?.() !== 0) throw new CodedError('not-root', 'install: needs root; run it with sudo');
  const root = await canonicalRoot(options.root);
  const keys = await trustedKeys({ key: options.key, root });
  const own = await digestOf(process.execPath);
  await mkdir(join(root, STAGING), { recursive: true, mode: 0o700 });
  const directory = await mkdtemp(join(root, STAGING, '.offline-'));
  try {
    const store = new DigestStore(directory);
    const { progress } = options;
    const transfer = progress.transfer(`verifying ${options.from}`);
    let onBytes = adding(0, undefined);
    const { manifest } = await readOffline(options.from, keys, {
      wants: (file) => isWanted(file, own),
      prepare: async (given) => {
        executableOf(options.from, given);
        const wanted = given.files.filter((file) => isWanted(file, own));
        await store.checkSpace(wanted.reduce((sum, { size }) => sum + size, 0));
        onBytes = adding(
          given.files.reduce((sum, { size }) => sum + size, 0),
          transfer.update,
        );
      },
      add: async (file, content) => void (await store.add(file, content)),
      onBytes: (bytes) => onBytes(bytes),
    }).catch((error: unknown) => {
      transfer.abandon();
      throw error;
    });
    transfer.end();
    options.write(
      `${options.from}: release ${manifest.version}, verified ${countText(manifest.files.length, 'file')}\n`,
    );
    const executable = executableOf(options.from, manifest);
    if (executable.sha256 !== own) return await runOther(join(directory, executable.sha256), options.argv);
    const given = options.offer ?? options.handover ?? options.join;
    return await install({
      ...options,
      join: given === undefined ? manifest.join : options.join,
      payload: (settings) => placePayload(settings, manifest, directory, options),
    });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** The bundle's executable for this machine. Throws CodedError 'bad-bundle'. */
function executableOf(path: string, { files }: OfflineManifest): OfflineFile {
  const found = files.find(({ role, architecture }) => role === 'executable' && architecture === process.arch);
  if (found !== undefined) return found;
  const others = ARCHITECTURES.filter((each) => files.some((file) => file.architecture === each)).join(', ');
  throw new CodedError(
    'bad-bundle',
    `${path}: has no executable for ${process.arch}, only for ${others || 'none'}; use the bundle of this architecture`,
  );
}

function isWanted({ role, architecture, sha256 }: OfflineFile, own: string): boolean {
  if (role === 'executable') return architecture === process.arch && sha256 !== own;
  return role === 'image' || role === 'manifest';
}

/** Runs the executable of the bundle, which installs itself with its own units and programs. */
async function runOther(path: string, argv: readonly string[]): Promise<number> {
  await chmod(path, 0o755);
  const child = spawn(path, argv, { stdio: 'inherit' });
  const [code] = await once(child, 'close');
  return typeof code === 'number' ? code : 1;
}

/**
 * Imports the images and then places the manifests, because a manifest may start pods immediately. Throws CodedErrors
 * that name the file.
 */
async function placePayload(
  settings: Settings,
  { files }: OfflineManifest,
  directory: string,
  { write, progress }: Pick<OfflineInstallOptions, 'write' | 'progress'>,
): Promise<void> {
  const store = await openImportStore(settings.root, undefined);
  for (const { sha256, name } of files.filter(({ role }) => role === 'image')) {
    const images = await transferring(progress, `importing ${name}`, (onProgress) =>
      store.importArchive(join(directory, sha256), undefined, (_stage, done, total) => onProgress(done, total)),
    ).catch((error: unknown) => {
      const why = messageOf(error).replaceAll(join(directory, sha256), 'it');
      throw new CodedError('bad-archive', `${name}: ${why}`, { cause: error });
    });
    for (const image of images) write(`imported ${image.names.join(', ')}\n`);
  }
  const target = settings.embedded.manifests;
  if (target === undefined || !settings.roles.has('master')) return;
  await mkdir(target, { recursive: true, mode: 0o700 });
  for (const { sha256, name } of files.filter(({ role }) => role === 'manifest')) {
    // The file is renamed into the deploy directory, because a partial file would be applied.
    const temporary = join(target, `.${name}.new`);
    await copyFile(join(directory, sha256), temporary);
    await chmod(temporary, 0o600);
    await rename(temporary, join(target, name));
    write(`placed ${join(target, name)}\n`);
  }
}
