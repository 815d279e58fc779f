import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { JsonObject } from '../../api/meta/object.ts';
import { isHostRootImage } from '../../api/podspec/host-root-image.ts';
import { adding } from '../../base/command-line/progress.ts';
import { decodeJson, fields, own } from '../../base/decode.ts';
import { ignore, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { contentDigest } from '../../wire/digest.ts';
import type { Trees } from '../directory-removal/port.ts';
import type { HeldImage, ImageConfig, ImageStorePort } from '../oci/port.ts';
import { type ImageStatus, type OnPullProgress, type RegistryAuth, RuntimeError } from '../port.ts';
import { readArchive } from './archive.ts';
import { type ExportedImage, exportImages } from './export.ts';
import { type Descriptor, parseImageConfig, parseManifest } from './image-config.ts';
import { createLayerStore, type LayerSource } from './layers/layers.ts';
import {
  holdFile,
  imageFile,
  type ListedImage,
  listImages,
  listImagesInUse,
  listPins,
  listRefs,
  makeLayout,
  names,
  ownerOf,
  pinFile,
  readImage,
  readJson,
  readRef,
  refFile,
  removeFile,
  type StoredImage,
  type StoredRef,
  storeLayout,
  temporaryName,
  writeDurably,
  writeWhole,
} from './layout.ts';
import { isAlive, processIdentity } from './owner.ts';
import { checkPlatform, choosePlatform, machinePlatform, type Platform, platformArchitecture } from './platforms.ts';
import { type ImageReference, isDigest, parseReference } from './reference.ts';
import { checkSizes, dropPartials, keepPartials } from './registry/blob-download.ts';
import { downloadLayers } from './registry/download.ts';
import { createRegistryClient, hostsOf, type RegistryOptions } from './registry/registry.ts';

export interface ImageStoreDeps {
  /** Directory of the store, on the file system of the containers' overlays. Created if missing. */
  readonly root: string;
  /** Removes layers, whose content is untrusted. */
  readonly trees: Trees;
  readonly log: Log;
  readonly registry?: Partial<RegistryOptions>;
  /** Architecture of this machine in image platforms; Node's own by default. */
  readonly architecture?: string;
  /** Pulls images of this platform instead of the ones for this machine. */
  readonly platform?: Platform;
}

export interface ImportedImage {
  readonly id: string;
  /** Normalized names that now refer to this image. */
  readonly names: readonly string[];
}

/**
 * Reports the progress of an import in bytes of the archive. Only a compressed archive has the stage `decompressing`.
 */
export type OnImportProgress = (stage: 'decompressing' | 'unpacking', done: number, total: number) => void;

export interface ImageStore extends ImageStorePort {
  /**
   * Imports every image of a docker-archive or oci-archive file (plain, gzip or zstd). `name` overrides the names
   * inside and is required if there are none. Throws RuntimeError 'image-pull' or 'image-invalid-name'.
   */
  importArchive(path: string, name?: string, onProgress?: OnImportProgress): Promise<readonly ImportedImage[]>;
  /** Reads every file of every image (or of one) and compares it with the unpacked files; one line per fault. */
  verify(image?: string): Promise<readonly string[]>;
  /** Original configuration of an image without its layers; undefined if the image is not in the store. */
  describe(image: string): Promise<{ readonly configuration: JsonObject } | undefined>;
  /** Sets the registry configuration of later pulls. */
  useRegistries(registry: Partial<RegistryOptions>): void;
  /** Sets whether garbage collection keeps the image under this name. Throws RuntimeError 'image-not-found'. */
  pin(image: string, pinned: boolean): Promise<void>;
  /** Removes the images that no container uses and that are not pinned, as garbage collection does on a full disk. */
  removeUnused(): Promise<readonly ImageStatus[]>;
  /** Writes a docker-archive; `path` must not exist. Layers are packed again, so ids may differ after an import. */
  exportArchive(images: readonly string[], path: string, onProgress?: OnPullProgress): Promise<void>;
  /**
   * Removes unreferenced images and layers, and the remains of crashed imports. Returns the number of removed layers.
   */
  collectGarbage(): Promise<number>;
}

/** The embedded image store. Any number of processes may use one root at the same time. */
export function createImageStore(deps: ImageStoreDeps): ImageStore {
  return new EmbeddedImageStore(deps);
}

const CONFIG = own<JsonObject>(fields);

class EmbeddedImageStore implements ImageStore {
  readonly #deps: ImageStoreDeps;
  readonly #log: Log;
  readonly #architecture: string;
  #registryOptions: RegistryOptions;
  #opening: Promise<Opened> | undefined;

  constructor(deps: ImageStoreDeps) {
    this.#deps = deps;
    this.#log = deps.log.named('images');
    this.#architecture = deps.architecture ?? platformArchitecture(process.arch);
    this.#registryOptions = { insecureRegistries: [], mirrors: {}, ...deps.registry };
  }

  useRegistries(registry: Partial<RegistryOptions>): void {
    this.#registryOptions = { insecureRegistries: [], mirrors: {}, ...registry };
  }

  async pull(image: string, auth: RegistryAuth | undefined, onProgress?: OnPullProgress): Promise<string> {
    const reference = ownReference(image);
    const hosts = hostsOf(reference, this.#registryOptions);
    for (const mirror of hosts.slice(0, -1)) {
      try {
        // A pull secret belongs to the registry and must not be sent to its mirrors.
        return await this.#pullFrom(mirror, reference, undefined, onProgress);
      } catch (error) {
        this.#log.warn('image mirror failed', { image: reference.name, mirror, error: messageOf(error) });
      }
    }
    return this.#pullFrom(hosts.at(-1) ?? reference.domain, reference, auth, onProgress);
  }

  async #pullFrom(
    host: string,
    reference: ImageReference,
    auth: RegistryAuth | undefined,
    onProgress: OnPullProgress = () => {},
  ): Promise<string> {
    const { layout, layers } = await this.#opened();
    const client = createRegistryClient(reference, host, auth, this.#registryOptions);
    const work = join(layout.tmp, temporaryName(layout));
    const platform = await this.#platform();
    try {
      let { digest, bytes } = await client.manifest(reference.digest ?? reference.tag ?? 'latest');
      const refNames = [...new Set([reference.name, `${reference.domain}/${reference.path}@${digest}`])];
      let manifest = parseManifest(bytes, `manifest of ${reference.name}`);
      if (manifest.kind === 'index') {
        const chosen = choosePlatform(manifest.manifests, platform);
        if (chosen === undefined)
          throw new RuntimeError(
            'image-not-found',
            `${reference.name} has no image for linux/${platform.architecture}`,
          );
        ({ digest, bytes } = await client.manifest(chosen.digest));
        manifest = parseManifest(bytes, `manifest ${digest}`);
        if (manifest.kind === 'index') throw new RuntimeError('image-pull', `${reference.name} nests indexes`);
      }
      const configBytes = await client.document(manifest.config.digest);
      const parsed = parseImageConfig(configBytes, `configuration of ${reference.name}`);
      checkPlatform(parsed.platform, platform, reference.name);
      if (parsed.diffIds.length !== manifest.layers.length)
        throw new RuntimeError('image-pull', `${reference.name}: configuration and manifest disagree on the layers`);
      await mkdir(work, { mode: 0o700 });
      const pathOf = ({ digest: each }: Descriptor): string => join(work, each.slice('sha256:'.length));
      if (!(await layers.has(parsed.diffIds))) {
        await checkSizes(reference.name, manifest.layers, layout.tmp);
        await downloadLayers(layout, manifest.layers, pathOf, client, onProgress);
      }
      const sources = manifest.layers.map((layer, index) => ({
        diffId: parsed.diffIds[index] ?? '',
        path: pathOf(layer),
        offset: 0,
        length: layer.size,
      }));
      const id = await this.#install(configBytes, parsed.config, sources, refNames);
      this.#log.info('image pulled', { image: reference.name, id });
      return id;
    } catch (error) {
      await keepPartials(layout, work);
      throw error;
    } finally {
      await layout.trees.remove(work);
      await client.close();
    }
  }

  async status(image: string): Promise<ImageStatus | undefined> {
    const { layout } = await this.#opened();
    const stored = await this.#find(image);
    if (stored === undefined) return undefined;
    return describe({ ...stored, user: stored.config.user }, await listRefs(layout), await listPins(layout));
  }

  async list(): Promise<ImageStatus[]> {
    const { layout } = await this.#opened();
    const [refs, pins] = [await listRefs(layout), await listPins(layout)];
    return (await listImages(layout)).map((image) => describe(image, refs, pins));
  }

  async remove(image: string): Promise<void> {
    const { layout, layers } = await this.#opened();
    const stored = await this.#find(image);
    if (stored === undefined) return;
    // Removal by id removes every name, as `crictl rmi` does. Removal of the last tag also removes the digest names.
    const byId = isDigest(image) || /^[0-9a-f]{64}$/.test(image);
    const refs = (await listRefs(layout)).filter((ref) => ref.id === stored.id);
    const wanted = byId ? undefined : parseReference(image).name;
    const otherTags = refs.filter((ref) => ref.name !== wanted && !ref.name.includes('@'));
    for (const ref of refs) {
      if (byId || ref.name === wanted || otherTags.length === 0) await removeFile(refFile(layout, ref.name));
    }
    await layers.collect();
  }

  async removeUnused(): Promise<readonly ImageStatus[]> {
    const { layout, layers } = await this.#opened();
    const [refs, pins, held] = [await listRefs(layout), await listPins(layout), await listImagesInUse(layout)];
    const unused = (await listImages(layout))
      .filter(({ id }) => !held.has(id))
      .map((image) => describe(image, refs, pins))
      .filter(({ pinned }) => pinned !== true);
    for (const ref of refs) if (unused.some(({ id }) => id === ref.id)) await removeFile(refFile(layout, ref.name));
    await layers.collect();
    return unused;
  }

  async hold(imageId: string, holder: string): Promise<HeldImage> {
    const { layout } = await this.#opened();
    const stored = await this.#find(imageId);
    if (stored === undefined)
      throw new RuntimeError('image-not-found', `image ${imageId} is not in the store; see hyperedge image list`);
    // No container survives a power failure, so the file need not be durable.
    await writeWhole(layout, holdFile(layout, holder), JSON.stringify({ image: stored.id, layers: stored.layers }));
    // A concurrent removal may have collected the layers before the hold was written.
    if ((await this.#find(imageId)) === undefined) {
      await removeFile(holdFile(layout, holder));
      throw new RuntimeError('image-not-found', `image ${imageId} was removed by another request`);
    }
    return { id: stored.id, config: stored.config, layerRoot: layout.layers, layers: stored.layers };
  }

  async release(holder: string): Promise<void> {
    const { layout, layers } = await this.#opened();
    const file = holdFile(layout, holder);
    const held = (await readJson(file))?.['image'];
    await removeFile(file);
    // The last user of a removed image also removes its layers.
    if (typeof held === 'string' && (await readImage(layout, held)) === undefined) await layers.collect();
  }

  async importArchive(path: string, name: string | undefined, onProgress?: OnImportProgress): Promise<ImportedImage[]> {
    const { layout } = await this.#opened();
    const work = join(layout.tmp, temporaryName(layout));
    await mkdir(work, { mode: 0o700 });
    try {
      const platform = await this.#platform();
      const images = await readArchive(path, join(work, 'archive.tar'), platform, (done, total) =>
        onProgress?.('decompressing', done, total),
      );
      for (const { parsed, names: given } of images)
        checkPlatform(parsed.platform, platform, `${path}: image ${given[0] ?? name ?? 'without a name'}`);
      if (name !== undefined && images.length !== 1)
        throw new RuntimeError(
          'image-pull',
          `${path} holds ${images.length} images; a name can be given for one image only`,
        );
      const imported: ImportedImage[] = [];
      const total = images.flatMap(({ layers }) => layers).reduce((sum, { length }) => sum + length, 0);
      const onBytes = adding(total, (done, of) => onProgress?.('unpacking', done, of));
      for (const image of images) {
        const given = name === undefined ? image.names : [name];
        if (given.length === 0) throw new RuntimeError('image-invalid-name', `${path} has no image name; give a name`);
        const refNames = given.map((each) => ownReference(each).name);
        const layers = image.layers.map((layer) => ({ ...layer, onBytes }));
        const id = await this.#install(image.configBytes, image.parsed.config, layers, refNames);
        this.#log.info('image imported', { names: refNames.join(','), id });
        imported.push({ id, names: refNames });
      }
      return imported;
    } finally {
      await layout.trees.remove(work);
    }
  }

  async verify(image: string | undefined): Promise<string[]> {
    const { layout, layers } = await this.#opened();
    const images = image === undefined ? await listImages(layout) : [await this.#find(image)];
    const faults: string[] = [];
    const seen = new Set<string>();
    for (const stored of images) {
      if (stored === undefined)
        throw new RuntimeError('image-not-found', `image ${image} is not in the store; see hyperedge image list`);
      for (const layer of stored.layers) {
        if (!seen.has(layer)) faults.push(...(await layers.verify(layer)));
        seen.add(layer);
      }
    }
    for (const ref of await listRefs(layout)) {
      if ((await readImage(layout, ref.id)) === undefined)
        faults.push(`${ref.name} points to ${ref.id}, which is missing`);
    }
    return faults;
  }

  async describe(image: string): Promise<{ readonly configuration: JsonObject } | undefined> {
    const stored = await this.#find(image);
    if (stored === undefined) return undefined;
    const { config, sizeBytes } = stored;
    const { config: written, ...raw } = stored.raw === undefined ? {} : decodeJson(CONFIG, stored.raw, 'image');
    const own = { Entrypoint: [...config.entrypoint], Cmd: [...config.cmd], Env: [...config.env] };
    const kept = { User: config.user, WorkingDir: config.workingDir };
    const Config = typeof written === 'object' && written !== null ? written : { ...own, ...kept };
    return {
      configuration: {
        kind: 'DockerImage',
        apiVersion: '1.0',
        Id: stored.id,
        Size: sizeBytes,
        Config,
        ...(typeof raw['architecture'] === 'string' ? { Architecture: raw['architecture'] } : {}),
        ...(typeof raw['created'] === 'string' ? { Created: raw['created'] } : {}),
      },
    };
  }

  async collectGarbage(): Promise<number> {
    const { layout, layers } = await this.#opened();
    await dropPartials(layout, Date.now());
    return layers.collect();
  }

  async pin(image: string, pinned: boolean): Promise<void> {
    const { layout } = await this.#opened();
    const stored = await this.#find(image);
    if (stored === undefined)
      throw new RuntimeError('image-not-found', `image ${image} is not in the store; see hyperedge image list`);
    const name = isDigest(image) || /^[0-9a-f]{64}$/.test(image) ? stored.id : parseReference(image).name;
    if (pinned) await writeDurably(layout, pinFile(layout, name), JSON.stringify({ name }));
    else await removeFile(pinFile(layout, name));
  }

  async exportArchive(images: readonly string[], path: string, onProgress?: OnPullProgress): Promise<void> {
    const { layout } = await this.#opened();
    const holder = `export-${temporaryName(layout)}`;
    const chosen: ExportedImage[] = [];
    try {
      for (const [index, image] of images.entries()) {
        const stored = await this.#find(image);
        if (stored === undefined)
          throw new RuntimeError('image-not-found', `image ${image} is not in the store; see hyperedge image list`);
        await this.hold(stored.id, `${holder}-${index}`);
        const refs = (await listRefs(layout)).filter((ref) => ref.id === stored.id && !ref.name.includes('@'));
        const named = isDigest(image) ? refs.map((ref) => ref.name) : [parseReference(image).name];
        chosen.push({ image: stored, names: named });
      }
      await exportImages(layout, chosen, path, this.#architecture, onProgress);
    } finally {
      for (const index of images.keys()) await this.release(`${holder}-${index}`);
    }
  }

  async #platform(): Promise<Platform> {
    return this.#deps.platform ?? machinePlatform(this.#architecture);
  }

  #opened(): Promise<Opened> {
    this.#opening ??= open(this.#deps, this.#log).catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  /** Finds an image by id, hex id without prefix, or name. */
  async #find(image: string): Promise<StoredImage | undefined> {
    const { layout } = await this.#opened();
    const id = isDigest(image) ? image : /^[0-9a-f]{64}$/.test(image) ? `sha256:${image}` : undefined;
    if (id !== undefined) return readImage(layout, id);
    const { name, digest, domain, path } = parseReference(image);
    const ref = await readRef(layout, name);
    if (ref !== undefined) return readImage(layout, ref.id);
    // An image from an archive can also be referenced as its repository with its id as digest.
    const stored = digest === undefined ? undefined : await readImage(layout, digest);
    if (stored === undefined) return undefined;
    const names = (await listRefs(layout)).filter((each) => each.id === stored.id).map((each) => each.name);
    return digestNames(names, stored.id).includes(`${domain}/${path}@${stored.id}`) ? stored : undefined;
  }

  async #install(
    configBytes: Buffer,
    config: ImageConfig,
    sources: readonly LayerSource[],
    refNames: readonly string[],
  ): Promise<string> {
    const { layout, layers } = await this.#opened();
    const id = contentDigest(configBytes);
    const raw = configBytes.toString('utf8');
    await layers.ensure(id, sources, async (stack) => {
      await writeDurably(layout, imageFile(layout, id), JSON.stringify({ ...stack, config, raw }));
      for (const name of refNames) await writeDurably(layout, refFile(layout, name), JSON.stringify({ name, id }));
    });
    return id;
  }
}

/** Parses a name that an image may get. Throws RuntimeError 'image-invalid-name'. */
function ownReference(image: string): ImageReference {
  if (isHostRootImage(image)) {
    const why = 'reserved for the root of the host itself; use another name';
    throw new RuntimeError('image-invalid-name', `invalid image name ${JSON.stringify(image)}: ${why}`);
  }
  return parseReference(image);
}

interface Opened {
  readonly layout: ReturnType<typeof storeLayout>;
  readonly layers: ReturnType<typeof createLayerStore>;
}

/** Creates the directories and removes temporary files of crashed processes. */
async function open({ root, trees }: ImageStoreDeps, log: Log): Promise<Opened> {
  const owner = await processIdentity(process.pid);
  if (owner === undefined) throw new Error('proc(5) is not mounted');
  const layout = storeLayout(root, owner, trees);
  await makeLayout(layout);
  for (const name of await names(layout.tmp)) {
    const path = join(layout.tmp, name);
    if (path === layout.whiteoutDevice || (await isAlive(ownerOf(name)))) continue;
    await keepPartials(layout, path).catch(ignore('an unusable partial download is fetched again'));
    await trees.remove(path);
  }
  for (const name of await names(layout.holds)) {
    if ((await readJson(join(layout.holds, name))) === undefined) await removeFile(join(layout.holds, name));
  }
  return { layout, layers: createLayerStore(layout, isAlive, log) };
}

/**
 * Digest names of an image. An image that did not come from a registry gets its ID as digest, so that it can be
 * referenced unambiguously.
 */
function digestNames(names: readonly string[], id: string): string[] {
  const digests = names.filter((name) => name.includes('@'));
  if (digests.length > 0) return digests.toSorted();
  return [...new Set(names.map((name) => `${name.replace(/:[^/:]*$/, '')}@${id}`))].sort();
}

function describe(image: ListedImage, refs: readonly StoredRef[], pins: ReadonlySet<string>): ImageStatus {
  const own = refs.filter((ref) => ref.id === image.id).map((ref) => ref.name);
  const user = image.user.split(':', 1)[0] ?? '';
  return {
    id: image.id,
    repoTags: own.filter((name) => !name.includes('@')).toSorted(),
    repoDigests: digestNames(own, image.id),
    sizeBytes: image.sizeBytes,
    ...(pins.has(image.id) || own.some((name) => pins.has(name)) ? { pinned: true } : {}),
    ...(/^\d{1,10}$/.test(user) ? { uid: Number(user) } : user === '' ? {} : { username: user }),
  };
}
