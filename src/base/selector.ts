/**
 * Label and field selectors: parsing, formatting and matching. Source: k8s.io/apimachinery/pkg/labels (grammar,
 * canonical text), pkg/fields, and metav1.LabelSelectorAsSelector.
 */
import { CodedError } from './errors.ts';
import { labelValueErrors, qualifiedNameErrors } from './names.ts';

export type LabelOperator = 'in' | 'notin' | '=' | '!=' | 'exists' | '!' | 'gt' | 'lt';

export interface LabelRequirement {
  readonly key: string;
  readonly operator: LabelOperator;
  /** Values in sorted order; empty for the operators `exists` and `!`. */
  readonly values: readonly string[];
}

/** A label selector. An object matches if it meets all requirements. If `nothing` is set, no object matches. */
export interface LabelSelector {
  readonly requirements: readonly LabelRequirement[];
  readonly nothing: boolean;
}

export type Labels = Readonly<Record<string, string>>;

/** Label selector in a spec (`metav1.LabelSelector`). */
export interface LabelSelectorObject {
  readonly matchLabels?: Labels | undefined;
  readonly matchExpressions?:
    | readonly { readonly key: string; readonly operator: string; readonly values?: readonly string[] | undefined }[]
    | undefined;
}

export const everything: LabelSelector = { requirements: [], nothing: false };
export const nothing: LabelSelector = { requirements: [], nothing: true };

/** Maximum length of a selector's text. */
const MAX_SELECTOR_TEXT = 64 * 1024;

/** Parses `a=b,c in (d,e),!f,g>1`. Throws `CodedError('selector-invalid')`. */
export function parseLabelSelector(text: string): LabelSelector {
  if (text.length > MAX_SELECTOR_TEXT) throw selectorError('the selector is too long');
  return new LabelParser(text).parse();
}

/**
 * Converts a `metav1.LabelSelector`. If it is absent, no object matches; if it is empty, all objects match. Throws
 * `CodedError('selector-invalid')`.
 */
export function labelSelectorOf(object: LabelSelectorObject | undefined | null): LabelSelector {
  if (object === undefined || object === null) return nothing;
  const requirements: LabelRequirement[] = [];
  for (const [key, value] of Object.entries(object.matchLabels ?? {}))
    requirements.push(requirement(key, '=', [value]));
  for (const each of object.matchExpressions ?? []) {
    const operator = OBJECT_OPERATORS.get(each.operator);
    if (operator === undefined) throw selectorError(`"${each.operator}" is not a valid label selector operator`);
    requirements.push(requirement(each.key, operator, each.values ?? []));
  }
  return { requirements: sorted(requirements), nothing: false };
}

/**
 * Selector that requires exactly these labels, as in Services and ReplicationControllers. With an empty map, all
 * objects match.
 */
export function selectorOfLabels(labels: Labels | undefined | null): LabelSelector {
  const requirements = Object.entries(labels ?? {}).map(
    ([key, value]): LabelRequirement => ({ key, operator: '=', values: [value] }),
  );
  return { requirements: sorted(requirements), nothing: false };
}

/** Parsed selectors, by the object in which a spec has them. */
const parsedSelectors = new WeakMap<LabelSelectorObject, LabelSelector>();
const parsedLabels = new WeakMap<Labels, LabelSelector>();

/**
 * Like `labelSelectorOf`, for objects that never change, such as those of informers. The result is kept, because
 * controllers match each changed pod with all selectors of its namespace and one selector can have 100,000 values.
 */
export function storedSelectorOf(object: LabelSelectorObject | undefined | null): LabelSelector {
  if (object === undefined || object === null) return nothing;
  const known = parsedSelectors.get(object);
  if (known !== undefined) return known;
  const parsed = labelSelectorOf(object);
  parsedSelectors.set(object, parsed);
  return parsed;
}

/** Like `selectorOfLabels`, for maps that never change. The result is kept. */
export function storedSelectorOfLabels(labels: Labels | undefined | null): LabelSelector {
  if (labels === undefined || labels === null) return selectorOfLabels(labels);
  const known = parsedLabels.get(labels);
  if (known !== undefined) return known;
  const parsed = selectorOfLabels(labels);
  parsedLabels.set(labels, parsed);
  return parsed;
}

export function matchesLabels(selector: LabelSelector, labels: Labels | undefined): boolean {
  if (selector.nothing) return false;
  for (const each of selector.requirements) {
    if (!requirementHolds(each, labels)) return false;
  }
  return true;
}

export function isEverything(selector: LabelSelector): boolean {
  return !selector.nothing && selector.requirements.length === 0;
}

/** Canonical text in the syntax of `parseLabelSelector`. It is '' for a selector that matches nothing. */
export function formatLabelSelector(selector: LabelSelector): string {
  return selector.requirements.map(formatRequirement).join(',');
}

/** Text for tables: `<none>` if the selector matches everything or nothing. */
export function displayLabelSelector(selector: LabelSelector): string {
  const text = formatLabelSelector(selector);
  return text === '' ? '<none>' : text;
}

export interface FieldTerm {
  readonly field: string;
  readonly operator: '=' | '!=';
  readonly value: string;
}

export type FieldSelector = readonly FieldTerm[];

/**
 * Parses `metadata.name=a,spec.nodeName!=b`; `\` escapes `,`, `=` and itself. Throws `CodedError('selector-invalid')`.
 */
export function parseFieldSelector(text: string): FieldSelector {
  if (text.length > MAX_SELECTOR_TEXT) throw selectorError('the selector is too long');
  const terms: FieldTerm[] = [];
  for (const part of splitTerms(text)) {
    if (part === '') continue;
    const term = splitFieldTerm(part);
    if (term === undefined) throw selectorError(`invalid selector: '${text}'; can't understand '${part}'`);
    terms.push(term);
  }
  return terms;
}

/** Whether an object matches. `read`: returns the value of a field of the object. */
export function matchesFields(selector: FieldSelector, read: (field: string) => string): boolean {
  for (const term of selector) {
    if ((read(term.field) === term.value) !== (term.operator === '=')) return false;
  }
  return true;
}

export function formatFieldSelector(selector: FieldSelector): string {
  return selector.map((term) => `${term.field}${term.operator}${escapeFieldValue(term.value)}`).join(',');
}

/**
 * The value that the selector requires for `field`; undefined if it requires none. With it, a list request can read a
 * single object.
 */
export function requiredFieldValue(selector: FieldSelector, field: string): string | undefined {
  return selector.find((term) => term.field === field && term.operator === '=')?.value;
}

const OBJECT_OPERATORS: ReadonlyMap<string, LabelOperator> = new Map([
  ['In', 'in'],
  ['NotIn', 'notin'],
  ['Exists', 'exists'],
  ['DoesNotExist', '!'],
]);

function requirementHolds(requirement: LabelRequirement, labels: Labels | undefined): boolean {
  const present = labels !== undefined && Object.hasOwn(labels, requirement.key);
  const value = present ? labels[requirement.key] : undefined;
  switch (requirement.operator) {
    case 'exists':
      return present;
    case '!':
      return !present;
    case 'in':
    case '=':
      return value !== undefined && hasValue(requirement.values, value);
    case 'notin':
    case '!=':
      return value === undefined || !hasValue(requirement.values, value);
    case 'gt':
    case 'lt': {
      const left = integerOf(value);
      const right = integerOf(requirement.values[0]);
      if (left === undefined || right === undefined) return false;
      return requirement.operator === 'gt' ? left > right : left < right;
    }
  }
}

/** Binary search: one selector of a namespace's policy can have 100,000 values and is matched with every pod. */
function hasValue(sortedValues: readonly string[], value: string): boolean {
  let [from, to] = [0, sortedValues.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    const found = sortedValues[middle] ?? '';
    if (found === value) return true;
    if (found < value) from = middle + 1;
    else to = middle;
  }
  return false;
}

function integerOf(text: string | undefined): bigint | undefined {
  return text !== undefined && /^[+-]?\d{1,19}$/.test(text) ? BigInt(text) : undefined;
}

function formatRequirement(requirement: LabelRequirement): string {
  const { key, operator, values } = requirement;
  switch (operator) {
    case 'exists':
      return key;
    case '!':
      return `!${key}`;
    case 'in':
    case 'notin':
      return `${key} ${operator} (${values.join(',')})`;
    case 'gt':
      return `${key}>${values[0] ?? ''}`;
    case 'lt':
      return `${key}<${values[0] ?? ''}`;
    default:
      return `${key}${operator}${values[0] ?? ''}`;
  }
}

/** Validates a requirement like upstream's NewRequirement. */
function requirement(key: string, operator: LabelOperator, values: readonly string[]): LabelRequirement {
  const keyErrors = qualifiedNameErrors(key);
  if (keyErrors.length > 0) throw selectorError(`key: Invalid value: ${JSON.stringify(key)}: ${keyErrors.join('; ')}`);
  if ((operator === 'in' || operator === 'notin') && values.length === 0) {
    throw selectorError("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty");
  }
  if ((operator === 'exists' || operator === '!') && values.length > 0) {
    throw selectorError('values: Invalid value: values set must be empty for exists and does not exist');
  }
  if ((operator === 'gt' || operator === 'lt') && integerOf(values[0]) === undefined) {
    throw selectorError(
      `values[0]: Invalid value: ${JSON.stringify(values[0] ?? '')}: for 'Gt', 'Lt' operators, the value must be an integer`,
    );
  }
  values.forEach((value, index) => {
    const errors = labelValueErrors(value);
    if (errors.length > 0) {
      throw selectorError(`values[${index}][${key}]: Invalid value: ${JSON.stringify(value)}: ${errors.join('; ')}`);
    }
  });
  return { key, operator, values: [...values].sort() };
}

function sorted(requirements: LabelRequirement[]): LabelRequirement[] {
  return requirements.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
}

type Token = { readonly kind: 'word' | 'symbol' | 'end'; readonly text: string };

const SYMBOL_START = new Set(['=', '!', '(', ')', ',', '>', '<']);
const LONG_SYMBOLS = new Set(['==', '!=']);

/** Recursive-descent parser for upstream's grammar, without backtracking. */
class LabelParser {
  readonly #text: string;
  #position = 0;

  constructor(text: string) {
    this.#text = text;
  }

  parse(): LabelSelector {
    const requirements: LabelRequirement[] = [];
    if (this.#peek().kind === 'end') return everything;
    for (;;) {
      requirements.push(this.#requirement());
      const next = this.#next();
      if (next.kind === 'end') return { requirements: sorted(requirements), nothing: false };
      if (next.text !== ',') throw selectorError(`found '${next.text}', expected: ',' or 'end of string'`);
      const after = this.#peek();
      if (after.kind === 'end' || (after.kind === 'symbol' && after.text !== '!')) {
        throw selectorError(`found '${after.text}', expected: identifier after ','`);
      }
    }
  }

  #requirement(): LabelRequirement {
    let token = this.#next();
    if (token.text === '!' && token.kind === 'symbol') {
      token = this.#next();
      if (token.kind !== 'word') throw unableToParse(token, 'identifier');
      return requirement(token.text, '!', []);
    }
    if (token.kind !== 'word') throw unableToParse(token, "!, identifier, or ')'");
    const key = token.text;
    const following = this.#peek();
    if (following.kind === 'end' || following.text === ',') return requirement(key, 'exists', []);
    const operator = this.#next();
    switch (operator.text) {
      case '=':
      case '==':
        return requirement(key, '=', [this.#value()]);
      case '!=':
        return requirement(key, '!=', [this.#value()]);
      case '>':
        return requirement(key, 'gt', [this.#value()]);
      case '<':
        return requirement(key, 'lt', [this.#value()]);
      case 'in':
      case 'notin':
        return requirement(key, operator.text, this.#set());
      default:
        throw unableToParse(operator, 'in, notin, =, ==, !=, gt, lt');
    }
  }

  /** Parses a value. It may be empty, as in `a=` and `a=,b`. */
  #value(): string {
    const token = this.#peek();
    if (token.kind === 'end' || token.text === ',') return '';
    if (token.kind !== 'word') throw unableToParse(token, 'identifier');
    return this.#next().text;
  }

  #set(): string[] {
    const open = this.#next();
    if (open.text !== '(') throw unableToParse(open, "'('");
    const values = new Set<string>();
    for (;;) {
      const token = this.#next();
      if (token.kind === 'word') {
        values.add(token.text);
        const separator = this.#next();
        if (separator.text === ')') return [...values];
        if (separator.text !== ',') throw unableToParse(separator, "',' or ')'");
        if (this.#peek().text === ')') values.add('');
      } else if (token.text === ',') {
        values.add('');
      } else if (token.text === ')') {
        return [...values];
      } else {
        throw unableToParse(token, "',', ')' or identifier");
      }
    }
  }

  #peek(): Token {
    const position = this.#position;
    const token = this.#next();
    this.#position = position;
    return token;
  }

  #next(): Token {
    const text = this.#text;
    while (isSpace(text[this.#position])) this.#position++;
    const start = this.#position;
    const first = text[start];
    if (first === undefined) return { kind: 'end', text: '' };
    if (SYMBOL_START.has(first)) {
      const long = text.slice(start, start + 2);
      const symbol = LONG_SYMBOLS.has(long) ? long : first;
      this.#position += symbol.length;
      return { kind: 'symbol', text: symbol };
    }
    for (;;) {
      const character = text[this.#position];
      if (character === undefined || SYMBOL_START.has(character) || isSpace(character)) break;
      this.#position++;
    }
    return { kind: 'word', text: text.slice(start, this.#position) };
  }
}

function isSpace(character: string | undefined): boolean {
  return character === ' ' || character === '\t' || character === '\r' || character === '\n';
}

function unableToParse(found: Token, expected: string): CodedError {
  return selectorError(`unable to parse requirement: found '${found.text}', expected: ${expected}`);
}

function selectorError(message: string): CodedError {
  return new CodedError('selector-invalid', message);
}

function splitTerms(text: string): string[] {
  const terms: string[] = [];
  let start = 0;
  for (let index = 0; index < text.length; index++) {
    if (text[index] === '\\') index++;
    else if (text[index] === ',') {
      terms.push(text.slice(start, index));
      start = index + 1;
    }
  }
  terms.push(text.slice(start));
  return terms;
}

/** Operators of field selectors. The longer ones come first, because `=` begins `==`. */
const FIELD_OPERATORS = ['!=', '==', '='] as const;

function splitFieldTerm(part: string): FieldTerm | undefined {
  for (let index = 0; index < part.length; index++) {
    const operator = FIELD_OPERATORS.find((each) => part.startsWith(each, index));
    if (operator === undefined) continue;
    const value = unescapeFieldValue(part.slice(index + operator.length));
    if (value === undefined) return undefined;
    return { field: part.slice(0, index), operator: operator === '!=' ? '!=' : '=', value };
  }
  return undefined;
}

function escapeFieldValue(value: string): string {
  return value.replaceAll(/[\\,=]/g, (character) => `\\${character}`);
}

function unescapeFieldValue(text: string): string | undefined {
  let value = '';
  for (let index = 0; index < text.length; index++) {
    const character = text[index] ?? '';
    if (character === '\\') {
      const escaped = text[++index];
      if (escaped !== '\\' && escaped !== ',' && escaped !== '=') return undefined;
      value += escaped;
    } else if (character === ',' || character === '=') {
      return undefined;
    } else {
      value += character;
    }
  }
  return value;
}

/** Parses labels such as `a=b,c=d` in flags and annotations; undefined if the text is invalid. */
export function labelsOfText(text: string): Labels | undefined {
  const labels = new Map<string, string>();
  for (const part of text.trim() === '' ? [] : text.split(',')) {
    const [key = '', value, ...more] = part.split('=').map((each) => each.trim());
    if (value === undefined || more.length > 0) return undefined;
    if (qualifiedNameErrors(key).length > 0 || labelValueErrors(value).length > 0) return undefined;
    labels.set(key, value);
  }
  return Object.fromEntries(labels);
}
