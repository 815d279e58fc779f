/**
 * Handles requests for tags and images of image streams, which are parts of the ImageStream object. Source:
 * openshift/openshift-apiserver pkg/image/apiserver/registry/{imagestreamtag,imagetag,imagestreamimage}.
 */

import { fieldError, invalid } from '../../../api/meta/field-error.ts';
import type { JsonObject, KubeObject } from '../../../api/meta/object.ts';
import { errors } from '../../../api/meta/status.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import {
  recordFailure,
  recordImage,
  removeTag,
  setSpecTag,
  specTag,
  splitTagName,
  tagNames,
} from '../../../openshift/image-streams/core/index.ts';
import type { ImageStreamTag, ImageTag } from '../../../openshift/image-streams/kinds/imagestreams/index.ts';
import type { ImageStream, TagReference } from '../../../openshift/image-streams/kinds/imagestreams/types.ts';
import { mergePatch } from '../../core/patch/index.ts';
import { readBody } from '../../http/body.ts';
import type { Exchange } from '../../http/exchange.ts';
import { negotiate, negotiateList } from '../../http/negotiate.ts';
import type { ResourceRequestInfo } from '../../http/request-info.ts';
import type { ServedKind } from '../../pipeline/kinds.ts';
import { methodNotAllowed, type WriteRequest } from '../../pipeline/write-request.ts';
import type { LoopContext, ReadContext, WriteContext } from '../../rest/context.ts';
import { sendObject } from '../../rest/reads/get.ts';
import { sendComputed } from '../../rest/reads/list.ts';
import { matcherOf, parseListOptions } from '../../rest/reads/list-options.ts';
import { deletedStatus } from '../../rest/status-responses.ts';
import { watchParts } from '../../rest/watches/watch.ts';
import { patchForm } from '../../rest/writes/patch.ts';
import { limitOf, readObject, readPatch, writeRequest } from '../../rest/writes/request-body.ts';
import { isFound, resolveSource, STREAMS, streamOf } from './resolve.ts';
import { tagEvents } from './tag-events.ts';
import { cachedView, imageTagOf, streamImageOf, streamTagOf, type TagView } from './views.ts';
import { changeStream } from './write.ts';

type HandlerContext = WriteContext & ReadContext & LoopContext;

const VIEWS = new Set(['imagestreamtags', 'imagetags', 'imagestreamimages']);

export const isStreamView = ({ definition }: ServedKind): boolean =>
  definition.group === 'image.openshift.io' && VIEWS.has(definition.plural);

export async function streamView(
  context: HandlerContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
): Promise<void> {
  const { verb } = info;
  const { cache } = context;
  if (!kind.definition.verbs.some((each) => each === verb)) throw methodNotAllowed();
  const isTag = kind.plural === 'imagetags';
  const view: TagView = (stream, tag) => (isTag ? imageTagOf(cache, stream, tag) : streamTagOf(cache, stream, tag));
  if (verb === 'list') return listTags(context, exchange, kind, info, view);
  if (verb === 'watch') {
    if (exchange.request.method !== 'GET') throw methodNotAllowed();
    return watchParts(context, exchange, { kind, info, cache: cache.kind(STREAMS), expand: tagEvents(view) });
  }
  const form = negotiate(exchange.request.headers.accept, { protobuf: false });
  const answer = (object: KubeObject, code: number): void =>
    sendObject(context, exchange, { kind, object: cachedView(object), form, code });
  await cache.freshen();
  if (verb === 'get') return answer(read(context, kind, info, view), 200);
  const request = writeRequest(exchange, kind, info);
  if (verb === 'delete') {
    await readBody(exchange.request, limitOf(context));
    const before = read(context, kind, info, view);
    const { stream, tag } = tagNameOf(info.name);
    await changeStream(context, request, stream, (each) => {
      if (!removeTag(each, tag)) throw errors.notFound(kind, info.name);
    });
    return exchange.sendObject(200, deletedStatus(kind, before));
  }
  const given =
    verb === 'patch'
      ? await patched(context, exchange, request, () => read(context, kind, info, view))
      : await readObject(context, exchange, kind, request);
  const name = verb === 'create' ? (given.metadata?.name ?? '') : info.name;
  if (verb !== 'create' && (given.metadata?.name ?? name) !== name)
    throw errors.badRequest('the name of the object does not match the name on the URL');
  const { stream, tag } = tagNameOf(name);
  if (verb === 'create' && specTag(streamOf(cache, info.namespace, stream), tag) !== undefined)
    throw errors.alreadyExists(kind, name);
  const wanted = { ...((isTag ? (given as ImageTag).spec : (given as ImageStreamTag).tag) ?? {}), name: tag };
  const written = await putTag(context, request, stream, wanted, verb !== 'patch');
  const after = view(written, tag);
  if (after === undefined) throw errors.notFound(kind, name);
  return answer(after, verb === 'create' ? 201 : 200);
}

function tagNameOf(name: string): { readonly stream: string; readonly tag: string } {
  const parts = splitTagName(name);
  if (parts !== undefined) return parts;
  throw errors.badRequest(`${JSON.stringify(name)}: imagestreamtags must be of the form <stream_name>:<tag>`);
}

/** Writes the tag and resolves the image of its source. */
async function putTag(
  context: HandlerContext,
  request: WriteRequest,
  name: string,
  wanted: TagReference,
  creates: boolean,
): Promise<ImageStream> {
  const { cache, clock, kinds, authorization } = context;
  if (wanted.from !== undefined && !wanted.from.name)
    throw invalid(kinds.stored('imagestreams', 'image.openshift.io').definition, name, [
      fieldError.required('tag.from.name'),
    ]);
  const place = wanted.from?.namespace;
  // A source in another namespace requires permission to read it there.
  if (place !== undefined && place !== '' && place !== request.namespace)
    await authorization.requireEach(request.user, [
      {
        verb: 'get',
        group: 'image.openshift.io',
        resource: 'imagestreams',
        subresource: 'layers',
        namespace: place,
        name: (wanted.from?.name ?? '').replace(/[:@].*$/s, ''),
      },
    ]);
  const from = wanted.from === undefined ? undefined : resolveSource(cache, request.namespace, wanted);
  const now = timestamp(clock.nowMs());
  const change = (stream: ImageStream): void => {
    const { generation: _g, ...tag } = wanted;
    setSpecTag(stream, { importPolicy: {}, referencePolicy: { type: 'Source' }, ...tag });
    const generation = (stream.metadata?.generation ?? 1) + 1;
    if (from === undefined || wanted.reference === true) return;
    if (isFound(from)) recordImage(stream, wanted.name ?? '', from, generation, now);
    else recordFailure(stream, wanted.name ?? '', from, generation, now);
  };
  return changeStream(context, request, name, change, { creates });
}

function read(
  context: HandlerContext,
  kind: ServedKind,
  { namespace, name }: ResourceRequestInfo,
  view: TagView,
): KubeObject {
  const isImage = kind.plural === 'imagestreamimages';
  const [stream = '', id = ''] = isImage ? name.split('@') : [tagNameOf(name).stream, tagNameOf(name).tag];
  const found = streamOf(context.cache, namespace, stream);
  if (found === undefined) throw errors.notFound(context.kinds.stored('imagestreams', 'image.openshift.io'), stream);
  const object = isImage ? streamImageOf(context.cache, found, id) : view(found, id);
  if (object === undefined) throw errors.notFound(kind, name);
  return object;
}

/** Supports merge patches only, because these objects are parts of another object. */
async function patched(
  context: HandlerContext,
  exchange: Exchange,
  request: WriteRequest,
  current: () => KubeObject,
): Promise<KubeObject> {
  const form = patchForm(exchange.header('content-type'), { custom: true });
  if (form !== 'merge')
    throw errors.badRequest('image stream tags support only merge patches; send application/merge-patch+json');
  const { body } = await readPatch(context, exchange, form, request);
  return mergePatch(current(), body as JsonObject) as KubeObject;
}

async function listTags(
  context: HandlerContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
  view: TagView,
): Promise<void> {
  const form = negotiateList(exchange.request.headers.accept, { protobuf: false });
  const options = parseListOptions(kind, info.query);
  await context.cache.freshen();
  const namespace = info.namespace === '' ? undefined : info.namespace;
  const matches = matcherOf(kind, options) ?? (() => true);
  const objects = context.cache
    .kind(STREAMS)
    .listSelected(namespace, options.labels)
    .flatMap((each) => {
      const stream = each.shared<ImageStream>();
      return tagNames(stream).flatMap((tag) => view(stream, tag) ?? []);
    })
    .map(cachedView)
    .filter(matches);
  await sendComputed(context, exchange, kind, form, objects);
}
