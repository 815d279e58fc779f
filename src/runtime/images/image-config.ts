/** Parses OCI and Docker image configurations and manifests (OCI image specification v1), which are untrusted. */

import type { ImageConfig } from '../oci/port.ts';
import { RuntimeError } from '../port.ts';
import { strings } from './layout.ts';
import type { ImagePlatform } from './platforms.ts';
import { isDigest } from './reference.ts';

export const MAX_DOCUMENT_BYTES = 4 * 1024 * 1024;
/** Maximum number of lower directories in overlayfs. */
const MAX_LAYERS = 500;

export interface ParsedConfig {
  readonly config: ImageConfig;
  readonly diffIds: readonly string[];
  readonly platform: ImagePlatform;
}

export interface Descriptor {
  readonly digest: string;
  readonly size: number;
  readonly mediaType: string;
  readonly platform: ImagePlatform | undefined;
  /** `org.opencontainers.image.ref.name` and other annotations. */
  readonly annotations: ReadonlyMap<string, string>;
}

export type ParsedManifest =
  | { readonly kind: 'index'; readonly manifests: readonly Descriptor[] }
  | { readonly kind: 'image'; readonly config: Descriptor; readonly layers: readonly Descriptor[] };

export function parseImageConfig(bytes: Uint8Array, what: string): ParsedConfig {
  const document = parseObject(bytes, what);
  const config = objectOf(document['config']);
  const diffIds = strings(objectOf(document['rootfs'])['diff_ids']);
  if (diffIds.length > MAX_LAYERS) throw refused(what, `more than ${MAX_LAYERS} layers`);
  if (!diffIds.every(isDigest)) throw refused(what, 'a diff id is not a sha256 digest');
  return {
    diffIds,
    platform: platformIn(document),
    config: {
      entrypoint: strings(config['Entrypoint']),
      cmd: strings(config['Cmd']),
      env: strings(config['Env']),
      workingDir: textOf(config['WorkingDir']),
      user: textOf(config['User']),
      stopSignal: textOf(config['StopSignal']),
    },
  };
}

export function parseManifest(bytes: Uint8Array, what: string): ParsedManifest {
  const document = parseObject(bytes, what);
  if (Array.isArray(document['manifests'])) {
    return { kind: 'index', manifests: document['manifests'].map((item) => parseDescriptor(item, what)) };
  }
  if (!Array.isArray(document['layers']))
    throw refused(what, 'neither an image manifest nor an index (schema 1 is not supported)');
  if (document['layers'].length > MAX_LAYERS) throw refused(what, `more than ${MAX_LAYERS} layers`);
  return {
    kind: 'image',
    config: parseDescriptor(document['config'], what),
    layers: document['layers'].map((item) => parseDescriptor(item, what)),
  };
}

export function parseObject(bytes: Uint8Array, what: string): Record<string, unknown> {
  if (bytes.length > MAX_DOCUMENT_BYTES) throw refused(what, 'larger than 4 MiB');
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch {
    throw refused(what, 'not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw refused(what, 'not a JSON object');
  return objectOf(value);
}

function parseDescriptor(value: unknown, what: string): Descriptor {
  const raw = objectOf(value);
  const digest = textOf(raw['digest']);
  const size = raw['size'];
  if (!isDigest(digest)) throw refused(what, `the digest ${JSON.stringify(digest.slice(0, 100))} is not sha256`);
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0) throw refused(what, 'a size is not valid');
  const platform = raw['platform'] === undefined ? undefined : objectOf(raw['platform']);
  return {
    digest,
    size,
    mediaType: textOf(raw['mediaType']),
    platform: platform === undefined ? undefined : platformIn(platform),
    annotations: new Map(
      Object.entries(objectOf(raw['annotations'])).flatMap(([key, text]) =>
        typeof text === 'string' ? [[key, text]] : [],
      ),
    ),
  };
}

/** Copies an object without a prototype, so that no key of the document has a special meaning. */
export function objectOf(value: unknown): Record<string, unknown> {
  const copy: Record<string, unknown> = Object.create(null);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return copy;
  for (const [key, item] of Object.entries(value)) copy[key] = item;
  return copy;
}

const platformIn = (raw: Readonly<Record<string, unknown>>): ImagePlatform => ({
  os: textOf(raw['os']),
  architecture: textOf(raw['architecture']),
  variant: textOf(raw['variant']),
});

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const refused = (what: string, why: string): RuntimeError =>
  new RuntimeError('image-pull', `${what} is refused: ${why}`);
