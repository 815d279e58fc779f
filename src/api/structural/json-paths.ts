/**
 * JSON paths in definitions: simple ones for scale and selectable fields (`.spec.replicas`), and those of printer
 * columns, which may have indices and filters. Source: k8s.io/client-go/util/jsonpath, as far as columns use it.
 */
import type { JsonValue } from '../meta/object.ts';
import { fieldOf, isObject } from './schema.ts';

type Step =
  | { readonly op: 'field'; readonly name: string }
  | { readonly op: 'each' }
  | { readonly op: 'index'; readonly index: number }
  | { readonly op: 'slice'; readonly from: number | undefined; readonly to: number | undefined; readonly step: number }
  | { readonly op: 'below' }
  | {
      readonly op: 'filter';
      readonly path: JsonPath;
      readonly operator: string;
      readonly operand: JsonPath | JsonValue;
    };

export class JsonPath {
  readonly #steps: readonly Step[];

  constructor(steps: readonly Step[]) {
    this.#steps = steps;
  }

  /** All values at the path. */
  all(root: JsonValue): JsonValue[] {
    let found: JsonValue[] = [root];
    for (const step of this.#steps) {
      found = found.flatMap((value) => follow(step, value));
      if (found.length > MAX_RESULTS) found = found.slice(0, MAX_RESULTS);
    }
    return found;
  }
}

const MAX_RESULTS = 1_000;
const MAX_STEPS = 64;
const MAX_TEXT = 2_048;

function follow(step: Step, value: JsonValue): JsonValue[] {
  switch (step.op) {
    case 'field': {
      const below = isObject(value) ? fieldOf(value, step.name) : undefined;
      return below === undefined ? [] : [below];
    }
    case 'each':
      return Array.isArray(value) ? value : isObject(value) ? Object.values(value) : [];
    case 'index': {
      const at = Array.isArray(value) ? value[step.index < 0 ? value.length + step.index : step.index] : undefined;
      return at === undefined ? [] : [at];
    }
    case 'slice':
      return Array.isArray(value) ? value.slice(step.from, step.to).filter((_, index) => index % step.step === 0) : [];
    case 'below':
      return descendants(value);
    case 'filter':
      return (Array.isArray(value) ? value : []).filter((item) => passes(step, item));
  }
}

function descendants(value: JsonValue): JsonValue[] {
  const found: JsonValue[] = [];
  const pending: JsonValue[] = [value];
  for (let next = pending.pop(); next !== undefined && found.length < MAX_RESULTS; next = pending.pop()) {
    found.push(next);
    if (typeof next === 'object' && next !== null) pending.push(...Object.values(next));
  }
  return found;
}

function passes(step: Extract<Step, { op: 'filter' }>, item: JsonValue): boolean {
  const [left] = step.path.all(item);
  if (step.operator === 'exists') return left !== undefined;
  const right = step.operand instanceof JsonPath ? step.operand.all(item)[0] : step.operand;
  if (left === undefined || right === undefined || left === null || right === null) return false;
  if (step.operator === '==') return left === right;
  if (step.operator === '!=') return left !== right;
  if (typeof left !== typeof right) return false;
  switch (step.operator) {
    case '<':
      return left < right;
    case '<=':
      return left <= right;
    case '>':
      return left > right;
    default:
      return left >= right;
  }
}

/**
 * Parses the inside of `{…}`, for example `.status.conditions[?(@.type=="Ready")].status`. Throws an Error that
 * describes an invalid path.
 */
export function parseJsonPath(text: string): JsonPath {
  if (text.length > MAX_TEXT) throw new Error(`a path may have at most ${MAX_TEXT} characters`);
  const steps: Step[] = [];
  let at = 0;
  const rest = (): string => text.slice(at);
  const take = (pattern: RegExp): RegExpExecArray | undefined => {
    const match = pattern.exec(rest());
    if (match === null) return undefined;
    at += match[0].length;
    return match;
  };
  while (at < text.length) {
    if (steps.length >= MAX_STEPS) throw new Error('the path is too long');
    if (take(/^\.\./) !== undefined) {
      steps.push({ op: 'below' });
      if (text[at] !== '[' && text[at] !== '.') at -= 1;
      continue;
    }
    if (take(/^\.\*/) !== undefined) {
      steps.push({ op: 'each' });
      continue;
    }
    const name = take(/^\.((?:\\.|[^.[\]{}\s()'"\\])+)/);
    if (name !== undefined) {
      steps.push({ op: 'field', name: (name[1] ?? '').replaceAll(/\\(.)/g, '$1') });
      continue;
    }
    if (text[at] === '[') {
      const end = closing(text, at);
      steps.push(bracket(text.slice(at + 1, end).trim()));
      at = end + 1;
      continue;
    }
    if (take(/^\.$/) !== undefined) continue;
    throw new Error(`unrecognized character in action: ${JSON.stringify(text[at])}`);
  }
  return new JsonPath(steps);
}

function closing(text: string, open: number): number {
  let depth = 0;
  let quote = '';
  for (let at = open; at < text.length; at++) {
    const char = text[at] ?? '';
    if (quote !== '') {
      if (char === '\\') at += 1;
      else if (char === quote) quote = '';
    } else if (char === '"' || char === "'") quote = char;
    else if (char === '[') depth += 1;
    else if (char === ']' && --depth === 0) return at;
  }
  throw new Error('unterminated array');
}

function bracket(inner: string): Step {
  if (inner === '*') return { op: 'each' };
  if (/^-?\d{1,9}$/.test(inner)) return { op: 'index', index: Number(inner) };
  const slice = /^(-?\d{0,9}):(-?\d{0,9})(?::(\d{1,9}))?$/.exec(inner);
  if (slice !== null) {
    const bound = (part: string | undefined): number | undefined =>
      part === undefined || part === '' ? undefined : Number(part);
    return { op: 'slice', from: bound(slice[1]), to: bound(slice[2]), step: Math.max(1, Number(slice[3] ?? 1)) };
  }
  const quoted = literal(inner);
  if (typeof quoted === 'string') return { op: 'field', name: quoted };
  if (inner.startsWith('?(') && inner.endsWith(')')) return filter(inner.slice(2, -1).trim());
  throw new Error(`invalid array index ${inner.slice(0, 64)}`);
}

function filter(inner: string): Step {
  const match = /^(@[^=!<>]*?)\s*(==|!=|<=|>=|<|>)\s*(.+)$/.exec(inner);
  if (match === null) return { op: 'filter', path: operandPath(inner), operator: 'exists', operand: null };
  const right = (match[3] ?? '').trim();
  const operand = right.startsWith('@') ? operandPath(right) : literal(right);
  if (operand === undefined) throw new Error(`unrecognized operand ${right.slice(0, 64)}`);
  return { op: 'filter', path: operandPath(match[1] ?? ''), operator: match[2] ?? '', operand };
}

function operandPath(text: string): JsonPath {
  if (!text.startsWith('@')) throw new Error(`a filter must begin with @: ${text.slice(0, 64)}`);
  return parseJsonPath(text.slice(1).trim());
}

function literal(text: string): JsonValue | undefined {
  const single = /^'((?:\\.|[^'\\])*)'$/.exec(text);
  if (single !== null) return (single[1] ?? '').replaceAll(/\\(.)/g, '$1');
  const double = /^"((?:\\.|[^"\\])*)"$/.exec(text);
  if (double !== null) return (double[1] ?? '').replaceAll(/\\(.)/g, '$1');
  if (text === 'true' || text === 'false') return text === 'true';
  return /^-?\d{1,15}(?:\.\d{1,9})?$/.test(text) ? Number(text) : undefined;
}

/** Splits `.spec.replicas` at the dots. Undefined if the text does not start with a dot. */
export function simplePath(text: string): readonly string[] | undefined {
  return text.startsWith('.') ? text.slice(1).split('.') : undefined;
}

export function valueAt(root: JsonValue, path: readonly string[]): JsonValue | undefined {
  let value: JsonValue | undefined = root;
  for (const name of path) value = isObject(value) ? fieldOf(value, name) : undefined;
  return value;
}
