/**
 * Serializes list items. Items of built-in kinds have no apiVersion and kind; items of custom resources have both.
 * Source: k8s.io/apimachinery's typed and unstructured lists.
 */

import type { KubeObject } from '../../../api/meta/object.ts';
import { parseJson } from '../../../base/json/json.ts';
import type { ByteSource } from '../../http/stream-body.ts';
import { bytesAs, type ServedKind } from '../../pipeline/kinds.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';

const COMMA = Buffer.from(',');
const NEXT = Buffer.from(',{');
const OPEN = Buffer.from('{');

const types = new WeakMap<ServedKind, Buffer>();

/** First bytes of an object of the kind, as this server encodes it. */
function typeOf(kind: ServedKind): Buffer {
  let bytes = types.get(kind);
  if (bytes === undefined) {
    bytes = Buffer.from(`{"apiVersion":"${kind.apiVersion}","kind":"${kind.kind}",`);
    types.set(kind, bytes);
  }
  return bytes;
}

/** Bytes of the object without apiVersion, kind and the opening brace. */
function untyped(kind: ServedKind, type: Buffer, object: CachedObject): Buffer {
  const bytes = bytesAs(kind, object);
  if (bytes.length > type.length && bytes.compare(type, 0, type.length, 0, type.length) === 0)
    return bytes.subarray(type.length);
  // Another API server has encoded the object with different first bytes.
  const { apiVersion: _a, kind: _k, ...rest } = parseJson(bytes.toString('utf8')) as Record<string, unknown>;
  return Buffer.from(JSON.stringify(rest).slice(1));
}

/** Items of a list, separated by commas. */
export function* listItems(kind: ServedKind, objects: readonly CachedObject[]): Generator<Buffer> {
  if (kind.definition.custom !== undefined) {
    for (const [index, object] of objects.entries()) {
      if (index > 0) yield COMMA;
      yield bytesAs(kind, object);
    }
    return;
  }
  const type = typeOf(kind);
  let between = OPEN;
  for (const object of objects) {
    yield between;
    between = NEXT;
    yield untyped(kind, type, object);
  }
}

/**
 * Produces a list between `head` and `tail` one object at a time, so that only the part being sent is in memory. A
 * hundred thousand items at once would take tens of megabytes and block the event loop.
 */
export class ListSource implements ByteSource {
  readonly #parts: Iterator<Buffer>;
  /** Rest of an item that did not fit into the last piece. */
  #rest: Buffer | undefined;

  constructor(kind: ServedKind, objects: readonly CachedObject[], head: Buffer, tail: Buffer) {
    this.#parts = between(head, listItems(kind, objects), tail);
  }

  fill(target: Buffer): number {
    let at = 0;
    while (at < target.length) {
      const part = this.#rest ?? this.#next();
      if (part === undefined) return at;
      const copied = part.copy(target, at);
      at += copied;
      this.#rest = copied < part.length ? part.subarray(copied) : undefined;
    }
    return at;
  }

  #next(): Buffer | undefined {
    const { done, value } = this.#parts.next();
    return done === true ? undefined : value;
  }
}

function* between(head: Buffer, parts: Iterable<Buffer>, tail: Buffer): Generator<Buffer> {
  yield head;
  yield* parts;
  yield tail;
}

/** Like `listItems`, for a parsed object. */
export function listItem(kind: ServedKind, object: KubeObject): KubeObject {
  if (kind.definition.custom !== undefined) return object;
  const { apiVersion: _a, kind: _k, ...rest } = object;
  return rest;
}

export function* joined(parts: Iterable<Buffer>): Generator<Buffer> {
  let first = true;
  for (const part of parts) {
    if (!first) yield COMMA;
    first = false;
    yield part;
  }
}
