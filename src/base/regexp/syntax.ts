/**
 * Parser for RE2 syntax, which Go and therefore Kubernetes use. Without back-references and look-around, every pattern
 * can be matched in linear time. Source: github.com/google/re2/wiki/Syntax.
 */
import { CharSet, complement, LAST, PERL, POSIX, type Range } from './charset.ts';

/** Error for an invalid pattern. The message is that of Go. */
export class RegexpError extends Error {
  constructor(problem: string, at: string) {
    super(`error parsing regexp: ${problem}: \`${at.slice(0, 256)}\``);
    this.name = 'RegexpError';
  }
}

export type Assertion = 'begin' | 'end' | 'line-begin' | 'line-end' | 'word' | 'not-word';

export type Node =
  | { readonly op: 'empty' }
  | { readonly op: 'set'; readonly set: CharSet }
  | { readonly op: 'assert'; readonly what: Assertion }
  | { readonly op: 'concat'; readonly parts: readonly Node[] }
  | { readonly op: 'alternate'; readonly parts: readonly Node[] }
  | { readonly op: 'capture'; readonly index: number; readonly body: Node }
  | {
      readonly op: 'repeat';
      readonly body: Node;
      readonly min: number;
      /** Infinity means unbounded. */
      readonly max: number;
      readonly greedy: boolean;
    };

/** Maximum repetition count, as in Go. */
const MAX_REPEAT = 1000;
const MAX_NESTING = 200;
const EMPTY: Node = { op: 'empty' };

interface Flags {
  readonly fold: boolean;
  readonly dotAll: boolean;
  readonly multiLine: boolean;
  readonly ungreedy: boolean;
}

export interface Syntax {
  readonly root: Node;
  /** Number of capturing groups. The whole match does not count. */
  readonly groups: number;
  readonly names: ReadonlyMap<string, number>;
}

/** Parses a pattern in RE2 syntax. Throws RegexpError. */
export function parseRegexp(pattern: string): Syntax {
  return new Parser(pattern).parse();
}

class Parser {
  readonly #text: string;
  #at = 0;
  #depth = 0;
  #groups = 0;
  readonly #names = new Map<string, number>();
  #flags: Flags = { fold: false, dotAll: false, multiLine: false, ungreedy: false };

  constructor(pattern: string) {
    this.#text = pattern;
  }

  parse(): Syntax {
    const root = this.#alternation();
    if (this.#at < this.#text.length) throw new RegexpError('unexpected )', this.#text);
    return { root, groups: this.#groups, names: this.#names };
  }

  #peek(): string {
    return this.#text[this.#at] ?? '';
  }

  #startsWith(text: string): boolean {
    return this.#text.startsWith(text, this.#at);
  }

  #alternation(): Node {
    const parts: Node[] = [this.#sequence()];
    while (this.#peek() === '|') {
      this.#at += 1;
      parts.push(this.#sequence());
    }
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : { op: 'alternate', parts };
  }

  #sequence(): Node {
    const parts: Node[] = [];
    while (this.#at < this.#text.length && this.#peek() !== '|' && this.#peek() !== ')') {
      const begin = this.#at;
      if (this.#startsWith('\\Q')) {
        this.#quoted(parts);
        continue;
      }
      const atom = this.#atom();
      if (atom !== undefined) parts.push(this.#repeated(atom, begin));
    }
    return parts.length === 0
      ? EMPTY
      : parts.length === 1 && parts[0] !== undefined
        ? parts[0]
        : { op: 'concat', parts };
  }

  #quoted(parts: Node[]): void {
    const end = this.#text.indexOf('\\E', this.#at + 2);
    const text = this.#text.slice(this.#at + 2, end < 0 ? undefined : end);
    for (const char of text) parts.push(this.#literal(char.codePointAt(0) ?? 0));
    this.#at = end < 0 ? this.#text.length : end + 2;
  }

  #repeated(atom: Node, begin: number): Node {
    let node = atom;
    let times = 0;
    for (;;) {
      const bounds = this.#repetition();
      if (bounds === undefined) return node;
      const lazy = this.#peek() === '?';
      if (lazy) this.#at += 1;
      times += 1;
      if (times > 1) throw new RegexpError('invalid nested repetition operator', this.#text.slice(begin, this.#at));
      if (node.op === 'assert' || node.op === 'empty') node = { op: 'concat', parts: [node] };
      node = { op: 'repeat', body: node, ...bounds, greedy: lazy === this.#flags.ungreedy };
    }
  }

  #repetition(): { min: number; max: number } | undefined {
    switch (this.#peek()) {
      case '*':
        this.#at += 1;
        return { min: 0, max: Number.POSITIVE_INFINITY };
      case '+':
        this.#at += 1;
        return { min: 1, max: Number.POSITIVE_INFINITY };
      case '?':
        this.#at += 1;
        return { min: 0, max: 1 };
      case '{': {
        const match = /^\{(\d{1,9})(,(\d{0,9}))?\}/.exec(this.#text.slice(this.#at, this.#at + 24));
        if (match === null) return undefined;
        const min = Number(match[1]);
        const max =
          match[2] === undefined
            ? min
            : match[3] === '' || match[3] === undefined
              ? Number.POSITIVE_INFINITY
              : Number(match[3]);
        if (min > MAX_REPEAT || (max !== Number.POSITIVE_INFINITY && (max > MAX_REPEAT || max < min))) {
          throw new RegexpError('invalid repeat count', match[0]);
        }
        this.#at += match[0].length;
        return { min, max };
      }
      default:
        return undefined;
    }
  }

  /** Parses one element; undefined if the element only sets flags. */
  #atom(): Node | undefined {
    const char = this.#peek();
    switch (char) {
      case '(':
        return this.#group();
      case '[':
        return { op: 'set', set: this.#class() };
      case '.':
        this.#at += 1;
        return {
          op: 'set',
          set: new CharSet(
            this.#flags.dotAll
              ? [[0, LAST]]
              : [
                  [0, 9],
                  [11, LAST],
                ],
          ),
        };
      case '^':
        this.#at += 1;
        return { op: 'assert', what: this.#flags.multiLine ? 'line-begin' : 'begin' };
      case '$':
        this.#at += 1;
        return { op: 'assert', what: this.#flags.multiLine ? 'line-end' : 'end' };
      case '*':
      case '+':
      case '?':
        throw new RegexpError('missing argument to repetition operator', char);
      case '\\':
        return this.#escape();
      default: {
        const code = this.#text.codePointAt(this.#at) ?? 0;
        this.#at += code > 0xffff ? 2 : 1;
        return this.#literal(code);
      }
    }
  }

  #literal(code: number): Node {
    return { op: 'set', set: new CharSet([[code, code]], { fold: this.#flags.fold }) };
  }

  #group(): Node | undefined {
    this.#depth += 1;
    if (this.#depth > MAX_NESTING) throw new RegexpError('expression nests too deeply', this.#text);
    const outer = this.#flags;
    const begin = this.#at;
    this.#at += 1;
    let index: number | undefined;
    if (this.#peek() !== '?') index = ++this.#groups;
    else {
      const named = /^\?P?<(\w*)>/.exec(this.#text.slice(this.#at, this.#at + 256));
      if (named !== null) {
        const name = named[1] ?? '';
        if (name === '')
          throw new RegexpError('invalid named capture', this.#text.slice(begin, this.#at + named[0].length));
        if (this.#names.has(name)) throw new RegexpError('duplicate capture group name', name);
        index = ++this.#groups;
        this.#names.set(name, index);
        this.#at += named[0].length;
      } else if (this.#setFlags(begin)) {
        this.#depth -= 1;
        return undefined;
      }
    }
    const body = this.#alternation();
    if (this.#peek() !== ')') throw new RegexpError('missing closing )', this.#text);
    this.#at += 1;
    this.#flags = outer;
    this.#depth -= 1;
    return index === undefined ? body : { op: 'capture', index, body };
  }

  /** Parses flags such as `(?i)` and `(?i:`. Returns true for a form without a colon, which has no body. */
  #setFlags(begin: number): boolean {
    const match = /^\?([imsU]*)(?:-([imsU]+))?([:)])/.exec(this.#text.slice(this.#at, this.#at + 32));
    if (match === null || (match[0] === '?)' && match[1] === '')) {
      throw new RegexpError(
        'invalid or unsupported Perl syntax',
        this.#text.slice(begin, begin + 4).replace(/^(\(\?<?.).*/, '$1'),
      );
    }
    this.#at += match[0].length;
    const set = (name: string, now: boolean): boolean =>
      match[2]?.includes(name) === true ? false : match[1]?.includes(name) === true ? true : now;
    this.#flags = {
      fold: set('i', this.#flags.fold),
      dotAll: set('s', this.#flags.dotAll),
      multiLine: set('m', this.#flags.multiLine),
      ungreedy: set('U', this.#flags.ungreedy),
    };
    return match[3] === ')';
  }

  #escape(): Node {
    const next = this.#text[this.#at + 1];
    const assertion = next === undefined ? undefined : ASSERTIONS[next];
    if (assertion !== undefined) {
      this.#at += 2;
      return { op: 'assert', what: assertion };
    }
    if (next === 'C') throw new RegexpError('invalid escape sequence', '\\C');
    const perl = this.#perlClass();
    if (perl !== undefined) return { op: 'set', set: new CharSet(perl.ranges, { ...perl, fold: this.#flags.fold }) };
    return this.#literal(this.#escapedCode());
  }

  /** Parses `\d`, `\pL` and similar classes. */
  #perlClass(): { ranges: readonly Range[]; properties?: readonly RegExp[] } | undefined {
    const next = this.#text[this.#at + 1] ?? '';
    const simple = PERL[next];
    if (simple !== undefined) {
      this.#at += 2;
      return { ranges: simple };
    }
    if (next !== 'p' && next !== 'P') return undefined;
    const match = /^\\[pP](?:\{(\^?)(\w{1,64})\}|([A-Z]))/.exec(this.#text.slice(this.#at, this.#at + 80));
    const name = match?.[2] ?? match?.[3];
    if (match === null || name === undefined)
      throw new RegexpError('invalid character class range', this.#text.slice(this.#at, this.#at + 2));
    const negated = (next === 'P') !== (match[1] === '^');
    this.#at += match[0].length;
    return { ranges: [], properties: [propertyOf(name, negated, match[0])] };
  }

  #escapedCode(): number {
    const rest = this.#text.slice(this.#at + 1, this.#at + 12);
    if (rest === '') throw new RegexpError('trailing backslash at end of expression', '');
    const hex = /^x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})/.exec(rest);
    if (hex !== null) {
      const code = Number.parseInt(hex[1] ?? hex[2] ?? '0', 16);
      if (code > LAST) throw new RegexpError('invalid escape sequence', `\\${hex[0]}`);
      this.#at += 1 + hex[0].length;
      return code;
    }
    const octal = /^(?:0[0-7]{0,2}|[1-7][0-7]{1,2})/.exec(rest);
    if (octal !== null) {
      this.#at += 1 + octal[0].length;
      return Number.parseInt(octal[0], 8);
    }
    const code = rest.codePointAt(0) ?? 0;
    const char = String.fromCodePoint(code);
    const control = CONTROLS[char];
    if (control === undefined && (code > 0x7f || /\w/.test(char)))
      throw new RegexpError('invalid escape sequence', `\\${char}`);
    this.#at += 1 + char.length;
    return control ?? code;
  }

  #class(): CharSet {
    const begin = this.#at;
    this.#at += 1;
    const negated = this.#peek() === '^';
    if (negated) this.#at += 1;
    const ranges: Range[] = [];
    const properties: RegExp[] = [];
    for (let first = true; first || this.#peek() !== ']'; first = false) {
      if (this.#at >= this.#text.length) throw new RegexpError('missing closing ]', this.#text.slice(begin));
      if (this.#startsWith('[:')) {
        const named = this.#posix();
        if (named !== undefined) {
          ranges.push(...named);
          continue;
        }
      }
      if (this.#peek() === '\\') {
        const perl = this.#perlClass();
        if (perl !== undefined) {
          ranges.push(...perl.ranges);
          properties.push(...(perl.properties ?? []));
          continue;
        }
      }
      const from = this.#at;
      const low = this.#classCode();
      let high = low;
      if (this.#peek() === '-' && this.#at + 1 < this.#text.length && this.#text[this.#at + 1] !== ']') {
        this.#at += 1;
        high = this.#classCode();
        if (high < low) throw new RegexpError('invalid character class range', this.#text.slice(from, this.#at));
      }
      ranges.push([low, high]);
    }
    this.#at += 1;
    return new CharSet(ranges, { negated, fold: this.#flags.fold, properties });
  }

  #posix(): readonly Range[] | undefined {
    const match = /^\[:(\^?)(\w{1,16}):\]/.exec(this.#text.slice(this.#at, this.#at + 24));
    if (match === null) return undefined;
    const name = match[2] ?? '';
    const ranges = Object.hasOwn(POSIX, name) ? POSIX[name] : undefined;
    if (ranges === undefined) throw new RegexpError('invalid character class range', match[0]);
    this.#at += match[0].length;
    return match[1] === '^' ? complement(ranges) : ranges;
  }

  #classCode(): number {
    if (this.#peek() === '\\') return this.#escapedCode();
    const code = this.#text.codePointAt(this.#at);
    if (code === undefined) throw new RegexpError('missing closing ]', this.#text);
    this.#at += code > 0xffff ? 2 : 1;
    return code;
  }
}

const ASSERTIONS: Readonly<Record<string, Assertion>> = { A: 'begin', z: 'end', b: 'word', B: 'not-word' };
const CONTROLS: Readonly<Record<string, number>> = { a: 7, f: 12, n: 10, r: 13, t: 9, v: 11 };

function propertyOf(name: string, negated: boolean, shown: string): RegExp {
  const letter = negated ? 'P' : 'p';
  if (name === 'Any') return negated ? /[^\s\S]/u : /[\s\S]/u;
  // JavaScript's matcher is safe here, because the pattern is applied only to single code points.
  for (const form of [`General_Category=${name}`, `Script=${name}`]) {
    try {
      return new RegExp(`^\\${letter}{${form}}$`, 'u');
    } catch {
      // The name is not a property of this type. Continue with the next type.
    }
  }
  throw new RegexpError('invalid character class range', shown);
}
