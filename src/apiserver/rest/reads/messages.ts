/** Protobuf form of objects, encoded on first request and cached with the object. */
import type { JsonObject } from '../../../api/meta/object.ts';
import { parseJson } from '../../../base/json/json.ts';
import { encodeMessage, envelope, hasMessage } from '../../http/protobuf/encode.ts';
import { keptBytes } from '../../pipeline/kept-bytes.ts';
import { fromStored, type ServedKind } from '../../pipeline/kinds.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';

const PARTIAL = 'io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata';

const kept = new WeakMap<CachedObject, Map<string, Buffer>>();

/**
 * Reports whether objects of the kind have a protobuf form. Custom resources have none, because their fields have no
 * numbers.
 */
export function supportsProtobuf(kind: ServedKind): boolean {
  return kind.schema !== undefined && hasMessage(kind.schema.typeName);
}

/** Protobuf message of an object in the requested version, without the envelope. The kind must have a protobuf form. */
export function messageOf(kind: ServedKind, object: CachedObject): Buffer {
  const typeName = kind.schema?.typeName ?? '';
  let messages = kept.get(object);
  if (messages === undefined) {
    messages = new Map();
    kept.set(object, messages);
  }
  let message = messages.get(typeName);
  if (message === undefined) {
    message = keptBytes([encodeMessage(typeName, fromStored(kind, object.parse()) as JsonObject & object)]);
    messages.set(typeName, message);
  }
  return message;
}

/** Protobuf message of an object's metadata only. */
export function partialMessageOf(object: CachedObject): Buffer {
  return encodeMessage(PARTIAL, { metadata: parseJson(object.metadataBytes().toString('utf8')) as JsonObject });
}

/** Protobuf message of a bookmark, which consists of metadata only. */
export function bookmarkMessage(kind: ServedKind, partial: boolean, metadata: JsonObject): Buffer {
  return encodeMessage(partial ? PARTIAL : (kind.schema?.typeName ?? ''), { metadata });
}

export function objectEnvelope(kind: ServedKind, object: CachedObject): Buffer {
  return envelope(kind.apiVersion, kind.kind, messageOf(kind, object));
}

export function partialEnvelope(version: string, object: CachedObject): Buffer {
  return envelope(`meta.k8s.io/${version}`, 'PartialObjectMetadata', partialMessageOf(object));
}
