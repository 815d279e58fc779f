/** Removes secrets from parsed documents by the names of fields: Secrets, environments, credentials, annotations. */
import { type KnownValues, REMOVED } from './known-values.ts';
import { TextRedactor } from './redact-text.ts';

const SECRET_FIELD =
  /(?:password|passwd|passphrase|pwd|tokens?|secrets?|apikey|accesskey(?:id)?|secretkey|privatekey|keydata|signingkey|encryptionkey|credentials?|authorization|cookie|psk|privkey)$/;
/** Names of fields with secret values, for names that must match as a whole. */
const SECRET_NAME = new Set(['auth', 'dockerconfigjson', 'dockercfg', 'keyring', 'rigpower', 'additionalsecrets']);
const ENVIRONMENT = new Set(['env', 'environment', 'environmentvariables', 'defaultenv']);
const PRIVATE_ANNOTATION = /last-applied-configuration$|token-secret\.value$|[./-]password$/;
/** Matches a flag whose value is the next argument. */
const SECRET_FLAG = /^--?(?:[\w-]*-)?(?:pass|password|passwd|passphrase|pwd|token|secret|api-?key|psk)$/i;
const MAX_DEPTH = 64;
const MAX_JSON_LENGTH = 256 * 1024;

/** Returns a copy without secrets. In other fields, texts are redacted by patterns and by known values. */
export function redactObject(value: unknown, known: KnownValues): unknown {
  return copyOf(value, known, { depth: 0, secret: false });
}

/**
 * Strings that `redactObject` removes because of their fields. Values of environments are included only if they look
 * like secrets.
 */
export function secretsIn(value: unknown): string[] {
  const found: string[] = [];
  collect(value, { depth: 0, secret: false }, found);
  return found;
}

interface Place {
  readonly depth: number;
  /**
   * Whether the name of the field that contains this object denotes a secret. Its fields `value` and `data` are then
   * secret.
   */
  readonly secret: boolean;
  /** Kind of the items if the object is in a list, because items of a list may have no kind. */
  readonly kind?: string;
}

const text = (value: string, known: KnownValues): string => new TextRedactor(known).text(value);

const plainName = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');

/** Whether a name denotes a secret value. A final `pass` counts only as a word of its own, unlike in `bypass`. */
const isSecretName = (name: string): boolean =>
  SECRET_FIELD.test(plainName(name)) || /(?:^|[_.-])pass$/i.test(name) || /[a-z]Pass$/.test(name);

/** Parsed JSON object or list in a string, as in annotations; undefined for other strings. */
function jsonIn(value: string): object | undefined {
  if (value.length > MAX_JSON_LENGTH || !/^\s*[{[]/.test(value)) return undefined;
  try {
    const parsed: unknown = JSON.parse(value);
    return typeof parsed === 'object' && parsed !== null ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function copyOf(value: unknown, known: KnownValues, place: Place): unknown {
  if (typeof value === 'string' && place.secret) return REMOVED;
  if (typeof value === 'string') {
    const json = place.depth > MAX_DEPTH ? undefined : jsonIn(value);
    if (json === undefined) return text(value, known);
    const copy = copyOf(json, known, { depth: place.depth + 1, secret: false });
    return JSON.stringify(copy, null, value.includes('\n') ? 2 : undefined);
  }
  if (typeof value !== 'object' || value === null) return place.secret && typeof value === 'number' ? REMOVED : value;
  if (place.depth > MAX_DEPTH) return REMOVED;
  const deeper = { ...place, depth: place.depth + 1 };
  if (Array.isArray(value))
    return value.map((each, at) => (isFlagValue(value, at) ? REMOVED : copyOf(each, known, deeper)));
  if (value instanceof Map) return copyOf(Object.fromEntries(value), known, place);
  return copyOfFields(value as Record<string, unknown>, known, place);
}

/** Whether the item of an argument list is the value of the flag before it. */
function isFlagValue(list: readonly unknown[], at: number): boolean {
  const [flag, value] = [list[at - 1], list[at]];
  return typeof flag === 'string' && typeof value === 'string' && SECRET_FLAG.test(flag) && !value.startsWith('-');
}

/** Whether the object is a pair such as an HTTP header, whose name denotes a secret. */
const isSecretPair = ({ name, value }: Record<string, unknown>): boolean =>
  typeof name === 'string' && typeof value === 'string' && isSecretName(name);

function copyOfFields(object: Record<string, unknown>, known: KnownValues, place: Place): Record<string, unknown> {
  const kind = typeof object['kind'] === 'string' ? object['kind'] : (place.kind ?? '');
  const isSecret = kind === 'Secret';
  const isTemplate = kind === 'Template';
  const isPair = isSecretPair(object);
  const depth = place.depth + 1;
  return Object.fromEntries(
    Object.entries(object).map(([name, value]): [string, unknown] => {
      const key = text(name, known);
      if (isSecret && (name === 'data' || name === 'stringData')) return [key, allRemoved(value)];
      if (isTemplate && name === 'parameters') return [key, withoutValues(value, known, depth)];
      if (name === 'items' && kind.endsWith('List'))
        return [key, copyOf(value, known, { depth, secret: false, kind: kind.slice(0, -'List'.length) })];
      if (isPair && name === 'value') return [key, REMOVED];
      const plain = plainName(name);
      if (ENVIRONMENT.has(plain)) return [key, withoutValues(value, known, depth)];
      if (PRIVATE_ANNOTATION.test(name)) return [key, REMOVED];
      if (SECRET_NAME.has(plain)) return [key, allRemoved(value)];
      if (isSecretName(name)) return [key, secretField(value, known, depth)];
      if (place.secret && (name === 'value' || name === 'data')) return [key, allRemoved(value)];
      return [key, copyOf(value, known, { depth, secret: false })];
    }),
  );
}

/**
 * Redacts a field whose name denotes a secret. Strings and numbers are removed. An object such as `secret: {secretName:
 * x}` is kept, because it is only a reference.
 */
function secretField(value: unknown, known: KnownValues, depth: number): unknown {
  if (typeof value === 'string') return value === '' ? value : REMOVED;
  if (typeof value === 'number') return REMOVED;
  if (Array.isArray(value)) return value.map((each) => secretField(each, known, depth + 1));
  if (typeof value !== 'object' || value === null) return value;
  return copyOfFields(value as Record<string, unknown>, known, { depth, secret: true });
}

/**
 * Removes the values of an environment. Names are kept: keys of maps, `name` of objects, and the part before `=` of
 * strings.
 */
function withoutValues(value: unknown, known: KnownValues, depth: number): unknown {
  if (typeof value === 'string')
    return value.includes('=') ? `${value.slice(0, value.indexOf('='))}=${REMOVED}` : REMOVED;
  if (Array.isArray(value)) return value.map((each) => withoutValues(each, known, depth));
  if (typeof value !== 'object' || value === null) return REMOVED;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => {
      if (name === 'name') return [name, each];
      if (name === 'value') return [name, REMOVED];
      return [name, typeof each === 'object' ? copyOf(each, known, { depth, secret: false }) : REMOVED];
    }),
  );
}

function allRemoved(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(() => REMOVED);
  if (typeof value !== 'object' || value === null) return REMOVED;
  return Object.fromEntries(Object.keys(value).map((name) => [name, REMOVED]));
}

function collect(value: unknown, place: Place, found: string[]): void {
  if (typeof value === 'string' && place.secret) found.push(value);
  else if (typeof value === 'string' && place.depth <= MAX_DEPTH) collect(jsonIn(value), place, found);
  if (typeof value !== 'object' || value === null || place.depth > MAX_DEPTH) return;
  const depth = place.depth + 1;
  if (Array.isArray(value)) {
    for (const [at, each] of value.entries())
      collect(each, { ...place, depth, secret: place.secret || isFlagValue(value, at) }, found);
    return;
  }
  const fields = (value instanceof Map ? Object.fromEntries(value) : value) as Record<string, unknown>;
  const isPair = isSecretPair(fields);
  for (const [name, each] of Object.entries(fields)) {
    const plain = plainName(name);
    const secret =
      isSecretName(name) || SECRET_NAME.has(plain) || ((place.secret || isPair) && /^(?:value|data)$/.test(name));
    if (ENVIRONMENT.has(plain)) found.push(...environmentSecrets(each));
    // An object such as `secret: {secretName: x}` is only a reference, so its strings are not secret.
    else collect(each, { depth, secret: secret && !isReference(each) }, found);
    if (secret && isReference(each)) for (const key of ['value', 'data']) found.push(...stringsAt(each, key));
  }
}

const isReference = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function stringsAt(value: object, key: string): string[] {
  const found: unknown = Object.entries(value).find(([name]) => name === key)?.[1];
  return typeof found === 'string' ? [found] : [];
}

/** Secret values of an environment in the form `[{name, value}]`, `['NAME=value']` or `{NAME: value}`. */
function environmentSecrets(value: unknown): string[] {
  const pairs = Array.isArray(value) ? value.map(pairOf) : isReference(value) ? Object.entries(value) : [];
  return pairs.flatMap(([name, each]) => (typeof each === 'string' && isSecretVariable(name, each) ? [each] : []));
}

function pairOf(value: unknown): [string, unknown] {
  if (typeof value === 'string') {
    const at = value.indexOf('=');
    return at < 0 ? ['', undefined] : [value.slice(0, at), value.slice(at + 1)];
  }
  const { name, value: given } = (value ?? {}) as { name?: unknown; value?: unknown };
  return [String(name), given];
}

/**
 * Whether the value of an environment variable looks like a secret. Other values are names, paths and addresses.
 * Removing them everywhere would make logs unreadable.
 */
function isSecretVariable(name: string, value: string): boolean {
  if (isSecretName(name)) return !value.startsWith('/');
  return (
    /^(?=.*\d)(?=.*[A-Za-z])[^\s/:,]{12,}$/.test(value) &&
    !/^[\d.]+$|^[a-z0-9.-]+\.(?:svc|local|com|org|dev|io)$/.test(value)
  );
}
