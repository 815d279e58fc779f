/** Subresources of image streams: layers of their images, and pull secrets of their namespace. */

import type { KubeObject } from '../../../api/meta/object.ts';
import { errors } from '../../../api/meta/status.ts';
import type { ImageLayer } from '../../../openshift/image-streams/kinds/images/index.ts';
import type { ImageStream } from '../../../openshift/image-streams/kinds/imagestreams/types.ts';
import type { Exchange } from '../../http/exchange.ts';
import type { ResourceRequestInfo } from '../../http/request-info.ts';
import { methodNotAllowed } from '../../pipeline/write-request.ts';
import type { ServerContext } from '../../rest/context.ts';
import { pullSecretsOf } from './pull-secrets.ts';
import { imageOf, streamOf } from './resolve.ts';

type SubresourcesContext = Pick<ServerContext, 'cache' | 'kinds'>;

export async function streamSubresource(
  context: SubresourcesContext,
  exchange: Exchange,
  info: ResourceRequestInfo,
): Promise<void> {
  if (exchange.request.method !== 'GET') throw methodNotAllowed();
  await context.cache.freshen();
  const stream = streamOf(context.cache, info.namespace, info.name);
  if (stream === undefined)
    throw errors.notFound(context.kinds.stored('imagestreams', 'image.openshift.io'), info.name);
  exchange.sendObject(200, info.subresource === 'layers' ? layersOf(context, stream) : secretsOf(context, info));
}

function layersOf(context: SubresourcesContext, stream: ImageStream): KubeObject {
  const blobs: Record<string, Omit<ImageLayer, 'name'>> = {};
  const images: Record<string, { layers: string[] }> = {};
  for (const { image = '', dockerImageReference: pullSpec = '' } of (stream.status?.tags ?? []).flatMap(
    ({ items = [] }) => items,
  )) {
    const { dockerImageLayers: layers = [] } = imageOf(context.cache, { image, pullSpec });
    for (const { name, ...layer } of layers) blobs[name] = layer;
    images[image] = { layers: layers.map(({ name }) => name) };
  }
  const { name, namespace, resourceVersion, uid, creationTimestamp } = stream.metadata ?? {};
  return {
    kind: 'ImageStreamLayers',
    apiVersion: 'image.openshift.io/v1',
    metadata: { name, namespace, resourceVersion, uid, creationTimestamp },
    blobs,
    images,
  } as KubeObject;
}

function secretsOf(context: SubresourcesContext, info: ResourceRequestInfo): KubeObject {
  const items = pullSecretsOf(context.cache, info.namespace);
  const metadata = { resourceVersion: String(context.cache.revision) };
  return { kind: 'SecretList', apiVersion: 'v1', metadata, items } as KubeObject;
}
