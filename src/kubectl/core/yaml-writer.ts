/**
 * YAML in the form that kubectl prints: keys in natural order, lists that are not indented, lines folded after 80
 * columns, and Go's choice between plain, quoted and literal text. Source: go.yaml.in/yaml/v2 encode.go, sorter.go,
 * emitterc.go.
 */

const INDENT = 2;
const BEST_WIDTH = 80;
/** Maximum length of a simple key. Longer keys, and keys with line breaks, are written as `? key`. */
const MAX_SIMPLE_KEY = 128;

/** One YAML document, with a line feed at its end. */
export function yamlText(value: unknown): string {
  const writer = new Writer();
  writer.node(value, -INDENT, { inMapping: false });
  return writer.end();
}

class Writer {
  #text = '';
  #column = 0;
  /** True if the current line contains only indentation and indicators so far. */
  #atIndent = true;

  end(): string {
    return this.#text.endsWith('\n') ? this.#text : `${this.#text}\n`;
  }

  /** Writes a node. `indent` is the indentation of the collection that contains the node. */
  node(value: unknown, indent: number, { inMapping }: { readonly inMapping: boolean }): void {
    if (Array.isArray(value)) this.#list(value, inMapping ? indent : indent + INDENT);
    else if (typeof value === 'object' && value !== null) this.#mapping(value, indent + INDENT);
    else this.#scalar(value, Math.max(indent, 0) + INDENT, { isKey: false });
  }

  #list(items: readonly unknown[], indent: number): void {
    if (items.length === 0) this.#word('[]');
    for (const item of items) {
      this.#toIndent(indent);
      this.#put('-');
      this.node(item ?? null, indent, { inMapping: false });
    }
  }

  #mapping(object: object, indent: number): void {
    const entries = Object.entries(object).filter(([, value]) => value !== undefined);
    if (entries.length === 0) this.#word('{}');
    for (const [key, value] of entries.sort(([left], [right]) => (isBefore(left, right) ? -1 : 1))) {
      this.#toIndent(indent);
      const isSimple = Buffer.byteLength(key) <= MAX_SIMPLE_KEY && !/[\r\n\x85\u2028\u2029]/.test(key);
      if (!isSimple) this.#put('?');
      this.#scalar(key, indent + INDENT, { isKey: isSimple });
      if (!isSimple) this.#toIndent(indent);
      this.#write(':');
      this.#atIndent = !isSimple;
      this.node(value, indent, { inMapping: isSimple });
    }
  }

  /** Writes an indicator. A collection may begin after it on the same line. */
  #put(indicator: string): void {
    this.#write(indicator);
    this.#atIndent = true;
  }

  #word(text: string): void {
    this.#space();
    this.#write(text);
  }

  #space(): void {
    if (this.#column > 0 && !this.#text.endsWith(' ')) this.#write(' ');
  }

  #write(text: string): void {
    this.#text += text;
    this.#column += text.length;
    this.#atIndent = false;
  }

  #break(): void {
    this.#text += '\n';
    this.#column = 0;
  }

  #toIndent(indent: number): void {
    if (this.#atIndent && this.#column < indent && this.#column > 0) this.#write(' '.repeat(indent - this.#column));
    else if (!(this.#atIndent && this.#column === indent)) {
      if (this.#text !== '' && this.#column > 0) this.#break();
      this.#write(' '.repeat(indent));
    }
    this.#atIndent = true;
  }

  #fold(indent: number): void {
    this.#break();
    this.#write(' '.repeat(indent));
  }

  #scalar(value: unknown, indent: number, { isKey }: { readonly isKey: boolean }): void {
    this.#space();
    if (typeof value !== 'string') this.#write(typeof value === 'number' ? numberText(value) : String(value));
    else {
      const form = formOf(value, isKey);
      if (form === 'plain') this.#folded(value, indent, isKey, '');
      else if (form === 'single') this.#folded(value.replaceAll("'", "''"), indent, isKey, "'");
      else if (form === 'double') this.#double(value, indent, isKey);
      else this.#literal(value, indent);
    }
  }

  #folded(text: string, indent: number, isKey: boolean, quote: string): void {
    this.#write(quote);
    let spaces = false;
    for (let at = 0; at < text.length; at += 1) {
      const char = text[at] as string;
      const isInside = quote === '' || (at > 0 && at < text.length - 1);
      if (char === ' ' && !isKey && !spaces && this.#column > BEST_WIDTH && isInside && text[at + 1] !== ' ') {
        this.#fold(indent);
      } else this.#write(char);
      spaces = char === ' ';
    }
    this.#write(quote);
  }

  #double(text: string, indent: number, isKey: boolean): void {
    this.#write('"');
    let spaces = false;
    const chars = [...text];
    for (const [at, char] of chars.entries()) {
      const isInside = at > 0 && at < chars.length - 1;
      if (char === ' ' && !isKey && !spaces && this.#column > BEST_WIDTH && isInside) {
        this.#fold(indent);
        if (chars[at + 1] === ' ') this.#write('\\');
      } else this.#write(isPrintable(char) && !/["\\\n\u2028\u2029]/.test(char) ? char : escaped(char));
      spaces = char === ' ';
    }
    this.#write('"');
  }

  #literal(text: string, indent: number): void {
    const hint = /^[ \n]/.test(text) ? String(INDENT) : '';
    const chomp = !text.endsWith('\n') ? '-' : text === '\n' || text.endsWith('\n\n') ? '+' : '';
    this.#write(`|${hint}${chomp}`);
    this.#break();
    const lines = (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n');
    this.#text += lines.map((line) => (line === '' ? '' : ' '.repeat(indent) + line)).join('\n');
    this.#break();
  }
}

type Form = 'plain' | 'single' | 'double' | 'literal';

/** Form in which Go's emitter writes a text: plain, quoted or literal. */
function formOf(text: string, isKey: boolean): Form {
  const isMultiline = text.includes('\n');
  // Unicode line separators would be line breaks in a plain text.
  const isSpecial = [...text].some((char) => !isPrintable(char) || /[\u2028\u2029]/.test(char));
  const spaceBreak = / \n/.test(text);
  if (isMultiline) {
    const blockAllowed = !text.endsWith(' ') && !spaceBreak && !isSpecial;
    return blockAllowed && !isKey ? 'literal' : 'double';
  }
  if (resolvesToOther(text) || isSpecial) return 'double';
  const hasIndicator =
    /^(?:---|\.\.\.)/.test(text) ||
    /^[#,[\]{}&*!|>'"%@`]/.test(text) ||
    /^[?:-](?:\s|$)/.test(text) ||
    /:(?:\s|$)/.test(text) ||
    /\s#/.test(text);
  return hasIndicator || text.startsWith(' ') || text.endsWith(' ') ? 'single' : 'plain';
}

const WORDS = new Set(
  ['', '~', 'null', 'true', 'false', 'yes', 'no', 'on', 'off', 'y', 'n', '.nan', '.inf', '+.inf', '-.inf'].flatMap(
    (word) => [word, word.toUpperCase(), word.replace(/[a-z]/, (char) => char.toUpperCase())],
  ),
).add('.NaN');
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
const INTEGER = /^[-+]?(?:0|[1-9][0-9]*|0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+)$/;
const BASE_60 = /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/;
const TIMESTAMP =
  /^\d{4}-\d{1,2}-\d{1,2}(?:(?:[Tt]|[ \t]+)\d{1,2}:\d{2}:\d{2}(?:\.\d*)?(?:Z|[ \t]*[-+]\d{1,2}(?::\d{2})?)?)?$/;

/** True if YAML 1.1 reads the text as a number, a boolean, null or a time. */
function resolvesToOther(text: string): boolean {
  if (WORDS.has(text)) return true;
  if (!/^[-+.0-9]/.test(text)) return false;
  const plain = text.replaceAll('_', '');
  return FLOAT.test(plain) || INTEGER.test(plain) || BASE_60.test(text) || TIMESTAMP.test(text);
}

/**
 * Whether Go's emitter prints the character unescaped. The emitter also escapes tabs and characters beyond the basic
 * plane.
 */
function isPrintable(char: string): boolean {
  const code = char.codePointAt(0) ?? 0;
  return (
    code === 0x0a ||
    (code >= 0x20 && code <= 0x7e) ||
    (code >= 0xa0 && code <= 0xd7ff) ||
    (code >= 0xe000 && code <= 0xfffd && code !== 0xfeff)
  );
}

const ESCAPES: Readonly<Record<string, string>> = {
  '\0': '\\0',
  '\x07': '\\a',
  '\b': '\\b',
  '\t': '\\t',
  '\n': '\\n',
  '\v': '\\v',
  '\f': '\\f',
  '\r': '\\r',
  '\x1b': '\\e',
  '"': '\\"',
  '\\': '\\\\',
  '\x85': '\\N',
  '\u2028': '\\L',
  '\u2029': '\\P',
};

function escaped(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  const hex = code.toString(16).toUpperCase();
  return (
    ESCAPES[char] ??
    (code <= 0xff
      ? `\\x${hex.padStart(2, '0')}`
      : code <= 0xffff
        ? `\\u${hex.padStart(4, '0')}`
        : `\\U${hex.padStart(8, '0')}`)
  );
}

/** Text of a number in the format of `strconv.FormatFloat(value, 'g', -1, 64)`; integers have no exponent. */
function numberText(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 2 ** 63) return BigInt(value).toString();
  const [digits = '', power = '0'] = value.toExponential().split('e');
  const exponent = Number(power);
  if (exponent >= -4 && exponent < 21) return String(value);
  return `${digits}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

const isLetter = (char: string): boolean => /\p{L}/u.test(char);
const isDigit = (char: string | undefined): boolean => char !== undefined && /\p{Nd}/u.test(char);

/** Order of keys. Numbers within keys are compared by value. */
function isBefore(left: string, right: string): boolean {
  const [a, b] = [[...left], [...right]];
  for (let at = 0; at < a.length && at < b.length; at += 1) {
    const [first, second] = [a[at] as string, b[at] as string];
    if (first === second) continue;
    const [isFirstLetter, isSecondLetter] = [isLetter(first), isLetter(second)];
    if (isFirstLetter && isSecondLetter) return (first.codePointAt(0) ?? 0) < (second.codePointAt(0) ?? 0);
    if (isFirstLetter || isSecondLetter) return isSecondLetter;
    let [start] = [''];
    if (first === '0' || second === '0')
      for (let before = at - 1; before >= 0 && isDigit(a[before]); before -= 1)
        if (a[before] !== '0') {
          start = '1';
          break;
        }
    const firstDigits = digitsAt(a, at);
    const secondDigits = digitsAt(b, at);
    const firstNumber = BigInt(`${start}${firstDigits}` || '0');
    const secondNumber = BigInt(`${start}${secondDigits}` || '0');
    if (firstNumber !== secondNumber) return firstNumber < secondNumber;
    if (firstDigits.length !== secondDigits.length) return firstDigits.length < secondDigits.length;
    return (first.codePointAt(0) ?? 0) < (second.codePointAt(0) ?? 0);
  }
  return a.length < b.length;
}

function digitsAt(chars: readonly string[], start: number): string {
  let digits = '';
  for (let at = start; /^[0-9]$/.test(chars[at] ?? ''); at += 1) digits += chars[at];
  return digits;
}
