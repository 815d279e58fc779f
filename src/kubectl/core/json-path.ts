/**
 * JSONPath templates of kubectl: text with expressions in braces, such as
 * `{range .items[*]}{.metadata.name}{"\n"}{end}`.
 * Source: k8s.io/client-go/util/jsonpath.
 */
import { goJson } from './encode.ts';
import { ClientError } from './errors.ts';

type Step =
  | { readonly kind: 'field'; readonly name: string }
  | { readonly kind: 'wildcard' }
  | { readonly kind: 'recursive' }
  | { readonly kind: 'slice'; readonly from: number | undefined; readonly to: number | undefined; readonly by: number }
  | { readonly kind: 'union'; readonly paths: readonly (readonly Step[])[] }
  | { readonly kind: 'filter'; readonly left: Operand; readonly operator: string; readonly right: Operand | undefined };

type Operand = { readonly value: unknown } | { readonly path: readonly Step[] };

type Node =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'path'; readonly steps: readonly Step[]; readonly fromRoot: boolean }
  | { readonly kind: 'range'; readonly steps: readonly Step[]; readonly body: readonly Node[] };

export interface JsonPath {
  /** Renders the template for a value. Throws ClientError for a missing field unless `allowMissing` is true. */
  render(value: unknown, allowMissing?: boolean): string;
  /** Returns the values of the expressions in the template. */
  find(value: unknown, allowMissing?: boolean): readonly unknown[];
}

/** Parses a template. Throws ClientError if it is invalid. */
export function parseJsonPath(template: string): JsonPath {
  const nodes = new Parser(template).nodes();
  return {
    render: (value, allowMissing = true) => {
      try {
        return renderNodes(nodes, value, value, allowMissing);
      } catch (error) {
        if (!(error instanceof ClientError)) throw error;
        throw new ClientError(
          `error executing jsonpath ${JSON.stringify(template)}: Error executing template: ${error.message}`,
        );
      }
    },
    find: (value, allowMissing = true) =>
      nodes.flatMap((node) => (node.kind === 'path' ? evaluate(node.steps, value, allowMissing) : [])),
  };
}

/** Parses a path of `-o custom-columns` or `--sort-by`, in which braces and the first dot may be omitted. */
export function parseRelaxedPath(text: string): JsonPath {
  const [, inner = ''] = /^\{?\.?(.*?)\}?$/s.exec(text) ?? [];
  if (inner.includes('{') || inner === '')
    throw new ClientError(
      `unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'`,
    );
  return parseJsonPath(inner.startsWith('[') ? `{${inner}}` : `{.${inner}}`);
}

class Parser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  nodes(isInRange = false): Node[] {
    const nodes: Node[] = [];
    while (this.#at < this.#text.length) {
      const open = this.#text.indexOf('{', this.#at);
      const end = open < 0 ? this.#text.length : open;
      if (end > this.#at) nodes.push({ kind: 'text', text: this.#text.slice(this.#at, end) });
      this.#at = end;
      if (open < 0) break;
      this.#at += 1;
      const ended = this.#action(nodes, isInRange);
      if (ended) return nodes;
    }
    if (isInRange)
      throw new ClientError(`error parsing jsonpath ${this.#text}, unexpected end of the template: {end} is missing`);
    return nodes;
  }

  /** Parses an action up to its closing brace. Returns true if the action was `{end}`. */
  #action(nodes: Node[], isInRange: boolean): boolean {
    let isFirst = true;
    for (;;) {
      this.#spaces();
      const char = this.#text[this.#at];
      if (char === undefined) throw this.#error('unclosed action');
      if (char === '}') {
        this.#at += 1;
        return false;
      }
      if (char === '"' || char === "'") nodes.push({ kind: 'text', text: this.#quoted() });
      else if (isFirst && this.#takes(/^range\s+/)) {
        const steps = this.#path();
        this.#close();
        nodes.push({ kind: 'range', steps, body: this.nodes(true) });
        return false;
      } else if (isFirst && isInRange && this.#takes(/^end\s*\}/)) return true;
      else if (/[.$@[*]/.test(char)) {
        const fromRoot = char === '$';
        nodes.push({ kind: 'path', steps: this.#path(), fromRoot });
      } else if (/[-+\d]/.test(char)) {
        const number = this.#takes(/^[-+]?\d+(?:\.\d+)?/);
        nodes.push({ kind: 'text', text: number ?? '' });
      } else
        throw this.#error(
          `unrecognized character in action: U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')} '${char}'`,
        );
      isFirst = false;
    }
  }

  #path(): Step[] {
    const steps: Step[] = [];
    if (this.#text[this.#at] === '$' || this.#text[this.#at] === '@') this.#at += 1;
    for (;;) {
      if (this.#takes(/^\.\./) !== undefined) {
        steps.push({ kind: 'recursive' });
        const name = this.#name();
        if (name !== undefined) steps.push(name);
        continue;
      }
      if (this.#text[this.#at] === '.') {
        this.#at += 1;
        const name = this.#name();
        if (name !== undefined) steps.push(name);
        continue;
      }
      if (this.#text[this.#at] === '[') {
        steps.push(this.#bracket());
        continue;
      }
      if (steps.length === 0) {
        const name = this.#name();
        if (name !== undefined) {
          steps.push(name);
          continue;
        }
      }
      return steps;
    }
  }

  #name(): Step | undefined {
    if (this.#takes(/^\*/) !== undefined) return { kind: 'wildcard' };
    let name = '';
    for (;;) {
      const plain = this.#takes(/^[^\s.[\]{}()'"|,=<>!&$@*\\]+/);
      if (plain !== undefined) name += plain;
      else if (this.#text[this.#at] === '\\' && this.#at + 1 < this.#text.length) {
        name += this.#text[this.#at + 1];
        this.#at += 2;
      } else break;
    }
    return name === '' ? undefined : { kind: 'field', name };
  }

  #bracket(): Step {
    this.#at += 1;
    this.#spaces();
    if (this.#takes(/^\?\(/) !== undefined) return this.#filter();
    const paths: Step[][] = [];
    do {
      this.#spaces();
      paths.push([this.#element()]);
      this.#spaces();
    } while (this.#takes(/^,/) !== undefined);
    if (this.#takes(/^\]/) === undefined) throw this.#error('unterminated array');
    return paths.length === 1 ? (paths[0] as [Step])[0] : { kind: 'union', paths };
  }

  #element(): Step {
    if (this.#takes(/^\*/) !== undefined) return { kind: 'wildcard' };
    const char = this.#text[this.#at];
    if (char === '"' || char === "'") return { kind: 'field', name: this.#quoted() };
    const range = /^(-?\d*)(?:(:)(-?\d*)(?::(-?\d*))?)?/.exec(this.#text.slice(this.#at));
    const [whole = '', from = '', colon, to = '', by = ''] = range ?? [];
    if (whole === '') throw this.#error(`invalid array index ${this.#takes(/^[^\]]*/) ?? ''}`);
    this.#at += whole.length;
    const number = (text: string): number | undefined => (text === '' ? undefined : Number(text));
    if (colon !== undefined) return { kind: 'slice', from: number(from), to: number(to), by: number(by) ?? 1 };
    const index = Number(from);
    return { kind: 'slice', from: index, to: index === -1 ? undefined : index + 1, by: 1 };
  }

  #filter(): Step {
    const left = this.#operand();
    this.#spaces();
    const operator = this.#takes(/^(?:==|!=|<=|>=|<|>)/) ?? '';
    this.#spaces();
    const right = operator === '' ? undefined : this.#operand();
    this.#spaces();
    if (this.#takes(/^\)\s*\]/) === undefined) throw this.#error('unterminated filter');
    return { kind: 'filter', left, operator, right };
  }

  #operand(): Operand {
    this.#spaces();
    const char = this.#text[this.#at];
    if (char === '"' || char === "'") return { value: this.#quoted() };
    const number = this.#takes(/^[-+]?\d+(?:\.\d+)?/);
    if (number !== undefined) return { value: Number(number) };
    const word = this.#takes(/^(?:true|false|nil)\b/);
    if (word !== undefined) return { value: word === 'nil' ? undefined : word === 'true' };
    return { path: this.#path() };
  }

  /** Parses a string in quotes. Only double quotes permit escapes. */
  #quoted(): string {
    const quote = this.#text[this.#at] as string;
    let end = this.#at + 1;
    while (end < this.#text.length && this.#text[end] !== quote) end += this.#text[end] === '\\' ? 2 : 1;
    if (end >= this.#text.length) throw this.#error('unterminated quoted string');
    const inner = this.#text.slice(this.#at + 1, end);
    this.#at = end + 1;
    const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f' };
    return inner.replaceAll(/\\(.)/gs, (_, char: string) => escapes[char] ?? char);
  }

  #close(): void {
    this.#spaces();
    if (this.#takes(/^\}/) === undefined) throw this.#error('unclosed action');
  }

  #spaces(): void {
    this.#takes(/^\s+/);
  }

  #takes(pattern: RegExp): string | undefined {
    const found = pattern.exec(this.#text.slice(this.#at))?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  #error(problem: string): ClientError {
    return new ClientError(`error parsing jsonpath ${this.#text}, ${problem}`);
  }
}

function renderNodes(nodes: readonly Node[], current: unknown, root: unknown, allowMissing: boolean): string {
  return nodes
    .map((node) => {
      if (node.kind === 'text') return node.text;
      const found = evaluate(node.steps, node.kind === 'path' && node.fromRoot ? root : current, allowMissing);
      if (node.kind === 'range') return found.map((each) => renderNodes(node.body, each, root, allowMissing)).join('');
      return found.map(printed).join(' ');
    })
    .join('');
}

/** Text of a value in kubectl's format: strings unchanged, objects and lists as JSON. */
export function printed(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === null || value === undefined) return '';
  return typeof value === 'object' ? goJson(value) : String(value);
}

function evaluate(steps: readonly Step[], value: unknown, allowMissing: boolean): unknown[] {
  let found: unknown[] = [value];
  for (const [index, step] of steps.entries()) {
    // A recursive step finds values of many kinds, most of which lack the field.
    const lenient = allowMissing || steps[index - 1]?.kind === 'recursive';
    found = found.flatMap((each) => apply(step, each, lenient));
  }
  return found;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function apply(step: Step, value: unknown, allowMissing: boolean): unknown[] {
  switch (step.kind) {
    case 'field': {
      if (isObject(value) && Object.hasOwn(value, step.name)) return [value[step.name]];
      if (allowMissing) return [];
      throw new ClientError(`${step.name} is not found`);
    }
    case 'wildcard':
      return Array.isArray(value) ? value : isObject(value) ? Object.values(value) : [];
    case 'recursive':
      return descendants(value);
    case 'union':
      return step.paths.flatMap((path) => evaluate(path, value, allowMissing));
    case 'slice':
      return slice(step, value);
    case 'filter':
      return (Array.isArray(value) ? value : isObject(value) ? [value] : []).filter((each) => matches(step, each));
  }
}

/** Elements of a list. As with kubectl, indices outside of the list are an error even if missing fields are not. */
function slice(step: Step & { readonly kind: 'slice' }, value: unknown): unknown[] {
  if (value === null || value === undefined) return [];
  if (!Array.isArray(value)) throw new ClientError(`${goType(value)} is not array or slice`);
  const { length } = value;
  const from = (step.from ?? 0) < 0 ? (step.from ?? 0) + length : (step.from ?? 0);
  const to = step.to === undefined ? length : step.to < 0 ? step.to + length : step.to;
  if (from === to) return [];
  const outside = from < 0 || from >= length ? from : to < 0 || to > length ? to - 1 : undefined;
  if (outside !== undefined) throw new ClientError(`array index out of bounds: index ${outside}, length ${length}`);
  if (from > to) throw new ClientError(`starting index ${from} is greater than ending index ${to}`);
  if (step.by <= 0) throw new ClientError('step must be > 0');
  return value.slice(from, to).filter((_, index) => index % step.by === 0);
}

/** Name of the type of a value in Go. */
function goType(value: unknown): string {
  switch (typeof value) {
    case 'boolean':
      return 'bool';
    case 'number':
      return Number.isInteger(value) ? 'int64' : 'float64';
    case 'string':
      return 'string';
    default:
      return 'map[string]interface {}';
  }
}

/** The value and all values that it contains, parents first. */
function descendants(value: unknown): unknown[] {
  const children = Array.isArray(value) ? value : isObject(value) ? Object.values(value) : [];
  return [value, ...children.flatMap(descendants)];
}

function matches(step: Step & { readonly kind: 'filter' }, value: unknown): boolean {
  const [left] = operandValues(step.left, value);
  if (step.right === undefined) return left !== undefined;
  if (left === undefined) return false;
  const [right] = operandValues(step.right, value);
  switch (step.operator) {
    case '==':
      return left === right;
    case '!=':
      return left !== right;
    default:
      return compares(step.operator, left, right);
  }
}

function compares(operator: string, left: unknown, right: unknown): boolean {
  if (typeof left !== typeof right || (typeof left !== 'number' && typeof left !== 'string')) return false;
  const other = right as typeof left;
  switch (operator) {
    case '<':
      return left < other;
    case '>':
      return left > other;
    case '<=':
      return left <= other;
    default:
      return left >= other;
  }
}

const operandValues = (operand: Operand, value: unknown): unknown[] =>
  'path' in operand ? evaluate(operand.path, value, true) : [operand.value];
