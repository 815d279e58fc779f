/**
 * Parser for the part of PromQL that the rules of this product use. Any other syntax is an error, so that a rule cannot
 * have another result than in Prometheus. Source: prometheus.io/docs/prometheus/latest/querying/basics.
 */
import { CodedError } from '../../base/errors.ts';
import { parsePromDuration } from './prom-duration.ts';

export type Expression = NumberLiteral | Selector | Call | Aggregation | Binary;

export interface NumberLiteral {
  readonly kind: 'number';
  readonly value: number;
}

export interface Selector {
  readonly kind: 'selector';
  readonly metric: string;
  readonly matchers: readonly Matcher[];
  /** Length of a range selector; undefined for an instant selector. */
  readonly rangeMs: number | undefined;
}

export interface Matcher {
  readonly label: string;
  readonly operator: '=' | '!=' | '=~' | '!~';
  readonly value: string;
}

export interface Call {
  readonly kind: 'call';
  readonly name: FunctionName;
  readonly arguments: readonly Expression[];
}

export interface Aggregation {
  readonly kind: 'aggregation';
  readonly operator: AggregationName;
  readonly grouping: { readonly keep: boolean; readonly labels: readonly string[] };
  readonly of: Expression;
}

export interface Binary {
  readonly kind: 'binary';
  readonly operator: BinaryOperator;
  readonly left: Expression;
  readonly right: Expression;
  /**
   * Labels by which the sides are matched: with `keep`, only these labels (`on`), otherwise all except these
   * (`ignoring`). Undefined matches by all labels.
   */
  readonly matching: { readonly keep: boolean; readonly labels: readonly string[] } | undefined;
}

type ValueType = 'scalar' | 'vector' | 'range';

const FUNCTIONS = {
  rate: ['range'],
  increase: ['range'],
  changes: ['range'],
  histogram_quantile: ['scalar', 'vector'],
} as const satisfies Record<string, readonly ValueType[]>;
export type FunctionName = keyof typeof FUNCTIONS;

const AGGREGATIONS = ['sum', 'min', 'max', 'avg', 'count'] as const;
export type AggregationName = (typeof AGGREGATIONS)[number];

/** Operators by precedence, from the lowest to the highest. All operators are left-associative. */
const LEVELS = [['or'], ['and', 'unless'], ['==', '!=', '<=', '>=', '<', '>'], ['+', '-'], ['*', '/']] as const;
export type BinaryOperator = (typeof LEVELS)[number][number];
const SETS: ReadonlySet<string> = new Set(['or', 'and', 'unless']);
const COMPARISONS: ReadonlySet<string> = new Set(LEVELS[2]);

const TOKEN =
  /\s*(?:(?<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]))|(?<word>[a-zA-Z_][\w:]*)|(?<text>"(?:[^"\\\n]|\\.)*")|(?<range>\[[^\]]*\])|(?<sign>=~|!~|==|!=|<=|>=|[-+*/<>=(){},]))/uy;

interface Token {
  readonly kind: 'number' | 'word' | 'text' | 'range' | 'sign' | 'end';
  readonly text: string;
}

/** Maximum depth of an expression. It limits the recursion of the parser and the evaluator. */
const MAX_DEPTH = 32;

/** Parses an expression. Throws CodedError 'bad-rule' if it is invalid or not supported. */
export function parseExpression(text: string): Expression {
  const parser = new Parser(text);
  const expression = parser.binary(0);
  parser.end();
  if (typeOf(expression) === 'range') throw parser.fail('a range selector needs a function such as rate');
  return expression;
}

/** Selectors that the expression contains. */
export function selectorsOf(expression: Expression): Selector[] {
  switch (expression.kind) {
    case 'number':
      return [];
    case 'selector':
      return [expression];
    case 'call':
      return expression.arguments.flatMap(selectorsOf);
    case 'aggregation':
      return selectorsOf(expression.of);
    case 'binary':
      return [...selectorsOf(expression.left), ...selectorsOf(expression.right)];
  }
}

function typeOf(expression: Expression): ValueType {
  switch (expression.kind) {
    case 'number':
      return 'scalar';
    case 'selector':
      return expression.rangeMs === undefined ? 'vector' : 'range';
    case 'call':
    case 'aggregation':
      return 'vector';
    case 'binary':
      return typeOf(expression.left) === 'scalar' && typeOf(expression.right) === 'scalar' ? 'scalar' : 'vector';
  }
}

class Parser {
  readonly #text: string;
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
    this.#tokens = this.#scan();
  }

  fail(what: string): CodedError {
    return new CodedError('bad-rule', `${this.#text.trim()}: ${what}`);
  }

  end(): void {
    if (this.#next.kind !== 'end') throw this.fail(`"${this.#next.text}" is not expected at this position`);
  }

  binary(level: number): Expression {
    const operators: readonly string[] | undefined = LEVELS[level];
    if (operators === undefined) return this.#unary();
    let left = this.binary(level + 1);
    for (;;) {
      const operator = operators.find((each) => each === this.#next.text && this.#next.kind !== 'text');
      if (operator === undefined) return left;
      this.#at += 1;
      if (this.#next.text === 'bool') throw this.fail('bool is not supported');
      const matching = this.#matching();
      const right = this.binary(level + 1);
      left = this.#checked({ kind: 'binary', operator: operator as BinaryOperator, left, right, matching });
    }
  }

  #checked(binary: Binary): Binary {
    const { operator } = binary;
    const types = [typeOf(binary.left), typeOf(binary.right)];
    if (types.includes('range')) throw this.fail(`${operator} of a range selector`);
    const vectors = types.every((type) => type === 'vector');
    if (SETS.has(operator) && !vectors) throw this.fail(`${operator} needs vectors`);
    if (binary.matching !== undefined && !vectors) throw this.fail('on and ignoring need vectors');
    if (COMPARISONS.has(operator) && types.every((type) => type === 'scalar'))
      throw this.fail('a comparison of two numbers needs bool, which is not supported');
    return binary;
  }

  #matching(): Binary['matching'] {
    const word = this.#next.text;
    if (word !== 'on' && word !== 'ignoring') return undefined;
    this.#at += 1;
    const labels = this.#labelList();
    if (this.#next.text === 'group_left' || this.#next.text === 'group_right')
      throw this.fail(`${this.#next.text} is not supported`);
    return { keep: word === 'on', labels };
  }

  #unary(): Expression {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw this.fail('nested too deeply');
    const { kind, text } = this.#next;
    const expression = this.#primary(kind, text);
    this.#depth -= 1;
    return expression;
  }

  #primary(kind: Token['kind'], text: string): Expression {
    if (kind === 'number') {
      this.#at += 1;
      return { kind: 'number', value: Number(text) };
    }
    if (text === '-' && this.#tokens[this.#at + 1]?.kind === 'number') {
      this.#at += 2;
      return { kind: 'number', value: -Number(this.#tokens[this.#at - 1]?.text) };
    }
    if (text === '(') {
      this.#at += 1;
      const inner = this.binary(0);
      this.#expect(')');
      return inner;
    }
    if (kind !== 'word') throw this.fail(`"${text}" is not expected at this position`);
    this.#at += 1;
    const aggregation = AGGREGATIONS.find((each) => each === text);
    if (aggregation !== undefined) return this.#aggregation(aggregation);
    if (this.#next.text === '(') return this.#call(text);
    return this.#selector(text);
  }

  #aggregation(operator: AggregationName): Aggregation {
    const before = this.#grouping();
    this.#expect('(');
    const of = this.binary(0);
    this.#expect(')');
    if (typeOf(of) !== 'vector') throw this.fail(`${operator} needs a vector`);
    return { kind: 'aggregation', operator, grouping: before ?? this.#grouping() ?? { keep: true, labels: [] }, of };
  }

  #grouping(): Aggregation['grouping'] | undefined {
    const word = this.#next.text;
    if (word !== 'by' && word !== 'without') return undefined;
    this.#at += 1;
    return { keep: word === 'by', labels: this.#labelList() };
  }

  #call(name: string): Call {
    if (!Object.hasOwn(FUNCTIONS, name)) throw this.fail(`the function ${name} is not supported`);
    const known = name as FunctionName;
    this.#expect('(');
    const given: Expression[] = [];
    const types: readonly ValueType[] = FUNCTIONS[known];
    for (const [index, type] of types.entries()) {
      if (index > 0) this.#expect(',');
      const argument = this.binary(0);
      if (typeOf(argument) !== type) throw this.fail(`argument ${index + 1} of ${name} must be a ${type}`);
      given.push(argument);
    }
    this.#expect(')');
    return { kind: 'call', name: known, arguments: given };
  }

  #selector(metric: string): Selector {
    const matchers: Matcher[] = [];
    if (this.#isNext('{')) {
      this.#at += 1;
      while (!this.#isNext('}')) {
        matchers.push(this.#matcher());
        if (!this.#isNext('}')) this.#expect(',');
      }
      this.#at += 1;
    }
    if (this.#next.kind !== 'range') return { kind: 'selector', metric, matchers, rangeMs: undefined };
    const rangeMs = parsePromDuration(this.#next.text.slice(1, -1));
    if (rangeMs === undefined || rangeMs <= 0) throw this.fail(`${this.#next.text} is not a duration such as [5m]`);
    this.#at += 1;
    return { kind: 'selector', metric, matchers, rangeMs };
  }

  #matcher(): Matcher {
    const label = this.#take('word');
    const operator = this.#take('sign');
    if (operator !== '=' && operator !== '!=' && operator !== '=~' && operator !== '!~')
      throw this.fail(`"${operator}" does not compare a label`);
    const value = unquote(this.#take('text'));
    if (value === undefined) throw this.fail(`the value of ${label} has an unsupported escape`);
    return { label, operator, value };
  }

  #labelList(): string[] {
    this.#expect('(');
    const labels: string[] = [];
    while (this.#next.text !== ')') {
      labels.push(this.#take('word'));
      if (this.#next.text !== ')') this.#expect(',');
    }
    this.#at += 1;
    return labels;
  }

  #isNext(sign: string): boolean {
    return this.#next.kind === 'sign' && this.#next.text === sign;
  }

  #take(kind: Token['kind']): string {
    const token = this.#next;
    if (token.kind !== kind) throw this.fail(`"${token.text}" is not expected at this position`);
    this.#at += 1;
    return token.text;
  }

  #expect(sign: string): void {
    if (this.#next.text !== sign || this.#next.kind !== 'sign') throw this.fail(`"${sign}" is missing`);
    this.#at += 1;
  }

  get #next(): Token {
    return this.#tokens[this.#at] ?? { kind: 'end', text: '' };
  }

  #scan(): Token[] {
    const tokens: Token[] = [];
    const end = this.#text.trimEnd().length;
    TOKEN.lastIndex = 0;
    while (TOKEN.lastIndex < end) {
      const from = TOKEN.lastIndex;
      const { number, word, text, range, sign } = TOKEN.exec(this.#text)?.groups ?? {};
      if (number !== undefined) tokens.push({ kind: 'number', text: number });
      else if (word !== undefined) tokens.push({ kind: 'word', text: word });
      else if (text !== undefined) tokens.push({ kind: 'text', text });
      else if (range !== undefined) tokens.push({ kind: 'range', text: range });
      else if (sign !== undefined) tokens.push({ kind: 'sign', text: sign });
      else throw this.fail(`"${this.#text.slice(from, from + 10).trim()}" is not supported`);
    }
    return tokens;
  }
}

/** Text of a string literal. Undefined if it contains escapes other than `\\`, `\"` and `\n`. */
function unquote(text: string): string | undefined {
  const body = text.slice(1, -1);
  if (/\\[^\\"n]/.test(body.replaceAll('\\\\', ''))) return undefined;
  return body.replaceAll(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character));
}
