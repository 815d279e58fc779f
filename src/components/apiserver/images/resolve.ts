/** Which image a name means: what hosts report of their stores, and what image streams have. */
import type { Node } from 'kubernetes-types/core/v1';
import type { Image } from '../../../api/kinds/images/index.ts';
import type { ImageStream, TagReference } from '../../../api/kinds/imagestreams/types.ts';
import {
  HOST_PROGRAMS_IMAGE,
  HOST_ROOT_ID,
  HOST_ROOT_IMAGE,
  isHostRootImage,
} from '../../../api/podspec/host-root-image.ts';
import { type FoundImage, latestEvent, parsePullSpec, splitTagName } from '../../../core/imagestreams/index.ts';
import type { WatchCache } from '../watchcache/watch-cache.ts';

export const STREAMS = 'openshift.io/imagestreams';
const IMAGES = 'openshift.io/images';

export type Resolution = FoundImage | { readonly reason: string; readonly message: string };

export const isFound = (resolution: Resolution): resolution is FoundImage => 'pullSpec' in resolution;

export function streamOf(cache: WatchCache, namespace: string, name: string): ImageStream | undefined {
  return cache.kind(STREAMS).get(namespace, name)?.shared<ImageStream>();
}

/** By the stores of the hosts alone: no registry is asked. */
export function resolveName(cache: WatchCache, name: string): Resolution {
  if (isHostRootImage(name)) {
    const pullSpec = name === HOST_PROGRAMS_IMAGE ? name : `${HOST_ROOT_IMAGE}:latest`;
    return { image: HOST_ROOT_ID, pullSpec };
  }
  const wanted = parsePullSpec(name);
  if (wanted === undefined) return { reason: 'InvalidName', message: `${JSON.stringify(name)} is no name of an image` };
  for (const node of cache.kind('minions')) {
    for (const { names = [] } of node.shared<Node>().status?.images ?? []) {
      if (!names.includes(wanted.name)) continue;
      const pullSpec =
        names.find((each) => each.startsWith(`${wanted.repository}@`)) ?? names.find((each) => each.includes('@'));
      const image = pullSpec?.slice(pullSpec.indexOf('@') + 1);
      if (pullSpec !== undefined && image !== undefined) return { image, pullSpec };
    }
  }
  const message = `dockerimage.image.openshift.io "${wanted.name}" not found in the image store of any host`;
  return { reason: 'NotFound', message };
}

/** The image that the source of a tag means. */
export function resolveSource(cache: WatchCache, namespace: string, { from }: Pick<TagReference, 'from'>): Resolution {
  const { kind = '', name = '' } = from ?? {};
  const place = from?.namespace || namespace;
  if (kind === 'DockerImage') return resolveName(cache, name);
  if (kind === 'ImageStreamTag') {
    const parts = splitTagName(name);
    const event = parts === undefined ? undefined : latestEvent(streamOf(cache, place, parts.stream), parts.tag);
    return found(event) ?? { reason: 'NotFound', message: `imagestreamtags.image.openshift.io "${name}" not found` };
  }
  const [stream = '', image = ''] = name.split('@');
  const events = (streamOf(cache, place, stream)?.status?.tags ?? []).flatMap(({ items = [] }) => items);
  const event = events.find((each) => each.image === image);
  return found(event) ?? { reason: 'NotFound', message: `imagestreamimages.image.openshift.io "${name}" not found` };
}

function found(event: { image?: string; dockerImageReference?: string } | undefined): FoundImage | undefined {
  if (event?.image === undefined || event.dockerImageReference === undefined) return undefined;
  return { image: event.image, pullSpec: event.dockerImageReference };
}

/** The stored Image, or as much of it as is known without one. */
export function imageOf(cache: WatchCache, { image, pullSpec }: FoundImage, createdAt?: string): Image {
  const stored = cache.kind(IMAGES).get('', image)?.parse<Image>();
  const { managedFields: _m, ...metadata } = stored?.metadata ?? {};
  return {
    dockerImageMetadata: {},
    dockerImageMetadataVersion: '1.0',
    ...stored,
    metadata: { name: image, ...(createdAt === undefined ? {} : { creationTimestamp: createdAt }), ...metadata },
    dockerImageReference: pullSpec,
  };
}
