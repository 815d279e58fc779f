/** `hyperedge bundle`: creates, verifies, imports and lists releases as signed files. */

import { execFile } from 'node:child_process';
import { createHash, type KeyObject } from 'node:crypto';
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { isApiError } from '../../api/meta/status.ts';
import {
  announcementConfigMap,
  announcementName,
  announcementOf,
  KEYS_NAME,
  KEYS_NAMESPACE,
  RELEASE_LABEL,
  RELEASE_NAMESPACE,
} from '../../api/releases/announcement.ts';
import { ARCHITECTURES, parseManifest, type ReleaseManifest, releaseFileName } from '../../api/releases/manifest.ts';
import type { OfflineManifest } from '../../api/releases/offline.ts';
import { resources } from '../../api/resources.ts';
import { adding, counted, type OnProgress } from '../../base/command-line/progress.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import { compareReleases, isReleaseVersion } from '../../base/versions/release-version.ts';
import { KUBERNETES_VERSION, PRODUCT_VERSION } from '../../base/versions/version.ts';
import type { ApiClient } from '../../client/index.ts';
import type { ClusterVersion } from '../../openshift/operators/kinds/config/types.ts';
import {
  DigestStore,
  digestOf,
  parseSigningKey,
  parseTrustedKey,
  type ReadBundle,
  readBundle,
  writeBundle,
} from '../../openshift/updates/io/index.ts';
import { masterFiles } from '../../pki/index.ts';
import { NEWEST_LEVEL } from '../../store/index.ts';
import { loadSettings } from '../config/settings.ts';
import { createOffline, isOfflineBundle, type OfflineOptions, readOffline } from '../install/offline-bundle.ts';
import { openClient } from '../process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';
import { checkMachine } from './executable-machine.ts';
import { keyFrom, keysOf, trustedKeys } from './release-trust.ts';

export interface CreateOptions {
  readonly bundle: string;
  readonly key: string;
  readonly executables: ReadonlyMap<string, string>;
  readonly channels: readonly string[];
  /** Required unless an executable for this host's architecture is given, which reports its version. */
  readonly version: string | undefined;
  readonly kubernetes: string | undefined;
}

const PROGRESS_MS = 20_000;

/** Creates a bundle and resolves with its manifest. Throws CodedErrors that name the flag or the file. */
export async function createBundle(options: CreateOptions, onProgress?: OnProgress): Promise<ReleaseManifest> {
  const key = await keyFrom(options.key, parseSigningKey);
  const own = options.executables.get(process.arch);
  const shown = own === undefined ? undefined : await versionOf(own);
  const version = shown?.version ?? options.version;
  const kubernetes = shown?.kubernetes ?? options.kubernetes ?? KUBERNETES_VERSION.gitVersion;
  if (version === undefined || !isReleaseVersion(version))
    throw new CodedError('bad-flag', `--version: give the version of the executables, such as ${PRODUCT_VERSION}`);
  if (options.version !== undefined && options.version !== version)
    throw new CodedError('bad-flag', `--version: ${own} is version ${version}`);
  const files = [];
  const sources = new Map<string, string>();
  const onBytes = adding(await workOf(options.executables.values()), onProgress);
  for (const architecture of ARCHITECTURES) {
    const path = options.executables.get(architecture);
    if (path === undefined) continue;
    const { size } = await stat(path).catch((error: unknown) => {
      throw new CodedError('unreadable', `--${architecture}: ${messageOf(error)}`, { cause: error });
    });
    await checkMachine(path, architecture);
    const name = releaseFileName(architecture);
    sources.set(name, path);
    files.push({ name, architecture, size, sha256: await digestOf(path, onBytes) });
  }
  const manifest: ReleaseManifest = { version, kubernetes, channels: options.channels, files, ...levelOf(version) };
  const checked = parseManifest(JSON.stringify({ apiVersion: 'hyperedge.dev/v1', kind: 'ReleaseBundle', ...manifest }));
  if (typeof checked === 'string') throw new CodedError('bad-flag', checked);
  await writeBundle(options.bundle, manifest, sources, key, onBytes);
  return manifest;
}

/** Number of bytes to read for a bundle of these files. Each file is read twice: for its digest and for the bundle. */
async function workOf(paths: Iterable<string>): Promise<number> {
  const sizes = await Promise.all(
    [...paths].map((path) =>
      stat(path).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, size) => sum + 2 * size, 0);
}

/** The store level of this release. The levels of other releases are unknown. */
const levelOf = (version: string): Pick<ReleaseManifest, 'storeLevel'> =>
  version === PRODUCT_VERSION ? { storeLevel: NEWEST_LEVEL } : {};

async function versionOf(path: string): Promise<{ readonly version: string; readonly kubernetes: string }> {
  try {
    // A name without a directory means a file of the working directory. execFile would search it in PATH.
    const { stdout } = await promisify(execFile)(resolve(path), ['version', '-o', 'json'], {
      timeout: PROGRESS_MS,
      env: { PATH: process.env['PATH'] },
    });
    const { hyperedge, kubernetes } = JSON.parse(stdout);
    return { version: String(hyperedge), kubernetes: String(kubernetes) };
  } catch (error) {
    throw new CodedError('bad-executable', `${path} version: ${messageOf(error).split('\n')[0]}`, { cause: error });
  }
}

/** Creates an offline bundle with executables of this release. Throws CodedErrors that name the flag or the file. */
export async function createOfflineBundle(
  options: Omit<OfflineOptions, 'key' | 'version' | 'onBytes'> & { readonly key: string },
  onProgress?: OnProgress,
): Promise<OfflineManifest> {
  const key = await keyFrom(options.key, parseSigningKey);
  const own = options.executables.get(process.arch);
  const version = own === undefined ? PRODUCT_VERSION : (await versionOf(own)).version;
  const { executables, packages, images, manifests } = options;
  const onBytes = adding(await workOf([...executables.values(), ...packages, ...images, ...manifests]), onProgress);
  return createOffline({ ...options, key, version, onBytes });
}

export interface Comparison {
  readonly version: string;
  readonly architectures: readonly string[];
  /** Whether the bundle has exactly the given executable. */
  readonly isSame: boolean;
}

/** Verifies a release bundle or offline bundle and compares its executable for this architecture with `executable`. */
export async function compareBundle(
  bundle: string,
  executable: string,
  options: { readonly key: string | undefined; readonly root: string | undefined },
): Promise<Comparison> {
  const manifest = await readEither(bundle, options);
  const executables = manifest.files.filter((file) => !('role' in file) || file.role === 'executable');
  const own = executables.find(({ architecture }) => architecture === process.arch);
  return {
    version: manifest.version,
    architectures: executables.map(({ architecture }) => architecture ?? ''),
    isSame: own !== undefined && own.sha256 === (await digestOf(executable)),
  };
}

async function readEither(
  bundle: string,
  options: { readonly key: string | undefined; readonly root: string | undefined },
): Promise<ReleaseManifest | OfflineManifest> {
  if (!(await isOfflineBundle(bundle))) return (await verifyBundle(bundle, options)).manifest;
  return (await readOffline(bundle, await trustedKeys(options), undefined)).manifest;
}

/**
 * Verifies the signature and all files of a bundle. `key`: path of a public key to use instead of those that this host
 * trusts.
 */
export async function verifyBundle(
  bundle: string,
  options: { readonly key: string | undefined; readonly root: string | undefined },
  onProgress?: OnProgress,
): Promise<ReadBundle> {
  const keys = await trustedKeys(options);
  let onBytes = adding(0, onProgress);
  return readBundle(
    bundle,
    keys,
    async ({ manifest }) => {
      onBytes = adding(bytesOf(manifest), onProgress);
    },
    async ({ sha256 }, content) => {
      const hash = createHash('sha256');
      for await (const chunk of counted(content, onBytes)) hash.update(chunk);
      if (hash.digest('hex') !== sha256)
        throw new CodedError('bad-file', 'the file does not have its announced SHA-256');
    },
  );
}

const bytesOf = ({ files }: ReleaseManifest): number => files.reduce((sum, { size }) => sum + size, 0);

export interface ImportOptions {
  readonly root: string | undefined;
  /** Whether to accept a release that is older than the cluster's version. */
  readonly force: boolean;
}

/** Stores the files on this master, then announces the release to the cluster. */
export async function importBundle(
  bundle: string,
  { root, force }: ImportOptions,
  onProgress?: OnProgress,
): Promise<ReadBundle> {
  return onMaster(root, async ({ client, store, ownKeys }) => {
    const map = await client
      .resource(resources.configMaps)
      .get(KEYS_NAME, KEYS_NAMESPACE)
      .catch((error: unknown) => {
        if (isApiError(error, 'NotFound')) return undefined;
        throw error;
      });
    const keys = [...ownKeys, ...keysOf(map, () => {})];
    const current = await currentVersion(client);
    let onBytes = adding(0, onProgress);
    const read = await readBundle(
      bundle,
      keys,
      async ({ manifest }) => {
        const { version } = manifest;
        if (!force && current !== undefined && compareReleases(version, current) < 0) {
          throw new CodedError(
            'downgrade',
            `${bundle}: release ${version} is older than ${current}, the version of the cluster; --force accepts it`,
          );
        }
        await store.checkSpace(bytesOf(manifest));
        onBytes = adding(bytesOf(manifest), onProgress);
      },
      async (file, content) => {
        await store.add(file, counted(content, onBytes));
      },
    );
    const name = announcementName(read.manifest);
    const announced = announcementConfigMap({ name, text: read.text, signature: read.signature });
    const maps = client.resource(resources.configMaps);
    const present = await maps.list({ namespace: RELEASE_NAMESPACE, labelSelector: RELEASE_LABEL });
    const same = present.items.find(({ metadata }) => metadata?.name === name);
    if (same === undefined) await maps.create(announced);
    else if (announcementOf(same).text !== read.text)
      throw new CodedError('exists', `${bundle}: another release ${read.manifest.version} exists; remove it first`);
    return read;
  });
}

export interface ListedRelease {
  readonly version: string;
  readonly kubernetes: string;
  readonly architectures: readonly string[];
  readonly channels: readonly string[];
  /** Whether this master has all files of the release. */
  readonly complete: boolean;
}

/** Releases that are announced in the cluster, newest first. */
export async function listReleases(root: string | undefined): Promise<ListedRelease[]> {
  return onMaster(root, async ({ client, store }) => {
    const options = { namespace: RELEASE_NAMESPACE, labelSelector: RELEASE_LABEL };
    const { items } = await client.resource(resources.configMaps).list(options);
    const listed: ListedRelease[] = [];
    for (const map of items) {
      const manifest = parseManifest(announcementOf(map).text);
      if (typeof manifest === 'string') continue;
      const { version, kubernetes, channels, files } = manifest;
      const paths = await Promise.all(files.map(({ sha256 }) => store.pathOf(sha256)));
      const architectures = files.map(({ architecture }) => architecture);
      listed.push({
        version,
        kubernetes,
        channels,
        architectures,
        complete: paths.every((path) => path !== undefined),
      });
    }
    return listed.sort((a, b) => compareReleases(b.version, a.version));
  });
}

/**
 * Deletes the announcement of a release; the masters then remove its files. Throws CodedErrors 'not-found' and
 * 'in-use'.
 */
export async function removeRelease(root: string | undefined, version: string): Promise<void> {
  await onMaster(root, async ({ client }) => {
    const object = await clusterVersion(client);
    if (object?.spec?.desiredUpdate?.version === version && object.status?.history?.[0]?.state === 'Partial')
      throw new CodedError(
        'in-use',
        `release ${version}: the update of the cluster to this release is in progress; cancel the update first`,
      );
    try {
      await client.resource(resources.configMaps).delete(`release-${version}`, RELEASE_NAMESPACE);
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
      throw new CodedError('not-found', `release ${version}: does not exist; see hyperedge bundle list`);
    }
  });
}

interface OnMaster {
  readonly client: ApiClient;
  readonly store: DigestStore;
  readonly ownKeys: readonly KeyObject[];
}

async function onMaster<T>(root: string | undefined, act: (master: OnMaster) => Promise<T>): Promise<T> {
  const settings = await loadSettings({ root });
  const { adminKubeconfig } = masterFiles(settings.root);
  if (!existsSync(adminKubeconfig))
    throw new CodedError(
      'no-master',
      `${adminKubeconfig} is missing: run the command on a master, with its --root if it has one`,
    );
  const hold = setInterval(() => {}, 1 << 30);
  const context = { clock, random, log: silentLog };
  const opened = await openClient(adminKubeconfig, 'hyperedge-bundle', context);
  try {
    return await act({
      client: opened.client,
      store: new DigestStore(settings.paths.releases),
      ownKeys: settings.updates.keys.map(parseTrustedKey),
    });
  } finally {
    clearInterval(hold);
    await opened.close();
  }
}

async function clusterVersion(client: ApiClient): Promise<ClusterVersion | undefined> {
  try {
    return await client.resource(resources.clusterVersions).get('version');
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}

const currentVersion = async (client: ApiClient): Promise<string | undefined> =>
  (await clusterVersion(client))?.status?.history?.find(({ state }) => state === 'Completed')?.version;
