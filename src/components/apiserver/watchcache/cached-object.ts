/**
 * An object of the watch cache: the JSON bytes of the response, and the fields parsed from them. Bytes come
 * from the store without `resourceVersion`, which is spliced in once here.
 */
import type { KubeObject } from '../../../api/meta/object.ts';
import { parseJson } from '../../../base/json.ts';
import type { Labels } from '../../../base/selector.ts';

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

/** Of the object that opens at `from`. */
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

/** Labels of many objects are the same: what is known of them is kept once. */
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
 * Copies `value` with `"resourceVersion":"N",` after the opening of metadata. Values are written by this server, in
 * this order. `kept`: the copy lives long, and so has memory of its own: a piece of Node's shared pool would keep alive
 * what was cut from it for a moment, several times its own size.
 */
export function spliceRevision(value: Uint8Array, revision: number, kept = false): Buffer {
  const source = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  const at = source.indexOf(METADATA) + METADATA.length;
  if (at < METADATA.length) throw new Error('stored value has no metadata');
  const inserted = `"resourceVersion":"${revision}",`;
  const length = source.length + inserted.length;
  const target = kept ? Buffer.allocUnsafeSlow(length) : Buffer.allocUnsafe(length);
  source.copy(target, 0, 0, at);
  target.write(inserted, at, 'latin1');
  source.copy(target, at + inserted.length, at);
  return target;
}

/** What one kind's objects are indexed by; evaluated on first use. */
export type FieldReaders = Readonly<Record<string, (object: never) => string>>;

export class CachedObject {
  /** '' for cluster-scoped objects. */
  readonly namespace: string;
  readonly name: string;
  readonly revision: number;
  readonly createRevision: number;
  /** Complete JSON, `resourceVersion` included. Shared: never written to. */
  readonly bytes: Buffer;
  #labels: Labels | undefined;
  #fields: Map<string, string> | undefined;
  #retained: KubeObject | undefined;
  #current: KubeObject | undefined;

  /** `written`: what `bytes` were made of, no longer changed; see `peek`. */
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

  /** `namespace/name`, or the name. */
  get key(): string {
    return this.namespace === '' ? this.name : `${this.namespace}/${this.name}`;
  }

  /** A fresh parse that the caller may change. */
  parse<T extends KubeObject = KubeObject>(): T {
    return parseJson(this.bytes.toString('utf8')) as T;
  }

  /** A parse that is kept and shared: for the few kinds that are consulted again and again. Do not change it. */
  shared<T extends KubeObject = KubeObject>(): Readonly<T> {
    this.#retained ??= this.parse();
    return this.#retained as T;
  }

  /**
   * A parse that is shared until the event of this object has been delivered; of an object that this server wrote, what
   * was written, which has no `resourceVersion`. Do not change it.
   */
  peek<T extends KubeObject = KubeObject>(): Readonly<T> {
    this.#current ??= this.#retained ?? this.parse();
    return this.#current as T;
  }

  /** Its event has been delivered. */
  delivered(): void {
    this.#current = undefined;
  }

  /**
   * There is a newer one: what was kept for those who consult it again and again is let go, for events keep it alive.
   */
  superseded(): void {
    this.#retained = undefined;
  }

  /** Shared, among equal ones too: do not change them. */
  labels(): Labels {
    this.#labels ??= this.#retained?.metadata?.labels ?? this.#readLabels();
    return this.#labels;
  }

  get knowsLabels(): boolean {
    return this.#labels !== undefined;
  }

  /**
   * They stand among the first members of metadata: reading them alone is several times cheaper than reading the
   * object.
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

  /** Values of the kind's selectable fields; `metadata.name` and `metadata.namespace` among them. */
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

  /** The bytes of `metadata`, braces included: a view. */
  metadataBytes(): Buffer {
    const { bytes } = this;
    const start = bytes.indexOf(METADATA) + METADATA.length - 1;
    return bytes.subarray(start, closingBrace(bytes, start) + 1);
  }

  /**
   * The same object as it is shown by the event of its deletion: at the revision of the delete. It lives as long as the
   * event, in memory of its own as what `spliceRevision` keeps.
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
