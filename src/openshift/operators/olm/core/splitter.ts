/**
 * Splits a file-based catalog into documents while the catalog is read. At most one document is in memory. A catalog
 * contains consecutive JSON values, or YAML documents separated by lines of `---`. Source: operator-registry's
 * file-based catalogs, https://olm.operatorframework.io/docs/reference/file-based-catalogs/.
 */

export interface FoundDocument {
  /** Offset of the first byte in the file. */
  readonly offset: number;
  readonly bytes: Uint8Array;
}

export interface DocumentSplitter {
  /** Returns the documents that end in this chunk. Throws an Error if a document exceeds the size limit. */
  push(chunk: Uint8Array): FoundDocument[];
  /** Returns the last document; called at the end of the file. Throws an Error if a JSON value is incomplete. */
  end(): FoundDocument[];
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const DASH = 0x2d;
const NEWLINE = 0x0a;
const BLANKS: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d, 0x2c]);

export function jsonSplitter(maxBytes: number): DocumentSplitter {
  return new JsonSplitter(maxBytes);
}

export function yamlSplitter(maxBytes: number): DocumentSplitter {
  return new YamlSplitter(maxBytes);
}

/** Collects the bytes of a document from several chunks. */
class Pieces {
  readonly #maxBytes: number;
  #pieces: Uint8Array[] = [];
  #length = 0;
  offset = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get length(): number {
    return this.#length;
  }

  add(bytes: Uint8Array): void {
    this.#length += bytes.length;
    if (this.#length > this.#maxBytes)
      throw new Error(`a document at byte ${this.offset} is larger than ${this.#maxBytes} bytes`);
    // The bytes are copied, because the reader reuses its buffer. `slice` of a Node.js Buffer would not copy them.
    if (bytes.length > 0) this.#pieces.push(new Uint8Array(bytes));
  }

  take(): FoundDocument {
    const bytes = new Uint8Array(this.#length);
    let at = 0;
    for (const piece of this.#pieces) {
      bytes.set(piece, at);
      at += piece.length;
    }
    this.#pieces = [];
    this.#length = 0;
    return { offset: this.offset, bytes };
  }
}

class JsonSplitter implements DocumentSplitter {
  readonly #current: Pieces;
  #position = 0;
  #depth = 0;
  #inText = false;
  #escaped = false;

  constructor(maxBytes: number) {
    this.#current = new Pieces(maxBytes);
  }

  push(chunk: Uint8Array): FoundDocument[] {
    const found: FoundDocument[] = [];
    let start = 0;
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at] as number;
      if (this.#inText) {
        if (this.#escaped) this.#escaped = false;
        else if (byte === BACKSLASH) this.#escaped = true;
        else if (byte === QUOTE) this.#inText = false;
        continue;
      }
      if (this.#depth === 0) {
        if (BLANKS.has(byte)) continue;
        if (byte !== OPEN) throw new Error(`byte ${this.#position + at}: expected a JSON object`);
        this.#current.offset = this.#position + at;
        start = at;
        this.#depth = 1;
      } else if (byte === QUOTE) this.#inText = true;
      else if (byte === OPEN) this.#depth += 1;
      else if (byte === CLOSE) {
        this.#depth -= 1;
        if (this.#depth > 0) continue;
        this.#current.add(chunk.subarray(start, at + 1));
        found.push(this.#current.take());
        start = at + 1;
      }
    }
    if (this.#depth > 0) this.#current.add(chunk.subarray(start));
    this.#position += chunk.length;
    return found;
  }

  end(): FoundDocument[] {
    if (this.#depth > 0) throw new Error(`byte ${this.#current.offset}: the JSON object has no end`);
    return [];
  }
}

class YamlSplitter implements DocumentSplitter {
  readonly #current: Pieces;
  #position = 0;
  /** Number of dashes at the start of the current line; -1 if the line is not a separator. */
  #dashes = 0;

  constructor(maxBytes: number) {
    this.#current = new Pieces(maxBytes);
  }

  push(chunk: Uint8Array): FoundDocument[] {
    const found: FoundDocument[] = [];
    let start = 0;
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at];
      if (byte === NEWLINE) {
        if (this.#dashes === 3) {
          this.#current.add(chunk.subarray(start, at + 1));
          found.push(...this.#take({ separated: true }));
          start = at + 1;
          this.#current.offset = this.#position + at + 1;
        }
        this.#dashes = 0;
      } else if (this.#dashes >= 0) {
        if (byte === DASH) this.#dashes = this.#dashes < 3 ? this.#dashes + 1 : -1;
        // Only blanks may follow the dashes of a separator.
        else if (this.#dashes !== 3 || !BLANKS.has(byte ?? 0)) this.#dashes = -1;
      }
    }
    this.#current.add(chunk.subarray(start));
    this.#position += chunk.length;
    return found;
  }

  end(): FoundDocument[] {
    return this.#take({ separated: this.#dashes === 3 });
  }

  /** Returns the current document. If a separator ends the document, the separator is removed. */
  #take({ separated }: { readonly separated: boolean }): FoundDocument[] {
    const { offset, bytes } = this.#current.take();
    let end = bytes.length;
    if (separated) {
      end -= bytes[end - 1] === NEWLINE ? 1 : 0;
      while (end > 0 && bytes[end - 1] !== NEWLINE) end -= 1;
    }
    const text = bytes.subarray(0, end);
    return text.every((byte) => BLANKS.has(byte)) ? [] : [{ offset, bytes: text }];
  }
}
