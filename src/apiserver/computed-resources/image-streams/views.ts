/** Builds ImageStreamTag, ImageTag and ImageStreamImage objects from an image stream. */

import type { KubeObject } from '../../../api/meta/object.ts';
import { latestEvent, specTag } from '../../../openshift/image-streams/core/index.ts';
import type { ImageStreamTag, ImageTag } from '../../../openshift/image-streams/kinds/imagestreams/index.ts';
import type { ImageStream } from '../../../openshift/image-streams/kinds/imagestreams/types.ts';
import { CachedObject } from '../../watch-cache/cached-object.ts';
import type { WatchCache } from '../../watch-cache/watch-cache.ts';
import { imageOf } from './resolve.ts';

const API_VERSION = 'image.openshift.io/v1';

function metadataOf(stream: ImageStream, name: string, createdAt: string | undefined) {
  const { namespace, creationTimestamp, resourceVersion, uid, labels } = stream.metadata ?? {};
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    creationTimestamp: createdAt ?? creationTimestamp ?? null,
    ...(labels === undefined ? {} : { labels }),
  } as NonNullable<KubeObject['metadata']>;
}

export type TagView = (stream: ImageStream, tag: string) => KubeObject | undefined;

/** The ImageStreamTag of a tag. Undefined if neither the spec nor the status of the stream has the tag. */
export function streamTagOf(cache: WatchCache, stream: ImageStream, tag: string): ImageStreamTag | undefined {
  const event = latestEvent(stream, tag);
  const source = specTag(stream, tag);
  if (event === undefined && source === undefined) return undefined;
  const history = (stream.status?.tags ?? []).find((each) => each.tag === tag);
  const name = `${stream.metadata?.name ?? ''}:${tag}`;
  return {
    kind: 'ImageStreamTag',
    apiVersion: API_VERSION,
    metadata: metadataOf(stream, name, event?.created),
    ...(source === undefined ? {} : { tag: source }),
    generation: event?.generation ?? source?.generation ?? 0,
    lookupPolicy: { local: stream.spec?.lookupPolicy?.local ?? false },
    ...(history?.conditions === undefined ? {} : { conditions: history.conditions }),
    image:
      event === undefined
        ? { metadata: {} }
        : imageOf(cache, { image: event.image ?? '', pullSpec: event.dockerImageReference ?? '' }, event.created),
  };
}

export function imageTagOf(cache: WatchCache, stream: ImageStream, tag: string): ImageTag | undefined {
  const event = latestEvent(stream, tag);
  const source = specTag(stream, tag);
  const history = (stream.status?.tags ?? []).find((each) => each.tag === tag);
  if (history === undefined && source === undefined) return undefined;
  return {
    kind: 'ImageTag',
    apiVersion: API_VERSION,
    metadata: metadataOf(stream, `${stream.metadata?.name ?? ''}:${tag}`, event?.created),
    ...(source === undefined ? {} : { spec: source }),
    ...(history === undefined ? {} : { status: history }),
    ...(event === undefined
      ? {}
      : {
          image: imageOf(
            cache,
            { image: event.image ?? '', pullSpec: event.dockerImageReference ?? '' },
            event.created,
          ),
        }),
  };
}

/** The ImageStreamImage of an image. `id`: a digest, or a prefix of a digest that is unique in the stream. */
export function streamImageOf(cache: WatchCache, stream: ImageStream, id: string): KubeObject | undefined {
  const events = (stream.status?.tags ?? []).flatMap(({ items = [] }) => items);
  const wanted = id.startsWith('sha256:') ? id : `sha256:${id}`;
  const fitting = new Map(events.filter((each) => each.image?.startsWith(wanted)).map((each) => [each.image, each]));
  const [event] = fitting.values();
  if (event === undefined || fitting.size > 1) return undefined;
  return {
    kind: 'ImageStreamImage',
    apiVersion: API_VERSION,
    metadata: metadataOf(stream, `${stream.metadata?.name ?? ''}@${event.image}`, event.created),
    image: imageOf(cache, { image: event.image ?? '', pullSpec: event.dockerImageReference ?? '' }, event.created),
  } as KubeObject;
}

export function cachedView(object: KubeObject): CachedObject {
  const { namespace = '', name = '' } = object.metadata ?? {};
  return new CachedObject(namespace, name, Buffer.from(JSON.stringify(object)), 0, 0);
}
