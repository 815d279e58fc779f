/**
 * Index of the catalogs that this process has read. It contains the position of each bundle, whose content is read only
 * when the bundle is installed.
 */
import { setImmediate as pause } from 'node:timers/promises';
import { parseAllDocuments, parseDocument } from 'yaml';
import { CodedError, messageOf } from '../../../../base/errors.ts';
import { parseJson } from '../../../../base/json/json.ts';
import {
  type Bundle,
  type BundleContent,
  bundleContent,
  type Catalog,
  CatalogBuilder,
  type DocumentSplitter,
  fieldsOf,
  jsonSplitter,
  LEGACY_KEYS,
  legacyDocuments,
  listOf,
  readBlob,
  textOf,
  yamlSplitter,
} from '../core/index.ts';
import type { CatalogDirectory, CatalogFile, CatalogFiles, CatalogPlace, OpenedCatalog } from './catalog-port.ts';

/** Size limits for a document, because its parsing blocks the event loop. */
const MAX_JSON_BYTES = 8 * 1024 * 1024;
const MAX_YAML_BYTES = 1024 * 1024;
const MAX_ALIASES = 100;
/** Number of bytes that are parsed before the event loop can run other work. */
const BATCH_BYTES = 256 * 1024;

export interface LoadedCatalog {
  readonly stamp: string;
  readonly address: string;
  readonly catalog: Catalog;
  readonly files: readonly CatalogFile[];
}

/** Bundle with the properties that its catalog declares. */
export interface LoadedBundle extends BundleContent {
  readonly properties: readonly unknown[];
}

export class CatalogStore {
  readonly #files: CatalogFiles | undefined;
  readonly #loaded = new Map<string, LoadedCatalog>();
  readonly #failures = new Map<string, string>();

  constructor(files: CatalogFiles | undefined) {
    this.#files = files;
  }

  get(key: string): LoadedCatalog | undefined {
    return this.#loaded.get(key);
  }

  /** Reason why the catalog could not be read. Undefined if it was read, or has not been read yet. */
  failure(key: string): string | undefined {
    return this.#failures.get(key);
  }

  /** Removes the catalog. Returns true if it was loaded. */
  forget(key: string): boolean {
    this.#failures.delete(key);
    return this.#loaded.delete(key);
  }

  /** Records that the catalog could not be read, and removes its content. Returns true if the reason is new. */
  fail(key: string, why: string): boolean {
    const isNew = this.#failures.get(key) !== why;
    this.#loaded.delete(key);
    this.#failures.set(key, why);
    return isNew;
  }

  /** Reads the catalog if it has changed. Returns true in this case. Throws a CodedError 'catalog'. */
  async loadPlace(key: string, place: CatalogPlace): Promise<boolean> {
    return this.#load(key, await this.#port().open(place));
  }

  /** Calls `CatalogFiles.copy`. Also returns undefined if the directory cannot be read. */
  copy(place: CatalogPlace): Promise<CatalogDirectory | undefined> {
    return this.#port()
      .copy(place)
      .catch(() => undefined);
  }

  async loadConfigMap(key: string, version: string, data: Readonly<Record<string, string>>): Promise<boolean> {
    return this.#load(key, configMapCatalog(key, version, data));
  }

  /** Reads the content of a bundle. Throws a CodedError 'catalog'. */
  async bundle(key: string, bundle: Bundle): Promise<LoadedBundle> {
    const document = fieldsOf(await this.#document(key, bundle));
    const properties = listOf(document['properties']).map(fieldsOf);
    const objects = bundle.hasObjects
      ? properties
          .filter((each) => each['type'] === 'olm.bundle.object')
          .map((each) => objectOf(fieldsOf(each['value']), bundle.name))
      : await this.#fromImage(bundle);
    const content = bundleContent(bundle.name, objects);
    if (typeof content === 'string') throw new CodedError('catalog', content);
    const kept = properties.filter(({ type }) => type !== 'olm.bundle.object' && type !== 'olm.csv.metadata');
    return { ...content, properties: kept };
  }

  /** Reads the CSV of a bundle or its property olm.csv.metadata, whichever the catalog contains. */
  async metadata(key: string, bundle: Bundle): Promise<unknown> {
    const properties = listOf(fieldsOf(await this.#document(key, bundle))['properties']).map(fieldsOf);
    const metadata = properties.find(({ type }) => type === 'olm.csv.metadata');
    if (metadata !== undefined) return metadata['value'];
    for (const { type, value } of properties) {
      if (type !== 'olm.bundle.object') continue;
      const object = fieldsOf(objectOf(fieldsOf(value), bundle.name));
      if (object['kind'] === 'ClusterServiceVersion') return object;
    }
    return undefined;
  }

  #port(): CatalogFiles {
    if (this.#files === undefined) throw new CodedError('catalog', 'catalogs of hosts cannot be read here');
    return this.#files;
  }

  async #load(key: string, opened: OpenedCatalog): Promise<boolean> {
    const { stamp, address, files } = opened;
    if (this.#loaded.get(key)?.stamp === stamp) return false;
    this.#failures.delete(key);
    const builder = new CatalogBuilder();
    for (const [index, file] of files.entries()) await readFile(file, index, builder);
    this.#loaded.set(key, { stamp, address, files, catalog: builder.finish() });
    return true;
  }

  async #document(key: string, { name, location }: Bundle): Promise<unknown> {
    const file = this.#loaded.get(key)?.files[location.file];
    if (file === undefined) throw new CodedError('catalog', `bundle ${name}: its catalog is being read again`);
    const document = parse(file.format, await file.read(location.offset, location.length), file.name);
    if (fieldsOf(document)['name'] !== name)
      throw new CodedError('catalog', `bundle ${name}: the catalog has changed while it was read`);
    return document;
  }

  async #fromImage({ name, image }: Bundle): Promise<unknown[]> {
    if (image === '') throw new CodedError('catalog', `bundle ${name}: has neither objects nor an image`);
    const objects: unknown[] = [];
    for (const text of await this.#port().bundle(image)) objects.push(...parseAll(text, `image ${image}`));
    return objects;
  }
}

async function readFile(file: CatalogFile, index: number, builder: CatalogBuilder): Promise<void> {
  const splitter: DocumentSplitter =
    file.format === 'json' ? jsonSplitter(MAX_JSON_BYTES) : yamlSplitter(MAX_YAML_BYTES);
  let sinceTurn = 0;
  const take = async (found: ReturnType<DocumentSplitter['push']>): Promise<void> => {
    for (const { offset, bytes } of found) {
      const document = parse(file.format, bytes, file.name);
      builder.add(readBlob(document), { file: index, offset, length: bytes.length });
      sinceTurn += bytes.length;
      if (sinceTurn < BATCH_BYTES) continue;
      sinceTurn = 0;
      await pause();
    }
  };
  try {
    for await (const chunk of file.chunks()) await take(splitter.push(chunk));
    await take(splitter.end());
  } catch (error) {
    if (error instanceof CodedError) throw error;
    throw new CodedError('catalog', `${file.name}: ${messageOf(error)}`, { cause: error });
  }
}

function parse(format: CatalogFile['format'], bytes: Uint8Array, name: string): unknown {
  const text = new TextDecoder().decode(bytes);
  try {
    return format === 'json' ? parseJson(text) : parseYaml(text);
  } catch (error) {
    throw new CodedError('catalog', `${name}: ${messageOf(error).split('\n', 1)[0]}`, { cause: error });
  }
}

function parseYaml(text: string): unknown {
  const document = parseDocument(text, { uniqueKeys: true });
  const [problem] = document.errors;
  if (problem !== undefined) throw new Error(problem.message);
  return document.toJS({ maxAliasCount: MAX_ALIASES });
}

function parseAll(text: string, name: string): unknown[] {
  if (text.length > MAX_JSON_BYTES) throw new CodedError('catalog', `${name}: a manifest is too large`);
  if (text.trimStart().startsWith('{')) return [parse('json', new TextEncoder().encode(text), name)];
  if (text.length > MAX_YAML_BYTES)
    throw new CodedError('catalog', `${name}: a YAML manifest is larger than ${MAX_YAML_BYTES} bytes; use JSON`);
  const documents = parseAllDocuments(text, { uniqueKeys: true });
  return (Array.isArray(documents) ? documents : []).flatMap((document) => {
    const [problem] = document.errors;
    if (problem !== undefined)
      throw new CodedError('catalog', `${name}: ${problem.message.split('\n', 1)[0]}`, { cause: problem });
    const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES });
    return value === null ? [] : [value];
  });
}

function objectOf(value: Readonly<Record<string, unknown>>, bundle: string): unknown {
  const data = textOf(value['data']);
  if (data === '') throw new CodedError('catalog', `bundle ${bundle}: an olm.bundle.object has no data`);
  const [object] = parseAll(Buffer.from(data, 'base64').toString('utf8'), `bundle ${bundle}`);
  return object;
}

/**
 * Opens a catalog in a ConfigMap. The ConfigMap contains files of a file-based catalog, or lists in the older format.
 */
function configMapCatalog(key: string, version: string, data: Readonly<Record<string, string>>): OpenedCatalog {
  const files: CatalogFile[] = [];
  if (LEGACY_KEYS.some((each) => data[each] !== undefined)) {
    const [packages, versions, definitions] = LEGACY_KEYS.map((each) =>
      parseAll(data[each] ?? '[]', `${key}: ${each}`).flat(),
    );
    const documents = legacyDocuments(packages, versions, definitions);
    files.push(textFile('packages', 'json', documents.map((each) => JSON.stringify(each)).join('\n')));
  }
  for (const [name, text] of Object.entries(data)) {
    if (/\.json$/.test(name)) files.push(textFile(name, 'json', text));
    else if (/\.ya?ml$/.test(name)) files.push(textFile(name, 'yaml', text));
  }
  if (files.length === 0)
    throw new CodedError('catalog', `configmap ${key}: has neither packages nor a key that ends in .yaml or .json`);
  return { address: `configmap://${key}`, stamp: `configmap:${version}`, files };
}

function textFile(name: string, format: CatalogFile['format'], text: string): CatalogFile {
  const bytes = Buffer.from(text);
  return {
    name,
    format,
    sizeBytes: bytes.length,
    async *chunks() {
      yield bytes;
    },
    read: async (offset, length) => bytes.subarray(offset, offset + length),
  };
}
