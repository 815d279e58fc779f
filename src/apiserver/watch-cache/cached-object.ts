/**
 * An object in the watch cache: its JSON bytes as served, and fields parsed from them. Stored bytes have no
 * `resourceVersion`; it is inserted here once.
 */
import type { KubeObject } from '../../api/meta/object.ts';
import { parseJson } from '../../base/json/json.ts';
import type { Labels } from '../../base/selector.ts';

const METADATA = Buffer.from('"metadata":{');
const NO_LABELS: Labels = {};
const COMMA = 0x2c;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const LETTER_L = 0x6c;
const LABELS = Buffer.from('"labels":{');

function closingQuote(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}

/** Index of the closing brace of the object that opens at `from`. */
function closingBrace(bytes: Uint8Array, from: number): number {
  let depth = 0;
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) at = closingQuote(bytes, at + 1);
    else if (byte === OPEN) depth += 1;
    else if (byte === CLOSE) {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  throw new Error('an object has no end');
}

/** Maximum number of shared label sets. Many objects have equal labels, so parsed labels are shared. */
const MAX_INTERNED = 4096;
const internedLabels = new Map<string, Labels>();

function interned(json: string): Labels {
  let labels = internedLabels.get(json);
  if (labels === undefined) {
    labels = parseJson(json) as Labels;
    if (internedLabels.size === MAX_INTERNED) internedLabels.clear();
    internedLabels.set(json, labels);
  }
  return labels;
}

/**
 * Copies `value` and inserts `"resourceVersion":"N",` at the beginning of metadata. Stored values begin with
 * apiVersion, kind and metadata, so the first `"metadata":{` is that of the object itself. `kept`: the copy is
 * long-lived and gets its own memory, because a slice of Node's shared pool would keep the whole pool alive.
 */
export function spliceRevision(value: Uint8Array, revision: number, memory: 'kept' | 'pooled' = 'pooled'): Buffer {
  const source = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  const at = source.indexOf(METADATA) + METADATA.length;
  if (at < METADATA.length) throw new Error('stored value has no metadata');
  const inserted = `"resourceVersion":"${revision}",`;
  const length = source.length + inserted.length;
  const target = memory === 'kept' ? Buffer.allocUnsafeSlow(length) : Buffer.allocUnsafe(length);
  source.copy(target, 0, 0, at);
  target.write(inserted, at, 'latin1');
  source.copy(target, at + inserted.length, at);
  return target;
}

/** Readers of the kind's selectable fields. They are called on the first use of a field of an object. */
export type FieldReaders = Readonly<Record<string, (object: never) => string>>;

export class CachedObject {
  /** Namespace of the object. '' for cluster-scoped objects. */
  readonly namespace: string;
  readonly name: string;
  readonly revision: number;
  readonly createRevision: number;
  /** Complete JSON including `resourceVersion`. Shared; do not change it. */
  readonly bytes: Buffer;
  #labels: Labels | undefined;
  #fields: Map<string, string> | undefined;
  #retained: KubeObject | undefined;
  #current: KubeObject | undefined;

  /** `written`: the object from which `bytes` were encoded, if it is not changed any more; see `peek`. */
  constructor(
    namespace: string,
    name: string,
    bytes: Buffer,
    revision: number,
    createRevision: number,
    written?: KubeObject,
  ) {
    this.#current = written;
    this.namespace = namespace;
    this.name = name;
    this.bytes = bytes;
    this.revision = revision;
    this.createRevision = createRevision;
  }

  /** `namespace/name`, or the name of a cluster-scoped object. */
  get key(): string {
    return this.namespace === '' ? this.name : `${this.namespace}/${this.name}`;
  }

  /** A new parse result, which the caller may change. */
  parse<T extends KubeObject = KubeObject>(): T {
    return parseJson(this.bytes.toString('utf8')) as T;
  }

  /** A cached, shared parse result, for kinds that are read often. Do not change it. */
  shared<T extends KubeObject = KubeObject>(): Readonly<T> {
    this.#retained ??= this.parse();
    return this.#retained as T;
  }

  /**
   * A parse result that is shared until the object's event has been delivered. For an object written by this server it
   * is the written object, which has no `resourceVersion`. Do not change it.
   */
  peek<T extends KubeObject = KubeObject>(): Readonly<T> {
    this.#current ??= this.#retained ?? this.parse();
    return this.#current as T;
  }

  /** Called when the object's event has been delivered. */
  delivered(): void {
    this.#current = undefined;
  }

  /**
   * Called when the object has been replaced. Frees the cached parse result, because events keep the object itself
   * alive.
   */
  superseded(): void {
    this.#retained = undefined;
  }

  /** Labels of the object. They may be shared with other objects; do not change them. */
  labels(): Labels {
    this.#labels ??= this.#retained?.metadata?.labels ?? this.#readLabels();
    return this.#labels;
  }

  get knowsLabels(): boolean {
    return this.#labels !== undefined;
  }

  /**
   * Parses only the labels, which are among the first members of metadata. This is several times cheaper than parsing
   * the object.
   */
  #readLabels(): Labels {
    const { bytes } = this;
    let at = bytes.indexOf(METADATA) + METADATA.length;
    for (let depth = 1; at < bytes.length && depth > 0; at++) {
      const byte = bytes[at];
      if (byte === OPEN || byte === OPEN_LIST) depth += 1;
      else if (byte === CLOSE || byte === CLOSE_LIST) depth -= 1;
      else if (byte === QUOTE) {
        if (depth === 1 && bytes[at + 1] === LETTER_L && bytes.indexOf(LABELS, at) === at) {
          const start = at + LABELS.length - 1;
          return interned(bytes.toString('utf8', start, closingBrace(bytes, start) + 1));
        }
        at = closingQuote(bytes, at + 1);
      }
    }
    return NO_LABELS;
  }

  /** Value of a selectable field, including `metadata.name` and `metadata.namespace`. */
  field(name: string, readers: FieldReaders): string {
    if (name === 'metadata.name') return this.name;
    if (name === 'metadata.namespace') return this.namespace;
    if (this.#fields === undefined) {
      const object = this.#retained ?? this.#current ?? this.parse();
      this.#fields = new Map();
      for (const [field, read] of Object.entries(readers)) {
        this.#fields.set(field, (read as (object: KubeObject) => string)(object));
      }
      this.#labels ??= object.metadata?.labels ?? NO_LABELS;
    }
    return this.#fields.get(name) ?? '';
  }

  /** The bytes of `metadata` including braces, as a view. */
  metadataBytes(): Buffer {
    const { bytes } = this;
    const start = bytes.indexOf(METADATA) + METADATA.length - 1;
    return bytes.subarray(start, closingBrace(bytes, start) + 1);
  }

  /**
   * The same object with another revision, for its DELETED event. It lives as long as the event and has its own memory,
   * as in `spliceRevision` with `kept`.
   */
  atRevision(revision: number): CachedObject {
    const at = this.bytes.indexOf(METADATA) + METADATA.length;
    const end = this.bytes.indexOf(COMMA, at) + 1;
    const inserted = `"resourceVersion":"${revision}",`;
    const bytes = Buffer.allocUnsafeSlow(at + inserted.length + this.bytes.length - end);
    this.bytes.copy(bytes, 0, 0, at);
    bytes.write(inserted, at, 'latin1');
    this.bytes.copy(bytes, at + inserted.length, end);
    return new CachedObject(this.namespace, this.name, bytes, revision, this.createRevision);
  }
}
