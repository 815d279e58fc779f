/**
 * Manifest of a release bundle: `manifest.json` is the first member of the tar file, its Ed25519 signature the second.
 * The manifest lists name, size and digest of all other members, so that only its signature must be trusted.
 */
import { isReleaseVersion } from '../../base/versions/release-version.ts';

export const MANIFEST_NAME = 'manifest.json';
export const SIGNATURE_NAME = 'manifest.json.sig';
export const MAX_MANIFEST_BYTES = 64 * 1024;
/** Size limit of a file. An executable with its programs has about 130 MB. */
export const MAX_FILE_BYTES = 512 * 1024 * 1024;
export const ARCHITECTURES = ['x64', 'arm64'] as const;
const API_VERSION = 'hyperedge.dev/v1';
const KIND = 'ReleaseBundle';
export const OFFLINE_KIND = 'OfflineBundle';
const KUBERNETES = /^v\d{1,4}\.\d{1,4}\.\d{1,4}(?:[-+][0-9A-Za-z.+-]{1,64})?$/;
const CHANNEL = /^[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?$/;
const MAX_CHANNELS = 16;

export type Architecture = (typeof ARCHITECTURES)[number];

export interface ReleaseFile {
  /** For example `hyperedge-linux-x64`. */
  readonly name: string;
  readonly architecture: Architecture;
  readonly size: number;
  /** SHA-256 in hex. */
  readonly sha256: string;
}

export interface ReleaseManifest {
  readonly version: string;
  /** Kubernetes release that the executable implements, for example `v1.36.0+hyperedge1`. */
  readonly kubernetes: string;
  /** Update channels. Empty means all channels. */
  readonly channels: readonly string[];
  readonly files: readonly ReleaseFile[];
  /** Highest level of the store's log that the release can read. Absent: level 2. */
  readonly storeLevel?: number;
}

/** Store level of a release whose manifest or record contains none. */
export const UNSTATED_STORE_LEVEL = 2;

/** Store level that a release reads. `manifest` is undefined if the manifest of the release is unknown. */
export const storeLevelOf = (manifest: ReleaseManifest | undefined): number =>
  manifest?.storeLevel ?? UNSTATED_STORE_LEVEL;

export const releaseFileName = (architecture: Architecture): string => `hyperedge-linux-${architecture}`;

/** Text of the manifest, of which the signature is made. */
export function manifestText({ version, kubernetes, channels, files, storeLevel }: ReleaseManifest): string {
  const document = { apiVersion: API_VERSION, kind: KIND, version, kubernetes, channels, storeLevel, files };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

/** Parses a manifest. Returns an error text `field: problem` if it is invalid. */
export function parseManifest(text: string): ReleaseManifest | string {
  if (text.length > MAX_MANIFEST_BYTES) return `larger than ${MAX_MANIFEST_BYTES} bytes`;
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    return 'is not JSON';
  }
  if (!isObject(given)) return 'is not an object';
  const { apiVersion, kind, version, kubernetes, channels, files, storeLevel } = given;
  if (apiVersion === API_VERSION && kind === OFFLINE_KIND)
    return 'kind: this is an offline bundle; verify it with hyperedge version --check FILE';
  if (apiVersion !== API_VERSION || kind !== KIND) return `apiVersion, kind: must be ${API_VERSION}, ${KIND}`;
  if (typeof version !== 'string' || !isReleaseVersion(version)) return 'version: must be a version such as 1.2.3';
  if (typeof kubernetes !== 'string' || !KUBERNETES.test(kubernetes))
    return 'kubernetes: must be a version such as v1.36.0';
  if (!Array.isArray(channels) || channels.length > MAX_CHANNELS || !channels.every(isChannel))
    return `channels: must be at most ${MAX_CHANNELS} names such as stable`;
  if (storeLevel !== undefined && !isLevel(storeLevel)) return 'storeLevel: must be from 1 to 1000';
  if (!Array.isArray(files) || files.length === 0 || files.length > ARCHITECTURES.length)
    return 'files: must have an executable for each architecture';
  const parsed: ReleaseFile[] = [];
  for (const [index, each] of files.entries()) {
    const file = parseFile(each);
    if (typeof file === 'string') return `files[${index}].${file}`;
    if (parsed.some(({ architecture }) => architecture === file.architecture))
      return `files[${index}].architecture: ${file.architecture} is given twice`;
    parsed.push(file);
  }
  return { version, kubernetes, channels, files: parsed, ...(storeLevel === undefined ? {} : { storeLevel }) };
}

function parseFile(given: unknown): ReleaseFile | string {
  if (!isObject(given)) return 'name: missing';
  const { name, size, sha256 } = given;
  const architecture = ARCHITECTURES.find((each) => each === given['architecture']);
  if (architecture === undefined) return `architecture: must be one of ${ARCHITECTURES.join(', ')}`;
  if (name !== releaseFileName(architecture)) return `name: must be ${releaseFileName(architecture)}`;
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 1 || size > MAX_FILE_BYTES)
    return `size: must be from 1 to ${MAX_FILE_BYTES}`;
  if (typeof sha256 !== 'string' || !isDigest(sha256)) return 'sha256: must be 64 hexadecimal digits';
  return { name, architecture, size, sha256 };
}

export const isDigest = (text: string): boolean => /^[0-9a-f]{64}$/.test(text);

const isLevel = (value: unknown): value is number =>
  Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 1000;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isChannel = (value: unknown): value is string => typeof value === 'string' && CHANNEL.test(value);
