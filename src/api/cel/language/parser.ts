/**
 * Parses expressions. As in the specification, macros are recognised here. Source: cel-spec, doc/langdef.md (syntax).
 */

import { Uint } from '../values.ts';
import { CompileError, dottedName, type Expr, type FieldInit, type MacroName } from './ast.ts';
import { type Token, tokenize } from './lexer.ts';
import { MACROS } from './macro-syntax.ts';

const MAX_DEPTH = 250;
const RELATIONS: ReadonlySet<string> = new Set(['<', '<=', '>', '>=', '==', '!=', 'in']);
const RESERVED: ReadonlySet<string> = new Set(
  'as break const continue else for function if import let loop package namespace return var void while'.split(' '),
);
const INT_MAX = 2n ** 63n - 1n;
const UINT_MAX = 2n ** 64n - 1n;

/** Parses an expression. Throws CompileError if the syntax is invalid. */
export function parse(source: string): Expr {
  return new Parser(source).parse();
}

class Parser {
  readonly #source: string;
  readonly #tokens: readonly Token[];
  #next = 0;
  #depth = 0;

  constructor(source: string) {
    this.#source = source;
    this.#tokens = tokenize(source);
  }

  parse(): Expr {
    const expression = this.#expression();
    if (this.#peek().type !== 'end') throw this.#unexpected('<EOF>');
    return expression;
  }

  #peek(): Token {
    return this.#tokens[this.#next] as Token;
  }

  #fail(at: number, message: string): CompileError {
    return new CompileError(this.#source, [{ at, message }]);
  }

  /** Syntax error in the wording of upstream's parser, which reports a token to remove or to insert. */
  #unexpected(expecting: string): CompileError {
    const token = this.#peek();
    const text = `'${token.text.slice(0, 64)}'`;
    const after = this.#tokens[this.#next + 1];
    const extra =
      token.type !== 'end' &&
      after !== undefined &&
      (expecting === EXPRESSION
        ? begins(after)
        : expecting === '<EOF>'
          ? after.type === 'end'
          : `'${after.text}'` === expecting);
    if (extra) return this.#fail(token.at, `Syntax error: extraneous input ${text} expecting ${expecting}`);
    if (token.type === 'end' && CLOSING.has(expecting))
      return this.#fail(token.at, `Syntax error: missing ${expecting} at ${text}`);
    return this.#fail(token.at, `Syntax error: mismatched input ${text} expecting ${expecting}`);
  }

  #is(text: string): boolean {
    const token = this.#peek();
    return token.text === text && (token.type === 'op' || token.type === 'ident');
  }

  #accept(text: string): Token | undefined {
    if (!this.#is(text)) return undefined;
    this.#next += 1;
    return this.#tokens[this.#next - 1];
  }

  #expect(text: string): Token {
    const token = this.#accept(text);
    if (token === undefined) throw this.#unexpected(`'${text}'`);
    return token;
  }

  #nested<T>(parse: () => T): T {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw this.#fail(this.#peek().at, `expression recursion limit exceeded: ${MAX_DEPTH}`);
    const result = parse();
    this.#depth -= 1;
    return result;
  }

  #expression(): Expr {
    return this.#nested(() => {
      const condition = this.#binary(0);
      const mark = this.#accept('?');
      if (mark === undefined) return condition;
      const then = this.#binary(0);
      this.#expect(':');
      const otherwise = this.#expression();
      return call(mark.at, '_?_:_', [condition, then, otherwise]);
    });
  }

  /**
   * Parses binary operators. Precedence levels from the lowest: ||, &&, relations, sums, products. A loop parses chains
   * such as `a + b + c`, so that long chains need no deep recursion.
   */
  #binary(level: number): Expr {
    if (level === LEVELS.length) return this.#unary();
    let left = this.#binary(level + 1);
    let chain = 0;
    for (;;) {
      const token = this.#peek();
      const matches = LEVELS[level]?.has(token.text) === true && (token.type === 'op' || token.text === 'in');
      if (!matches) return left;
      this.#next += 1;
      chain += 1;
      if (chain > MAX_DEPTH * 4) throw this.#fail(token.at, `expression recursion limit exceeded: ${MAX_DEPTH}`);
      const right = this.#binary(level + 1);
      left = call(token.at, token.text === 'in' ? '@in' : `_${token.text}_`, [left, right]);
    }
  }

  #unary(): Expr {
    const token = this.#peek();
    if (token.type === 'op' && (token.text === '!' || token.text === '-')) {
      return this.#nested(() => {
        this.#next += 1;
        const number = this.#peek();
        if (token.text === '-' && (number.type === 'int' || number.type === 'double')) {
          this.#next += 1;
          return this.#postfix(this.#number(number, '-'));
        }
        return call(token.at, token.text === '!' ? '!_' : '-_', [this.#unary()]);
      });
    }
    return this.#postfix(this.#primary());
  }

  #number(token: Token, sign: '-' | '+'): Expr {
    const { at } = token;
    if (token.type === 'double') return { op: 'const', at, value: (sign === '-' ? -1 : 1) * Number(token.text) };
    const value = BigInt(token.type === 'uint' ? token.text.slice(0, -1) : token.text) * (sign === '-' ? -1n : 1n);
    if (token.type === 'uint') {
      if (value > UINT_MAX) throw this.#fail(at, 'invalid uint literal');
      return { op: 'const', at, value: new Uint(value) };
    }
    if (value > INT_MAX || value < -INT_MAX - 1n) throw this.#fail(at, 'invalid int literal');
    return { op: 'const', at, value };
  }

  #primary(): Expr {
    const token = this.#peek();
    this.#next += 1;
    const { at } = token;
    switch (token.type) {
      case 'int':
      case 'uint':
      case 'double':
        return this.#number(token, '+');
      case 'string':
        return { op: 'const', at, value: token.string ?? '' };
      case 'bytes':
        return { op: 'const', at, value: token.bytes ?? new Uint8Array() };
      case 'ident':
        return this.#identifier(token);
      default:
    }
    if (token.text === '(') {
      const inner = this.#expression();
      this.#expect(')');
      return inner;
    }
    if (token.text === '[') return this.#list(at);
    if (token.text === '{') return this.#map(at);
    if (token.text === '.') {
      const name = this.#peek();
      if (name.type !== 'ident') throw this.#unexpected('IDENTIFIER');
      this.#next += 1;
      return this.#identifier(name);
    }
    this.#next -= 1;
    throw this.#unexpected(EXPRESSION);
  }

  #identifier(token: Token): Expr {
    const { at, text } = token;
    if (text === 'true' || text === 'false') return { op: 'const', at, value: text === 'true' };
    if (text === 'null') return { op: 'const', at, value: null };
    if (RESERVED.has(text)) throw this.#fail(at, `reserved identifier: ${text}`);
    if (text === 'in' || text.startsWith('`')) {
      this.#next -= 1;
      throw this.#unexpected(EXPRESSION);
    }
    const open = this.#accept('(');
    if (open === undefined) return { op: 'ident', at, name: text };
    const args = this.#arguments();
    if (text === 'has') return this.#has(open.at, args);
    return call(open.at, text, args);
  }

  #has(at: number, args: readonly Expr[]): Expr {
    const [argument] = args;
    if (args.length !== 1 || argument?.op !== 'select' || argument.test)
      throw this.#fail(argument?.at ?? at, 'invalid argument to has() macro');
    return { ...argument, at, test: true };
  }

  #arguments(): Expr[] {
    const args: Expr[] = [];
    if (this.#accept(')') !== undefined) return args;
    do args.push(this.#expression());
    while (this.#accept(',') !== undefined);
    this.#expect(')');
    return args;
  }

  #list(at: number): Expr {
    const items: { value: Expr; optional: boolean }[] = [];
    while (this.#accept(']') === undefined) {
      const optional = this.#accept('?') !== undefined;
      items.push({ value: this.#expression(), optional });
      if (this.#accept(',') === undefined) {
        this.#expect(']');
        break;
      }
    }
    return { op: 'list', at, items };
  }

  #map(at: number): Expr {
    const entries: { key: Expr; value: Expr; optional: boolean }[] = [];
    while (this.#accept('}') === undefined) {
      const optional = this.#accept('?') !== undefined;
      const key = this.#expression();
      this.#expect(':');
      entries.push({ key, value: this.#expression(), optional });
      if (this.#accept(',') === undefined) {
        this.#expect('}');
        break;
      }
    }
    return { op: 'map', at, entries };
  }

  #postfix(start: Expr): Expr {
    let expression = start;
    for (let length = 0; ; length++) {
      if (length > MAX_DEPTH) throw this.#fail(this.#peek().at, `expression recursion limit exceeded: ${MAX_DEPTH}`);
      const dot = this.#accept('.');
      if (dot !== undefined) {
        const optional = this.#accept('?') !== undefined;
        const name = this.#peek();
        if (name.type !== 'ident') throw this.#unexpected('IDENTIFIER');
        this.#next += 1;
        const field = fieldName(name);
        const open = optional ? undefined : this.#accept('(');
        if (open !== undefined) {
          expression = this.#member(open.at, expression, field, this.#arguments());
        } else expression = { op: 'select', at: dot.at, target: expression, field, test: false, optional };
        continue;
      }
      const type = this.#is('{') ? dottedName(expression) : undefined;
      if (type !== undefined) {
        const brace = this.#expect('{');
        expression = this.#struct(brace.at, type);
        continue;
      }
      const bracket = this.#accept('[');
      if (bracket === undefined) break;
      const optional = this.#accept('?') !== undefined;
      const index = this.#expression();
      this.#expect(']');
      expression = call(bracket.at, optional ? '_[?_]' : '_[_]', [expression, index]);
    }
    return expression;
  }

  /** Parses the fields after `Name{`. Braces construct a message only if they follow the name of a type. */
  #struct(at: number, name: string): Expr {
    const fields: FieldInit[] = [];
    while (this.#accept('}') === undefined) {
      const optional = this.#accept('?') !== undefined;
      const field = this.#peek();
      if (field.type !== 'ident' || NO_FIELDS.has(field.text)) throw this.#unexpected('IDENTIFIER');
      this.#next += 1;
      this.#expect(':');
      fields.push({ at: field.at, name: fieldName(field), value: this.#expression(), optional });
      if (this.#accept(',') === undefined) {
        this.#expect('}');
        break;
      }
    }
    return { op: 'struct', at, name, fields };
  }

  #member(at: number, target: Expr, name: string, args: readonly Expr[]): Expr {
    const variables = MACROS.get(name);
    if (variables === undefined) return { op: 'call', at, name, target, args };
    const form = variables.find((each) => each.args === args.length);
    if (form === undefined) {
      // No function has the name of a macro, so the call is a macro with wrong arguments.
      return { op: 'call', at, name, target, args };
    }
    const vars = args.slice(0, form.vars).map((each) => {
      if (each.op !== 'ident') throw this.#fail(each.at, 'argument is not an identifier');
      return each.name;
    });
    if (new Set(vars).size < vars.length) throw this.#fail(at, 'the variables of a comprehension must differ');
    const macro = (name === 'existsOne' ? 'exists_one' : name) as MacroName;
    return { op: 'macro', at, name: macro, target, vars, args: args.slice(form.vars) };
  }
}

/** Tokens that can start an expression, as upstream lists them. */
const EXPRESSION =
  "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
const CLOSING: ReadonlySet<string> = new Set(["')'", "']'", "'}'"]);

function begins(token: Token): boolean {
  if (token.type === 'op') return /^[-[{(.!]$/.test(token.text);
  return token.type !== 'end' && token.text !== 'in';
}

const LEVELS: readonly ReadonlySet<string>[] = [
  new Set(['||']),
  new Set(['&&']),
  RELATIONS,
  new Set(['+', '-']),
  new Set(['*', '/', '%']),
];

/** Names that cannot be fields unless they are quoted. */
const NO_FIELDS: ReadonlySet<string> = new Set(['in', 'true', 'false', 'null']);

/** Names in backticks may have any characters. */
function fieldName({ text }: Token): string {
  return text.startsWith('`') ? text.slice(1, -1) : text;
}

function call(at: number, name: string, args: readonly Expr[]): Expr {
  return { op: 'call', at, name, target: undefined, args };
}
