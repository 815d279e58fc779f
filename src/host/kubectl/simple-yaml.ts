/**
 * Parses the subset of YAML that kubeconfigs use: block mappings and lists with simple scalars. It saves the loading of
 * a complete parser, which takes a tenth of the time of `get`. Other documents must be parsed by the complete parser.
 */

interface Line {
  readonly indent: number;
  readonly text: string;
}

/** Result of a method for a document that needs the complete parser. */
const UNSUPPORTED = Symbol('unsupported');

const KEY = /^([A-Za-z][\w.-]*):(?: +(.*))?$/;
/** Scalars that every version of YAML parses as strings. */
const PLAIN = /^(?:[A-Za-z/]|\d+-)[\w/+=.:@~-]*$/;
const WORD = /^(?:true|false|null|yes|no|on|off|y|n)$/i;

/** Parses the document; undefined if it needs the complete parser. */
export function simpleYaml(document: string): { readonly value: unknown } | undefined {
  const lines: Line[] = [];
  for (const line of document.split('\n')) {
    if (/^(?:#.*)?$/.test(line) || (line === '---' && lines.length === 0)) continue;
    const [, spaces = '', text = ''] = /^( *)(.*?) *$/.exec(line) ?? [];
    if (/[^\x20-\x7e]/.test(text) || text === '') return undefined;
    lines.push({ indent: spaces.length, text });
  }
  if (lines.length === 0) return undefined;
  const reader = new Reader(lines);
  const value = reader.block(0);
  return value === UNSUPPORTED || !reader.isAtEnd ? undefined : { value };
}

class Reader {
  readonly #lines: Line[];
  #at = 0;

  constructor(lines: Line[]) {
    this.#lines = lines;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#lines.length;
  }

  /** Parses the list or mapping whose lines have the given indentation. */
  block(indent: number): unknown {
    const first = this.#lines[this.#at];
    if (first?.indent !== indent) return UNSUPPORTED;
    return first.text === '-' || first.text.startsWith('- ') ? this.#list(indent) : this.#mapping(indent);
  }

  #list(indent: number): unknown {
    const items: unknown[] = [];
    for (;;) {
      const line = this.#lines[this.#at];
      if (line === undefined || line.indent !== indent || !line.text.startsWith('- ')) return items;
      const text = line.text.slice(2);
      const inner = /^ */.exec(text)?.[0].length ?? 0;
      const rest = text.slice(inner);
      let item: unknown;
      if (KEY.test(rest)) {
        // The first field of the mapping is on the line of the dash.
        this.#lines[this.#at] = { indent: indent + 2 + inner, text: rest };
        item = this.block(indent + 2 + inner);
      } else {
        item = scalar(rest);
        this.#at += 1;
      }
      if (item === UNSUPPORTED) return UNSUPPORTED;
      items.push(item);
    }
  }

  #mapping(indent: number): unknown {
    const fields = new Map<string, unknown>();
    for (;;) {
      const line = this.#lines[this.#at];
      if (line === undefined || line.indent !== indent || line.text.startsWith('- ')) return Object.fromEntries(fields);
      const [, key, text] = KEY.exec(line.text) ?? [];
      if (key === undefined || WORD.test(key) || fields.has(key)) return UNSUPPORTED;
      this.#at += 1;
      const value = text === undefined ? this.#inner(indent) : scalar(text);
      if (value === UNSUPPORTED) return UNSUPPORTED;
      fields.set(key, value);
    }
  }

  /** Parses the value on the lines after a key. A list may have the same indentation as its key. */
  #inner(indent: number): unknown {
    const next = this.#lines[this.#at];
    if (next === undefined || next.indent < indent) return null;
    if (next.indent === indent) return next.text.startsWith('- ') ? this.#list(indent) : null;
    return this.block(next.indent);
  }
}

function scalar(text: string): unknown {
  if (text === '{}') return {};
  if (text === '[]') return [];
  if (text === 'true') return true;
  if (text === 'false') return false;
  const [, quoted] = /^"([^"\\]*)"$/.exec(text) ?? [];
  if (quoted !== undefined) return quoted;
  const [, single] = /^'([^']*)'$/.exec(text) ?? [];
  if (single !== undefined) return single;
  return PLAIN.test(text) && !text.endsWith(':') && !WORD.test(text) ? text : UNSUPPORTED;
}
