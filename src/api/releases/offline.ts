/**
 * Manifest of an offline bundle: one file for a host without a network. Like a release bundle it is a tar with
 * `manifest.json`, its signature, and the files in the manifest's order.
 */
import { isReleaseVersion } from '../../base/versions/release-version.ts';
import { ARCHITECTURES, type Architecture, isDigest, MAX_FILE_BYTES, OFFLINE_KIND } from './manifest.ts';

export const MAX_OFFLINE_MANIFEST_BYTES = 256 * 1024;
const API_VERSION = 'hyperedge.dev/v1';
const MAX_FILES = 500;
const MAX_TEXT = 512;
const GIB = 1024 * 1024 * 1024;
/** Maximum file sizes by role. A Kubernetes manifest has the same limit as a file in the deploy directory. */
const MAX_BYTES = { executable: MAX_FILE_BYTES, package: MAX_FILE_BYTES, image: 16 * GIB, manifest: 8 * 1024 * 1024 };
export const MAX_OFFLINE_BYTES = 64 * GIB;
/** Names of files in a bundle. Manifests keep their name in the deploy directory, so a name contains no path. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._~+-]{0,127}$/;
const MANIFEST_FILE = /\.(?:yaml|yml|json)$/;

export type OfflineRole = keyof typeof MAX_BYTES;

export interface OfflineFile {
  readonly name: string;
  readonly role: OfflineRole;
  /** Present for executables and packages. */
  readonly architecture?: Architecture;
  readonly size: number;
  /** SHA-256 in hex. */
  readonly sha256: string;
}

export interface JoinParameters {
  readonly server: string;
  readonly token: string;
  readonly caHash: string;
}

export interface OfflineManifest {
  readonly version: string;
  readonly files: readonly OfflineFile[];
  /** The cluster to which hosts installed from the bundle belong. */
  readonly join?: JoinParameters;
}

/** Text of the manifest, of which the signature is made. */
export const offlineText = ({ version, join, files }: OfflineManifest): string =>
  `${JSON.stringify({ apiVersion: API_VERSION, kind: OFFLINE_KIND, version, join, files }, undefined, 2)}\n`;

/** Parses a manifest. Returns an error text `field: problem` if it is invalid. */
export function parseOfflineManifest(text: string): OfflineManifest | string {
  if (text.length > MAX_OFFLINE_MANIFEST_BYTES) return `larger than ${MAX_OFFLINE_MANIFEST_BYTES} bytes`;
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    return 'is not JSON';
  }
  if (!isObject(given)) return 'is not an object';
  const { apiVersion, kind, version, files, join } = given;
  if (apiVersion !== API_VERSION || kind !== OFFLINE_KIND)
    return `apiVersion, kind: must be ${API_VERSION}, ${OFFLINE_KIND}`;
  if (typeof version !== 'string' || !isReleaseVersion(version)) return 'version: must be a version such as 1.2.3';
  if (!Array.isArray(files) || files.length === 0 || files.length > MAX_FILES)
    return `files: must be from 1 to ${MAX_FILES}`;
  const parsed: OfflineFile[] = [];
  for (const [index, each] of files.entries()) {
    const file = parseFile(each);
    if (typeof file === 'string') return `files[${index}].${file}`;
    if (parsed.some(({ name }) => name === file.name)) return `files[${index}].name: ${file.name} is given twice`;
    parsed.push(file);
  }
  if (join === undefined) return { version, files: parsed };
  const parameters = parseJoin(join);
  return typeof parameters === 'string' ? `join.${parameters}` : { version, files: parsed, join: parameters };
}

function parseFile(given: unknown): OfflineFile | string {
  if (!isObject(given)) return 'name: missing';
  const { name, role, size, sha256 } = given;
  if (typeof name !== 'string' || !NAME.test(name)) return 'name: must be a file name of letters, digits and . _ ~ + -';
  if (!isRole(role)) return `role: must be one of ${Object.keys(MAX_BYTES).join(', ')}`;
  if (role === 'manifest' && !MANIFEST_FILE.test(name)) return 'name: a manifest must end in .yaml, .yml or .json';
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 1 || size > MAX_BYTES[role])
    return `size: must be from 1 to ${MAX_BYTES[role]}`;
  if (typeof sha256 !== 'string' || !isDigest(sha256)) return 'sha256: must be 64 hexadecimal digits';
  if (role !== 'executable' && role !== 'package') return { name, role, size, sha256 };
  const architecture = ARCHITECTURES.find((each) => each === given['architecture']);
  if (architecture === undefined) return `architecture: must be one of ${ARCHITECTURES.join(', ')}`;
  return { name, role, architecture, size, sha256 };
}

function parseJoin(given: unknown): JoinParameters | string {
  if (!isObject(given)) return 'server: missing';
  const { server, token, caHash } = given;
  if (!isShort(server)) return 'server: must be a URL';
  if (!isShort(token)) return 'token: must be a token';
  if (!isShort(caHash)) return 'caHash: must be a hash';
  return { server, token, caHash };
}

const isRole = (value: unknown): value is OfflineRole => typeof value === 'string' && Object.hasOwn(MAX_BYTES, value);

const isShort = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= MAX_TEXT;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
