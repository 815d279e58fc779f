/** Reads an image's manifest and configuration from a registry without its layers. */
import type { RegistryAuth } from '../port.ts';
import { RuntimeError } from '../port.ts';
import { type Descriptor, objectOf, parseManifest, parseObject } from './image-config.ts';
import { choosePlatform, machinePlatform, type Platform } from './platforms.ts';
import { parseReference } from './reference.ts';
import { createRegistryClient, hostsOf, type RegistryClient, type RegistryOptions } from './registry/registry.ts';

export interface InspectedImage {
  readonly digest: string;
  readonly pullSpec: string;
  /** Configuration in the format of Docker's API. */
  readonly configuration: Readonly<Record<string, unknown>>;
  readonly layers: readonly Descriptor[];
}

/** Whether the registry configuration contains the image's registry, or mirrors for every registry. */
export function isConfigured(image: string, { mirrors, insecureRegistries, hosts }: RegistryOptions): boolean {
  const { domain } = parseReference(image);
  const names = [mirrors, hosts ?? {}].flatMap((each) => Object.keys(each));
  return names.includes(domain) || names.includes('*') || insecureRegistries.includes(domain);
}

/** Queries the mirrors, then the registry itself unless only `*` matches it. Throws RuntimeErrors. */
export async function inspectImage(
  image: string,
  options: RegistryOptions,
  architecture: string,
  auth?: RegistryAuth,
): Promise<InspectedImage> {
  const reference = parseReference(image);
  const platform = await machinePlatform(architecture);
  const { mirrors, ...rest } = options;
  const { '*': _any, ...named } = mirrors;
  const all = hostsOf(reference, options);
  const hosts = isConfigured(image, { ...rest, mirrors: named }) ? all : all.slice(0, -1);
  let problem: unknown = new RuntimeError('image-not-found', `${reference.name}: no registry is configured for it`);
  for (const host of hosts) {
    // A pull secret belongs to the registry and must not be sent to its mirrors.
    const client = createRegistryClient(reference, host, host === all.at(-1) ? auth : undefined, options);
    try {
      const { digest, ...found } = await inspectAt(client, reference.digest ?? reference.tag ?? 'latest', platform);
      return { digest, pullSpec: `${reference.domain}/${reference.path}@${digest}`, ...found };
    } catch (error) {
      problem = error;
    } finally {
      await client.close();
    }
  }
  throw problem;
}

async function inspectAt(client: RegistryClient, wanted: string, platform: Platform) {
  const { digest, bytes } = await client.manifest(wanted);
  let manifest = parseManifest(bytes, `manifest ${digest}`);
  if (manifest.kind === 'index') {
    const chosen = choosePlatform(manifest.manifests, platform) ?? manifest.manifests[0];
    if (chosen === undefined) throw new RuntimeError('image-not-found', `manifest ${digest} lists no image`);
    manifest = parseManifest((await client.manifest(chosen.digest)).bytes, `manifest ${chosen.digest}`);
    if (manifest.kind === 'index') throw new RuntimeError('image-pull', `manifest ${digest} nests indexes`);
  }
  const {
    config,
    architecture: made,
    created,
  } = parseObject(await client.document(manifest.config.digest), `configuration of ${digest}`);
  const configuration = {
    kind: 'DockerImage',
    apiVersion: '1.0',
    Id: manifest.config.digest,
    Size: manifest.layers.reduce((sum, { size }) => sum + size, 0),
    Config: objectOf(config),
    ...(typeof made === 'string' ? { Architecture: made } : {}),
    ...(typeof created === 'string' ? { Created: created } : {}),
  };
  return { digest, configuration, layers: manifest.layers };
}
