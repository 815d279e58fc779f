/** CEL types and assignability. Source: github.com/google/cel-spec, doc/langdef.md. */

export type ScalarName =
  | 'null'
  | 'bool'
  | 'int'
  | 'uint'
  | 'double'
  | 'string'
  | 'bytes'
  | 'timestamp'
  | 'duration'
  | 'type'
  | 'dyn';

/** `max`: maximum number of elements or characters of a value, if known. Used for cost estimates. */
export type Type =
  | { readonly kind: ScalarName; readonly max?: number }
  | { readonly kind: 'list'; readonly of: Type; readonly max?: number }
  | { readonly kind: 'map'; readonly key: Type; readonly value: Type; readonly max?: number }
  /** A structure with known fields. `fields` may be computed on access. */
  | {
      readonly kind: 'object';
      readonly name: string;
      readonly fields: ReadonlyMap<string, Type>;
      readonly max?: number;
    }
  | { readonly kind: 'opaque'; readonly name: string; readonly max?: number }
  | { readonly kind: 'optional'; readonly of: Type; readonly max?: number }
  | { readonly kind: 'param'; readonly name: string; readonly max?: number };

const scalar = (kind: ScalarName): Type => ({ kind });

export const DYN = scalar('dyn');
export const BOOL = scalar('bool');
export const INT = scalar('int');
export const DOUBLE = scalar('double');
export const STRING = scalar('string');
export const BYTES = scalar('bytes');
export const TYPE = scalar('type');
export const listOf = (of: Type, max?: number): Type => ({ kind: 'list', of, ...(max === undefined ? {} : { max }) });
export const mapOf = (key: Type, value: Type, max?: number): Type => ({
  kind: 'map',
  key,
  value,
  ...(max === undefined ? {} : { max }),
});
/** A structure with exactly these fields. */
export const structureOf = (
  name: string,
  fields: Readonly<Record<string, Type>>,
): Extract<Type, { kind: 'object' }> => ({
  kind: 'object',
  name,
  fields: new Map(Object.entries(fields)),
});
export const optionalOf = (of: Type): Type => ({ kind: 'optional', of });

/** Type name for messages: `list(string)`. */
export function formatType(type: Type): string {
  switch (type.kind) {
    case 'list':
      return `list(${formatType(type.of)})`;
    case 'map':
      return `map(${formatType(type.key)}, ${formatType(type.value)})`;
    case 'optional':
      return `optional_type(${formatType(type.of)})`;
    case 'object':
    case 'opaque':
      return type.name;
    case 'param':
      return type.name === UNBOUND.name ? 'dyn' : type.name;
    default:
      return type.kind;
  }
}

const DECLARED: Readonly<Partial<Record<Type['kind'], string>>> = {
  null: 'null_type',
  timestamp: 'google.protobuf.Timestamp',
  duration: 'google.protobuf.Duration',
};

/** Full type name, for messages about result types: `list(google.protobuf.Duration)`. */
export function declaredName(type: Type): string {
  switch (type.kind) {
    case 'list':
      return `list(${declaredName(type.of)})`;
    case 'map':
      return `map(${declaredName(type.key)}, ${declaredName(type.value)})`;
    case 'optional':
      return `optional_type(${declaredName(type.of)})`;
    default:
      return DECLARED[type.kind] ?? formatType(type);
  }
}

export type Bindings = Map<string, Type>;

/** Reports whether a value of type `actual` can be used where `expected` is required. Binds type parameters. */
export function isAssignable(expected: Type, actual: Type, bindings: Bindings): boolean {
  if (expected.kind === 'param') {
    const bound = bindings.get(expected.name);
    if (bound === undefined) {
      bindings.set(expected.name, actual);
      return true;
    }
    if (bound.kind === 'dyn' || actual.kind === 'dyn') return true;
    if (isAssignable(bound, actual, bindings)) return true;
    // Replaces a binding by a more general type, for example after `null` or an empty list.
    if (isAssignable(actual, bound, new Map())) {
      bindings.set(expected.name, actual);
      return true;
    }
    return false;
  }
  if (actual.kind === 'param' || expected.kind === 'dyn' || actual.kind === 'dyn') return true;
  if (actual.kind === 'null')
    return ['null', 'object', 'opaque', 'timestamp', 'duration', 'optional'].includes(expected.kind);
  if (expected.kind !== actual.kind) return false;
  switch (expected.kind) {
    case 'list':
      return actual.kind === 'list' && isAssignable(expected.of, actual.of, bindings);
    case 'map':
      return (
        actual.kind === 'map' &&
        isAssignable(expected.key, actual.key, bindings) &&
        isAssignable(expected.value, actual.value, bindings)
      );
    case 'optional':
      return actual.kind === 'optional' && isAssignable(expected.of, actual.of, bindings);
    case 'object':
    case 'opaque':
      return (actual.kind === 'object' || actual.kind === 'opaque') && expected.name === actual.name;
    default:
      return true;
  }
}

/** Type of an unbound parameter. It matches any type. */
const UNBOUND = { kind: 'param', name: '_' } as const satisfies Type;

/** Replaces the parameters in `type` by their bindings. */
export function substituteTypes(type: Type, bindings: Bindings): Type {
  switch (type.kind) {
    case 'param':
      return bindings.get(type.name) ?? UNBOUND;
    case 'list':
      return { ...type, of: substituteTypes(type.of, bindings) };
    case 'map':
      return { ...type, key: substituteTypes(type.key, bindings), value: substituteTypes(type.value, bindings) };
    case 'optional':
      return { ...type, of: substituteTypes(type.of, bindings) };
    default:
      return type;
  }
}

/** Reports whether two types are equal. Unbound parameters match any type. */
export function sameType(a: Type, b: Type): boolean {
  if (a.kind === 'param' || b.kind === 'param') return true;
  if (a.kind === 'list' || a.kind === 'optional') return a.kind === b.kind && sameType(a.of, (b as typeof a).of);
  if (a.kind === 'map') return b.kind === 'map' && sameType(a.key, b.key) && sameType(a.value, b.value);
  if (a.kind === 'object' || a.kind === 'opaque') return a.kind === b.kind && a.name === (b as typeof a).name;
  return a.kind === b.kind;
}

/** Type that can hold the values of both types. It is the dynamic type if neither type is assignable to the other. */
export function joinTypes(a: Type, b: Type): Type {
  if (a === b) return a;
  if (a.kind === 'dyn' || b.kind === 'dyn') return DYN;
  if (a.kind === 'null') return b.kind === 'object' || b.kind === 'null' ? b : DYN;
  if (b.kind === 'null') return a.kind === 'object' ? a : DYN;
  if (!isAssignable(a, b, new Map()) && !isAssignable(b, a, new Map())) return DYN;
  const larger = a.max === undefined || b.max === undefined ? undefined : Math.max(a.max, b.max);
  const { max: _max, ...rest } = isAssignable(a, b, new Map()) ? a : b;
  return (larger === undefined ? rest : { ...rest, max: larger }) as Type;
}

/**
 * Parses a type in a signature: `list<A>`, `map<string, dyn>`, `opt<int>`, `net.IP`. Single capitals are parameters.
 */
export function parseType(text: string): Type {
  const open = text.indexOf('<');
  if (open < 0) {
    if (/^[A-Z]$/.test(text)) return { kind: 'param', name: text };
    if (/^(?:null|bool|int|uint|double|string|bytes|timestamp|duration|type|dyn)$/.test(text))
      return { kind: text as ScalarName };
    return { kind: 'opaque', name: text };
  }
  const name = text.slice(0, open);
  const inner = splitTypes(text.slice(open + 1, -1)).map(parseType);
  const [first = DYN, second = DYN] = inner;
  if (name === 'list') return listOf(first);
  if (name === 'map') return mapOf(first, second);
  return optionalOf(first);
}

/** Splits at commas outside brackets. */
export function splitTypes(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let at = 0; at <= text.length; at++) {
    const char = text[at];
    if (char === '<') depth += 1;
    else if (char === '>') depth -= 1;
    else if (at === text.length || (char === ',' && depth === 0)) {
      const part = text.slice(start, at).trim();
      if (part !== '') parts.push(part);
      start = at + 1;
    }
  }
  return parts;
}

/** Size of values without a declared maximum. */
const UNKNOWN_SIZE = 3 * 1024 * 1024;

export function maxSize(type: Type): number {
  switch (type.kind) {
    case 'string':
    case 'bytes':
    case 'list':
    case 'map':
    case 'dyn':
      return type.max ?? UNKNOWN_SIZE;
    default:
      return type.max ?? 1;
  }
}
