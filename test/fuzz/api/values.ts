/** Hostile values as JSON text, many of which `JSON.stringify` cannot produce. */
import type { Choices } from '../../apiserver/core/patch/choices.ts';

export const KEYS = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'valueOf',
  '__defineGetter__',
  'then',
  'length',
  '',
  '.',
  '..',
  'a/b',
  'a~b',
  '$patch',
  '$ref',
  'metadata',
  'kind',
  'items',
  'x'.repeat(300),
  '\u0000',
  'ä€🙂',
] as const;

export const TEXTS = [
  '',
  ' ',
  'x',
  '*',
  '..',
  '../../etc/passwd',
  '/etc/passwd',
  'C:\\x',
  'a b',
  'A_B',
  'x'.repeat(254),
  'x'.repeat(5000),
  '\u0000',
  '\n\r\t',
  '\u2028',
  '🙂',
  '%00',
  '$(x)',
  '{{.}}',
  '<script>',
  "' OR 1=1",
  'true',
  'null',
  '1',
  '-1',
  '0x10',
  '1e309',
  'NaN',
  'Infinity',
  '100%',
  '1e1000000',
  '99999999999999999999Ei',
  '1.0000000000000000000000001m',
  '-1n',
  '1h',
  '9999999h',
  '2026-13-45T99:99:99Z',
  '2026-01-01T00:00:00Z',
  '0000-00-00T00:00:00Z',
  '999.999.999.999',
  '127.0.0.1',
  '::1',
  '169.254.169.254',
  '10.0.0.0/8',
  '0.0.0.0/0',
  'http://127.0.0.1:1/',
  'https://[::1]:1/x?y#z',
  'file:///etc/passwd',
  'v1',
  'apps/v1',
  'a/b/c/d',
  'system:masters',
  'kube-system',
  'Always',
  'Cluster',
  'Orphan',
  'Exists',
  'aGk=',
  '!!!not base64',
  '-----BEGIN CERTIFICATE-----',
  '(a+)+$',
  '^(([a-z])+.)+[A-Z]([a-z])+$',
  '(?<=x)y',
  '[',
  '\\',
  '(x{1000}){1000}',
  '\\p{L}+',
  'self.x == 1',
  'self.all(x, self.all(y, self.all(z, x == y)))',
  '.spec.replicas',
  '.spec.__proto__.x',
  '{.metadata.name}',
  '*/5 * * * *',
  '99 99 99 99 99',
  'TZ=x * * * * *',
  'Europe/Berlin',
  '../../etc/localtime',
] as const;

const NUMBERS = [
  '0',
  '-0',
  '1',
  '-1',
  '2',
  '65535',
  '65536',
  '2147483647',
  '2147483648',
  '-2147483649',
  '9007199254740993',
  '9223372036854775807',
  '9223372036854775808',
  '123456789012345678901234567890',
  '1e308',
  '1e999',
  '-1e999',
  '1e-999',
  '1.5',
  '0.1',
  '1E2',
] as const;

/** Invalid JSON. */
const BROKEN = [
  '01',
  '+1',
  '.5',
  '1.',
  'NaN',
  'Infinity',
  'undefined',
  "'x'",
  '"\\x"',
  '"\\u12"',
  '"unfinished',
  '"line\nbreak"',
  '[1,]',
  '{"a":1,}',
  '{a:1}',
  '{"a" 1}',
  '/* */1',
  '',
  '\u0000',
  ']',
  '}',
] as const;

export function text(choices: Choices): string {
  const roll = choices.below(20);
  if (roll === 0) return String.fromCharCode(...Array.from({ length: choices.below(30) }, () => choices.below(65536)));
  if (roll === 1) return choices.one(TEXTS) + choices.one(TEXTS);
  return choices.one(TEXTS);
}

/** A string literal, sometimes with escapes of single surrogates. */
function literal(choices: Choices): string {
  const roll = choices.below(30);
  if (roll === 0) return '"\\ud800"';
  if (roll === 1) return '"\\udc00x\\ud800"';
  if (roll === 2) return `"${'\\u0041'.repeat(choices.below(500))}"`;
  if (roll === 3) return JSON.stringify('y'.repeat(1 << choices.below(17)));
  return JSON.stringify(text(choices));
}

function nested(choices: Choices): string {
  const depth = choices.one([2, 10, 60, 130, 500, 511, 512, 513, 600, 5000]);
  if (choices.chance(0.5)) return '['.repeat(depth) + ']'.repeat(depth);
  const key = JSON.stringify(choices.one(['a', 'items', 'properties', '__proto__', 'metadata']));
  return `${`{${key}:`.repeat(depth)}1${'}'.repeat(depth)}`;
}

/** A JSON value, sometimes an invalid one. */
export function value(choices: Choices, depth = 0): string {
  const roll = choices.below(depth > 4 ? 8 : 14);
  if (roll === 0) return 'null';
  if (roll === 1) return choices.one(['true', 'false']);
  if (roll <= 3) return choices.one(NUMBERS);
  if (roll <= 6) return literal(choices);
  if (roll === 7) return choices.chance(0.1) ? choices.one(BROKEN) : '{}';
  if (roll === 8) return nested(choices);
  if (roll <= 10) return `[${Array.from({ length: choices.below(4) }, () => value(choices, depth + 1)).join(',')}]`;
  return object(choices, depth);
}

/** An object, sometimes with duplicate keys. */
export function object(choices: Choices, depth = 0): string {
  const members = Array.from({ length: choices.below(4) }, () => {
    const key = choices.chance(0.6) ? choices.one(KEYS) : text(choices).slice(0, 300);
    return `${JSON.stringify(key)}:${value(choices, depth + 1)}`;
  });
  const first = members[0];
  if (first !== undefined && choices.chance(0.1)) members.push(first);
  return `{${members.join(',')}}`;
}

const MARK = '\ue000raw';

/** A document as text with some values replaced, dropped, duplicated or wrapped. The result may be invalid JSON. */
export function mutated(choices: Choices, document: object, most = 3): string {
  const copy = structuredClone(document) as Record<string, unknown>;
  const raws: string[] = [];
  const raw = (source: string): string => `${MARK}${raws.push(source) - 1};`;
  for (let count = choices.below(most + 1); count > 0; count--) mutateOnce(choices, copy, raw);
  return JSON.stringify(copy).replaceAll(/"\ue000raw(\d+);"/g, (_, at: string) => raws[Number(at)] ?? 'null');
}

function mutateOnce(choices: Choices, root: Record<string, unknown>, raw: (source: string) => string): void {
  let holder: Record<string, unknown> = root;
  // Select a random depth, so that shallow values are changed as often as deep ones.
  for (let depth = choices.below(8); depth > 0; depth--) {
    const below = Object.values(holder).filter((each) => typeof each === 'object' && each !== null);
    if (below.length === 0) break;
    holder = choices.one(below) as Record<string, unknown>;
  }
  const keys = Object.keys(holder);
  const roll = choices.below(10);
  if (roll < 2 || keys.length === 0) {
    const added = value(choices);
    if (Array.isArray(holder)) holder.push(raw(added));
    else
      Object.defineProperty(holder, choices.one(KEYS), {
        value: raw(added),
        enumerable: true,
        configurable: true,
        writable: true,
      });
    return;
  }
  const key = choices.one(keys);
  const old = holder[key];
  if (roll === 2) {
    if (Array.isArray(holder)) holder.splice(Number(key), 1);
    else delete holder[key];
  } else if (roll === 3) holder[key] = [old];
  else if (roll === 4) holder[key] = { [choices.one(KEYS)]: old };
  else if (roll === 5 && Array.isArray(old)) holder[key] = [...old, ...old];
  else if (roll === 5 && typeof old === 'string') holder[key] = old + text(choices);
  else if (roll === 6 && typeof old === 'string') holder[key] = text(choices);
  else holder[key] = raw(value(choices));
}

/** Bytes of a text, sometimes damaged: truncated, flipped, invalid UTF-8, or with trailing bytes. */
export function damaged(choices: Choices, source: string | Buffer, probability = 0.15): Buffer {
  const bytes = Buffer.from(source);
  if (!choices.chance(probability) || bytes.length === 0) return bytes;
  const at = choices.below(bytes.length);
  switch (choices.below(8)) {
    case 0:
      return bytes.subarray(0, at);
    case 1:
      bytes[at] = choices.below(256);
      return bytes;
    case 2:
      return Buffer.concat([bytes.subarray(0, at), Buffer.from([0xc3, 0x28, 0xff, 0xfe]), bytes.subarray(at)]);
    case 3:
      return Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]);
    case 4:
      return Buffer.concat([bytes, Buffer.from(choices.one(['{}', '\u0000', ' ', ']]', 'x']))]);
    case 5:
      return Buffer.from(bytes.toString('utf8'), 'utf16le');
    case 6:
      return Buffer.concat([bytes.subarray(0, at), Buffer.from([0xed, 0xa0, 0x80]), bytes.subarray(at)]);
    default: {
      for (let flips = choices.below(10); flips >= 0; flips--) {
        const place = choices.below(bytes.length);
        bytes[place] = (bytes[place] ?? 0) ^ (1 << choices.below(8));
      }
      return bytes;
    }
  }
}
