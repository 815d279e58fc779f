/**
 * Removes known secret values from texts. A value is removed wherever it appears: as a whole, each of its lines, and
 * encoded as base64, hexadecimal, URL component or JSON string.
 */

export const REMOVED = '<removed>';

/**
 * Minimum length of a value that is removed wherever it appears. Shorter values are often ordinary words. In YAML and
 * JSON documents, they are removed if the name of their field denotes a secret.
 */
export const MIN_KNOWN_LENGTH = 6;
const MIN_LINE_LENGTH = 16;
const MIN_PART_LENGTH = 8;
const MAX_VALUE_LENGTH = 64 * 1024;
/** Values that Secrets contain but that are not secret. Removing them everywhere would make the files unreadable. */
const ORDINARY =
  /^(?:\d{1,7}|kubernetes|default|kube-system|kube-public|password|secret|username|hyperedge|localhost|cluster\.local|kubeadmin|system:[a-z:-]+|openshift(?:-[a-z-]+)?)$/;
const CERTIFICATE = /-----BEGIN (?:TRUSTED )?(?:CERTIFICATE|PUBLIC KEY)[^-]*-----[^-]*-----END [^-]*-----/g;

const WINDOW = MIN_KNOWN_LENGTH;
const BASE = 0x01000193;
const FILTER_BITS = 20;
const LEADING = power(BASE, WINDOW - 1);

/** Set of known secret values. `remove` replaces them in a text; `removed` is the number of replacements so far. */
export interface KnownValues {
  remove(text: string): string;
  readonly size: number;
  readonly removed: number;
}

/** All encodings of a value; empty if the value is too short or an ordinary word. */
export function encodingsOf(value: string): string[] {
  const secret = value.length > MAX_VALUE_LENGTH ? value.slice(0, MAX_VALUE_LENGTH) : value;
  const whole = secret.replace(CERTIFICATE, '').trim();
  if (whole.length < MIN_KNOWN_LENGTH || ORDINARY.test(whole)) return [];
  const lines = whole.includes('\n')
    ? whole
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line.length >= MIN_LINE_LENGTH && !line.startsWith('-----'))
    : [];
  const found = new Set<string>();
  for (const each of new Set([value, whole])) for (const form of formsOf(each)) found.add(form);
  for (const line of lines) found.add(line);
  return [...found].filter((each) => each.length >= MIN_KNOWN_LENGTH && !each.includes('\n'));
}

function* formsOf(text: string): Generator<string> {
  yield text;
  yield JSON.stringify(text).slice(1, -1);
  try {
    yield encodeURIComponent(text);
    yield encodeURIComponent(text).replaceAll('%20', '+');
  } catch {
    // A text with a lone surrogate has no URL encoding.
  }
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length < MIN_KNOWN_LENGTH) return;
  yield bytes.toString('hex');
  yield bytes.toString('hex').toUpperCase();
  for (const padding of [0, 1, 2]) {
    const encoded = insideBase64(bytes, padding);
    if (encoded.length < MIN_PART_LENGTH) continue;
    yield encoded;
    yield encoded.replaceAll('+', '-').replaceAll('/', '_');
  }
}

/**
 * Part of the base64 of a longer text that depends only on `bytes`, if `bytes` begin at an offset that is `offset`
 * modulo 3.
 */
function insideBase64(bytes: Buffer, offset: number): string {
  const whole = Buffer.concat([Buffer.alloc(offset), bytes])
    .toString('base64')
    .replaceAll('=', '');
  const first = [0, 2, 3][offset] ?? 0;
  const bits = (offset + bytes.length) * 8;
  return whole.slice(first, Math.floor(bits / 6));
}

/** Creates the set. `values` are secret values without encoding; the encodings are added. */
export function createKnownValues(values: Iterable<string>): KnownValues {
  const byHash = new Map<number, string[]>();
  const filter = new Uint8Array(1 << FILTER_BITS);
  const all = new Set<string>();
  for (const value of values) for (const each of encodingsOf(value)) all.add(each);
  for (const each of all) {
    const hash = hashAt(each, 0);
    filter[slotOf(hash)] = 1;
    const same = byHash.get(hash);
    if (same === undefined) byHash.set(hash, [each]);
    else same.push(each);
  }
  // Longer values come first, so that no rest of a value remains if a shorter value is its beginning.
  for (const same of byHash.values()) same.sort((left, right) => right.length - left.length);
  let removed = 0;

  const remove = (text: string): string => {
    if (all.size === 0 || text.length < WINDOW) return text;
    let result = '';
    let kept = 0;
    let at = 0;
    let hash = hashAt(text, 0);
    for (;;) {
      const match =
        filter[slotOf(hash)] === 1 ? byHash.get(hash)?.find((each) => text.startsWith(each, at)) : undefined;
      if (match !== undefined) {
        result += text.slice(kept, at) + REMOVED;
        removed += 1;
        at += match.length;
        kept = at;
        if (at + WINDOW > text.length) break;
        hash = hashAt(text, at);
        continue;
      }
      if (at + WINDOW >= text.length) break;
      hash = Math.imul(hash - Math.imul(text.charCodeAt(at), LEADING), BASE) + text.charCodeAt(at + WINDOW);
      hash |= 0;
      at += 1;
    }
    return kept === 0 ? text : result + text.slice(kept);
  };

  return {
    remove,
    size: all.size,
    get removed() {
      return removed;
    },
  };
}

function hashAt(text: string, at: number): number {
  let hash = 0;
  for (let index = at; index < at + WINDOW; index += 1) hash = (Math.imul(hash, BASE) + text.charCodeAt(index)) | 0;
  return hash;
}

const slotOf = (hash: number): number => Math.imul(hash, 0x9e3779b1) >>> (32 - FILTER_BITS);

function power(base: number, exponent: number): number {
  let result = 1;
  for (let step = 0; step < exponent; step += 1) result = Math.imul(result, base);
  return result;
}
