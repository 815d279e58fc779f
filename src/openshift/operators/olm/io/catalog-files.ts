/** Operator catalogs in directories and images of this host. Their content is only read, never executed or unpacked. */

import { join, normalize, sep } from 'node:path';
import { CodedError, messageOf } from '../../../../base/errors.ts';
import { sha256Hex } from '../../../../wire/digest.ts';
import type { CatalogFile, CatalogFiles, CatalogPlace, OpenedCatalog } from '../controllers/catalog-port.ts';
import { CatalogDigests } from './digests.ts';
import { chunksOf } from './file-chunks.ts';
import { CATALOG, filesBelow, isCatalogFile, openFile, type TreeFile, type TreeLimits } from './tree.ts';

export interface CatalogImage {
  readonly id: string;
  /** Directories of the unpacked layers, from the top layer down. */
  readonly layers: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

export interface CatalogFilesDeps {
  /** Directory below which catalogs may be read. */
  readonly directory: string;
  /** Finds an image in this host's image store; undefined if it does not exist. */
  findImage(image: string): Promise<CatalogImage | undefined>;
}

const BUNDLE: TreeLimits = { maxFiles: 500, maxBytes: 16 * 1024 * 1024, maxDepth: 2 };
/** Labels of an image with the path of its catalog and of its manifests. Source: operator-registry. */
const CONFIGS_LABEL = 'operators.operatorframework.io.index.configs.v1';
const MANIFESTS_LABEL = 'operators.operatorframework.io.bundle.manifests.v1';
const CATALOGS = '/var/lib/origin/catalogs';

export function createCatalogFiles(deps: CatalogFilesDeps): CatalogFiles {
  const digests = new CatalogDigests(deps.directory);
  return {
    copy: async (place) => {
      if (place.kind !== 'directory') return undefined;
      const [name = ''] = belowDirectory(deps.directory, place.path).split('/');
      return { name, digest: (await digests.all())[name] };
    },
    open: (place) => reported(() => openCatalog(deps, place)),
    bundle: (image) => reported(() => readBundle(deps, image)),
  };
}

/** Converts file system errors to CodedErrors, so that messages contain no host path except the requested name. */
async function reported<T>(task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    if (error instanceof CodedError) throw error;
    throw new CodedError('catalog', `catalog cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

async function openCatalog(deps: CatalogFilesDeps, place: CatalogPlace): Promise<OpenedCatalog> {
  if (place.kind === 'image') {
    const image = await imageNamed(deps, place.image);
    const files = await filesBelow(image.layers, inside(image.labels[CONFIGS_LABEL] ?? '/configs'), CATALOG);
    return opened(place.image, files, image.id);
  }
  const below = belowDirectory(deps.directory, place.path);
  const files = await filesBelow([deps.directory], below, CATALOG);
  return opened(`file://${join(deps.directory, below)}`, files, '');
}

function opened(address: string, found: readonly TreeFile[], id: string): OpenedCatalog {
  const files = found.filter(({ name }) => isCatalogFile(name));
  if (files.length === 0)
    throw new CodedError('catalog', `${address}: has no catalog; put files that end in .yaml or .json there`);
  const stamps = files.map(({ name, stamp }) => `${name} ${stamp}`).join('\n');
  return {
    address,
    stamp: sha256Hex(`${id}\n${stamps}`),
    files: files.map(catalogFile),
  };
}

/** Path relative to the allowed directory. Absolute paths are written as on a host that runs without `--root`. */
function belowDirectory(directory: string, path: string): string {
  const own = path.startsWith(`${CATALOGS}/`) ? join(directory, path.slice(CATALOGS.length)) : path;
  const absolute = normalize(own.startsWith('/') ? own : join(directory, own));
  const root = directory.endsWith(sep) ? directory : `${directory}${sep}`;
  if (path.includes('\0') || !`${absolute}${sep}`.startsWith(root))
    throw new CodedError('catalog', `${path.slice(0, 256)}: is not below ${directory}; move the catalog there`);
  return absolute.slice(root.length).replace(/\/+$/, '');
}

/** Path relative to the root of an image. As in a container, `..` cannot lead out of the root. */
const inside = (path: string): string => normalize(`/${path}`).replace(/^\/+/, '').replace(/\/+$/, '');

async function imageNamed(deps: CatalogFilesDeps, name: string): Promise<CatalogImage> {
  const image = await deps.findImage(name);
  if (image === undefined)
    throw new CodedError(
      'catalog',
      `image ${name.slice(0, 256)}: is not in the store of this host; import it with hyperedge image import`,
    );
  return image;
}

async function readBundle(deps: CatalogFilesDeps, name: string): Promise<string[]> {
  const image = await imageNamed(deps, name);
  const files = await filesBelow(image.layers, inside(image.labels[MANIFESTS_LABEL] ?? '/manifests'), BUNDLE);
  const manifests = files.filter((each) => isCatalogFile(each.name));
  if (manifests.length === 0) throw new CodedError('catalog', `image ${name}: has no manifests`);
  const texts: string[] = [];
  for (const { path, sizeBytes } of manifests) texts.push((await readAt(path, 0, sizeBytes)).toString('utf8'));
  return texts;
}

function catalogFile({ name, path, sizeBytes }: TreeFile): CatalogFile {
  return {
    name,
    format: name.endsWith('.json') ? 'json' : 'yaml',
    sizeBytes,
    chunks: () => chunksOf(path, sizeBytes),
    read: (offset, length) => reported(() => readAt(path, offset, length)),
  };
}

async function readAt(path: string, offset: number, length: number): Promise<Buffer> {
  const file = await openFile(path);
  try {
    const buffer = Buffer.alloc(length);
    let filled = 0;
    while (filled < length) {
      const { bytesRead } = await file.read(buffer, filled, length - filled, offset + filled);
      if (bytesRead === 0) throw new CodedError('catalog', 'catalog has changed while it was read');
      filled += bytesRead;
    }
    return buffer;
  } finally {
    await file.close();
  }
}
