/** Tokenizer. Source: cel-spec, doc/langdef.md (lexis). */
import { CompileError } from './ast.ts';

export interface Token {
  readonly type: 'ident' | 'int' | 'uint' | 'double' | 'string' | 'bytes' | 'op' | 'end';
  readonly at: number;
  readonly text: string;
  /** Unescaped value of a string literal. `bytes` is the unescaped value of a bytes literal. */
  readonly string?: string;
  readonly bytes?: Uint8Array;
}

const MAX_SOURCE = 100_000;
const SPACE = /(?:\s|\/\/[^\n]*)+/y;
const NUMBER = /0[xX][0-9a-fA-F]+[uU]?|\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?|\d+[uU]?/y;
const IDENT = /[A-Za-z_]\w*|`[\w./ -]+`/y;
const STRING = /(?:[bB][rR]?|[rR][bB]?)?(?:"""|'''|"|')/y;
const OPERATOR = /==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,()[\]{}=]/y;

export function tokenize(source: string): Token[] {
  const tokens: Token[] = [];
  if (source.length > MAX_SOURCE)
    throw new CompileError('', [{ at: 0, message: `expression is larger than ${MAX_SOURCE} characters` }]);
  const take = (pattern: RegExp, at: number): RegExpExecArray | null => {
    pattern.lastIndex = at;
    return pattern.exec(source);
  };
  let at = 0;
  for (;;) {
    at += take(SPACE, at)?.[0].length ?? 0;
    if (at >= source.length) break;
    const quote = take(STRING, at);
    if (quote !== null) {
      const token = readString(source, at, quote[0]);
      tokens.push(token);
      at += token.text.length;
      continue;
    }
    const ident = take(IDENT, at);
    if (ident !== null) {
      tokens.push({ type: 'ident', at, text: ident[0] });
      at += ident[0].length;
      continue;
    }
    const number = take(NUMBER, at);
    if (number !== null) {
      const text = number[0];
      const hex = /^0x/i.test(text);
      const type = /[uU]$/.test(text) ? 'uint' : !hex && /[.eE]/.test(text) ? 'double' : 'int';
      tokens.push({ type, at, text });
      at += text.length;
      continue;
    }
    const operator = take(OPERATOR, at);
    if (operator === null) {
      throw new CompileError(source, [
        { at, message: `Syntax error: token recognition error at: '${source.slice(at, at + 1)}'` },
      ]);
    }
    tokens.push({ type: 'op', at, text: operator[0] });
    at += operator[0].length;
  }
  tokens.push({ type: 'end', at: source.length, text: '<EOF>' });
  return tokens;
}

function readString(source: string, at: number, opening: string): Token {
  const quote = opening.replace(/^[a-zA-Z]+/, '');
  const prefix = opening.slice(0, opening.length - quote.length).toLowerCase();
  const raw = prefix.includes('r');
  const isBytes = prefix.includes('b');
  const codes: number[] = [];
  let next = at + opening.length;
  for (;;) {
    if (next >= source.length || (quote.length === 1 && source[next] === '\n')) {
      throw new CompileError(source, [
        { at, message: `Syntax error: token recognition error at: '${source.slice(at, at + 32)}'` },
      ]);
    }
    if (source.startsWith(quote, next)) break;
    if (source[next] === '\\' && !raw) {
      next = readEscape(source, next, codes, isBytes);
      continue;
    }
    const code = source.codePointAt(next) ?? 0;
    pushCode(codes, code, isBytes);
    next += code > 0xffff ? 2 : 1;
  }
  const text = source.slice(at, next + quote.length);
  if (isBytes) return { type: 'bytes', at, text, bytes: Uint8Array.from(codes) };
  let string = '';
  for (const code of codes) string += String.fromCodePoint(code);
  return { type: 'string', at, text, string };
}

function pushCode(codes: number[], code: number, isBytes: boolean): void {
  if (!isBytes) codes.push(code);
  else codes.push(...new TextEncoder().encode(String.fromCodePoint(code)));
}

const ESCAPES: Readonly<Record<string, number>> = {
  a: 7,
  b: 8,
  f: 12,
  n: 10,
  r: 13,
  t: 9,
  v: 11,
  '\\': 92,
  '?': 63,
  '"': 34,
  "'": 39,
  '`': 96,
};

function readEscape(source: string, at: number, codes: number[], isBytes: boolean): number {
  const rest = source.slice(at + 1, at + 12);
  const simple = ESCAPES[rest[0] ?? ''];
  if (simple !== undefined) {
    codes.push(simple);
    return at + 2;
  }
  const match = /^(?:[xX]([0-9a-fA-F]{2})|([0-3][0-7]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))/.exec(rest);
  const bad = (): CompileError => new CompileError(source, [{ at, message: 'Syntax error: invalid escape sequence' }]);
  if (match === null) throw bad();
  const code =
    match[2] === undefined ? Number.parseInt(match[1] ?? match[3] ?? match[4] ?? '', 16) : Number.parseInt(match[2], 8);
  const unicode = match[3] !== undefined || match[4] !== undefined;
  if (code > 0x10ffff || (unicode && (isBytes || (code >= 0xd800 && code <= 0xdfff)))) throw bad();
  codes.push(code);
  return at + 1 + match[0].length;
}
