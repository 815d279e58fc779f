/** Bodies as documents: JSON, or YAML without aliases beyond reason and without tags. */
import { isUtf8 } from 'node:buffer';
import { isScalar, Lexer, LineCounter, parseDocument, type Tags, visit, type YAMLMap } from 'yaml';
import type { JsonObject, JsonValue } from '../../../api/meta/object.ts';
import { ApiError } from '../../../api/meta/status.ts';
import { messageOf } from '../../../base/errors.ts';
import { parseJson } from '../../../base/json.ts';
import { checkDepth, duplicateFields, hasDuplicates, MAX_DEPTH, tooDeep } from './json-scan.ts';
import { decodeProtobuf } from './protobuf/decode.ts';
import { PROTOBUF } from './protobuf/table.ts';

/**
 * Parsing YAML costs the event loop about a hundred times what JSON does, by the token and not by the byte; clients
 * send it by hand only.
 */
const MAX_YAML_TOKENS = 50_000;
const MAX_ALIASES = 32;

export type BodyFormat = 'json' | 'yaml' | 'protobuf';

/** A media type with its parameters, `a/b; c=d; e="f"`. Source: RFC 9110, 8.3.1. */
const MEDIA_TYPE =
  /^\s*([\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+)\s*(?:;\s*[\w!#$%&'*+.^`|~-]+=(?:[\w!#$%&'*+.^`|~-]+|"[^"]*")\s*)*;?\s*$/;
const MAX_MEDIA_TYPE = 256;

/** The format a content type names. Throws 'UnsupportedMediaType'. An absent type is JSON, as upstream. */
export function bodyFormat(contentType: string | undefined): BodyFormat {
  if (contentType === undefined || contentType === '' || contentType === 'application/json') return 'json';
  const type = MEDIA_TYPE.exec(contentType.slice(0, MAX_MEDIA_TYPE))?.[1]?.toLowerCase();
  if (type === 'application/json') return 'json';
  if (type === 'application/yaml') return 'yaml';
  if (type === PROTOBUF) return 'protobuf';
  throw new ApiError(
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, ${PROTOBUF}`,
  );
}

/** `kind`: what the body should be; for the answer to who sent something else, in upstream's words. */
export function decodeBody(body: Buffer, format: BodyFormat, kind?: string): JsonObject {
  if (kind === undefined || format === 'protobuf') return decodeUnnamed(body, format);
  try {
    return decodeUnnamed(body, format);
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== 'BadRequest') throw error;
    throw unrecognized(kind, error.message, body);
  }
}

/** As `decodeBody`; what is wrong is said without a word on what it should have been. */
export function decodeUnnamed(body: Buffer, format: BodyFormat): JsonObject {
  if (format === 'protobuf') return decodeProtobuf(body);
  let value: JsonValue;
  try {
    value = decodeValue(body, format);
  } catch (error) {
    if (format !== 'json' || !(error instanceof ApiError) || error.reason !== 'BadRequest') throw error;
    throw new ApiError('BadRequest', `${NO_TYPE}${error.message}`);
  }
  // To upstream nothing is an empty object.
  if (value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) {
    const found = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value;
    throw new ApiError('BadRequest', `${NO_TYPE}json: cannot unmarshal ${found} into Go value of type ${TYPE_META}`);
  }
  return value;
}

const NO_TYPE = "couldn't get version/kind; json parse error: ";
const TYPE_META = String.raw`struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }`;
const MAX_SUMMARY = 30;

/** Source: k8s.io/apiserver/pkg/endpoints/handlers transformDecodeError. */
function unrecognized(kind: string, problem: string, body: Buffer): ApiError {
  const encoding = body[0] === 0x7b ? 'utf8' : 'hex';
  const text = body.toString(encoding, 0, MAX_SUMMARY);
  const summary = body.length === 0 ? '<empty>' : body.length > MAX_SUMMARY ? `${text} ...` : text;
  return new ApiError(
    'BadRequest',
    `the object provided is unrecognized (must be of type ${kind}): ${problem} (${summary})`,
  );
}

/** Upstream quotes all of it; a body may have megabytes. */
const MAX_QUOTED = 1024;

/**
 * Built-in kinds are what their path says; a document of a custom one has to name its kind itself. Source:
 * apimachinery's UnstructuredJSONScheme.
 */
export function requireKind(document: JsonObject, body: Buffer, format: BodyFormat, kind: string): void {
  if (typeof document['kind'] === 'string' && document['kind'] !== '') return;
  const text = format === 'json' ? body.toString('utf8') : JSON.stringify(document);
  throw unrecognized(kind, `Object 'Kind' is missing in '${text.slice(0, MAX_QUOTED)}'`, body);
}

/** What V8 says of JSON that is none, and what Go does. */
const LOOKING_FOR: readonly (readonly [RegExp, string])[] = [
  [/':' after/, 'after object key'],
  [/property name/, 'looking for beginning of object key string'],
  [/after JSON/, 'after top-level value'],
  [/after property value/, 'after object key:value pair'],
  [/after array element/, 'after array element'],
  [/control character|in string/, 'in string literal'],
];

function jsonProblem(message: string, body: Buffer): string {
  const position = /at position (\d+)/.exec(message)?.[1] ?? (/^Unexpected token/.test(message) ? '-1' : undefined);
  const text = body.toString('utf8');
  const found =
    position === undefined
      ? undefined
      : position === '-1'
        ? /^Unexpected token '(.)'/su.exec(message)?.[1]
        : text[Number(position)];
  if (found === undefined) return 'unexpected end of JSON input';
  const where = LOOKING_FOR.find(([pattern]) => pattern.test(message))?.[1] ?? 'looking for beginning of value';
  const shown = found === "'" ? String.raw`\'` : found === '"' ? found : JSON.stringify(found).slice(1, -1);
  return `invalid character '${shown}' ${where}`;
}

/**
 * `duplicate field "a.b"` for each field that a body has twice; of YAML in which line. `document`: what it was decoded
 * to, not changed since.
 */
export function duplicatesOf(body: Buffer, format: BodyFormat, document: JsonObject): readonly string[] {
  const lines = doubled.get(document);
  if (lines !== undefined) return lines;
  if (format === 'protobuf' || !looksLikeJson(body) || !hasDuplicates(body, document)) return [];
  return duplicateFields(body).map((path) => `duplicate field ${JSON.stringify(path)}`);
}

/** Any JSON value, for patches that are lists. */
export function decodeValue(body: Buffer, format: Exclude<BodyFormat, 'protobuf'>): JsonValue {
  if (!isUtf8(body)) throw new ApiError('BadRequest', 'the body of the request is not UTF-8');
  if (format === 'json') return decodeJson(body);
  // All JSON is YAML, and most of what is sent as YAML is JSON, which is read much faster; `{"a": 1,}` is YAML only.
  return (looksLikeJson(body) ? plainJson(body) : undefined) ?? decodeYaml(body);
}

function plainJson(body: Buffer): JsonValue | undefined {
  checkDepth(body);
  try {
    return parseJson(body.toString('utf8')) as JsonValue;
  } catch {
    return undefined;
  }
}

function looksLikeJson(body: Buffer): boolean {
  for (const byte of body) {
    if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) continue;
    return byte === 0x7b || byte === 0x5b;
  }
  return false;
}

export function decodeJson(body: Buffer): JsonValue {
  checkDepth(body);
  let value: JsonValue;
  let text: string;
  try {
    text = body.toString('utf8');
    value = parseJson(text) as JsonValue;
  } catch (error) {
    throw new ApiError('BadRequest', jsonProblem(messageOf(error), body));
  }
  const huge = text.search(HUGE_NUMBER);
  if (huge >= 0 && hasInfinite(value)) {
    const shown = numberAt(text, huge);
    throw new ApiError('BadRequest', `json: cannot unmarshal number ${shown} into Go value of type float64`);
  }
  return value;
}

/**
 * What may be a number beyond all numbers, which would be read as infinite and be stored as null. Identifiers look like
 * it too. It looks at no character of a document more than a few times, whatever the input.
 */
const HUGE_NUMBER = /\de\+?\d{3}|(?<!\d)\d{309}/i;

/** The number that is around `at`, or what is shown of it. */
function numberAt(text: string, at: number): string {
  let start = at;
  while (at - start < MAX_SUMMARY && /[-\d.]/.test(text.charAt(start - 1))) start -= 1;
  return /^[-+.\de]*/i.exec(text.slice(start, start + MAX_SUMMARY))?.[0] ?? '';
}

function hasInfinite(value: JsonValue): boolean {
  const left = [value];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (next === Number.POSITIVE_INFINITY || next === Number.NEGATIVE_INFINITY) return true;
    if (typeof next === 'object' && next !== null) for (const below of Object.values(next)) left.push(below);
  }
  return false;
}

/** Refuses, without parsing, what would take too long, and brackets nested deeper than a document may be. */
function checkTokens(source: string): void {
  let count = 0;
  let depth = 0;
  for (const token of new Lexer().lex(source)) {
    count += 1;
    if (token === '[' || token === '{') depth += 1;
    else if (token === ']' || token === '}') depth -= 1;
    if (depth > MAX_DEPTH) throw new ApiError('BadRequest', tooDeep);
    if (count > MAX_YAML_TOKENS) throw new ApiError('RequestEntityTooLarge', 'the YAML body is too large; send JSON');
  }
}

/** What documents that were YAML have twice, for those who want to know. */
const doubled = new WeakMap<object, readonly string[]>();

function doublesIn(map: YAMLMap, lines: LineCounter): string[] {
  const seen = new Set<unknown>();
  const found: string[] = [];
  for (const { key } of map.items) {
    const name = isScalar(key) ? String(key.value) : key;
    if (seen.has(name) && isScalar(key))
      found.push(`line ${lines.linePos(key.range?.[0] ?? 0).line}: key ${JSON.stringify(name)} already set in map`);
    seen.add(name);
  }
  return found;
}

/**
 * Of YAML 1.1 what upstream's reader knows: numbers of other bases, `yes` and `off`; not times of day and dates, which
 * are texts.
 */
const UNKNOWN_TAGS = /:(timestamp|binary|omap|pairs|set)$/;
const knownTags = (tags: Tags): Tags =>
  tags.filter((tag) => typeof tag === 'string' || (tag.format !== 'TIME' && !UNKNOWN_TAGS.test(tag.tag)));

function decodeYaml(body: Buffer): JsonValue {
  const source = body.toString('utf8');
  checkTokens(source);
  let text: string;
  const lines = new LineCounter();
  const doubles: string[] = [];
  try {
    const document = parseDocument(source, {
      schema: 'yaml-1.1',
      intAsBigInt: true,
      customTags: knownTags,
      lineCounter: lines,
      strict: true,
      // The library's own test compares each key with every other.
      uniqueKeys: false,
      resolveKnownTags: false,
      logLevel: 'error',
    });
    // Only the first of several documents is read.
    const [problem] = [...document.errors, ...document.warnings].filter(({ code }) => code !== 'MULTIPLE_DOCS');
    if (problem !== undefined) throw problem;
    visit(document, { Map: (_, map) => void doubles.push(...doublesIn(map, lines)) });
    text = JSON.stringify(document.toJS({ maxAliasCount: MAX_ALIASES })) ?? 'null';
  } catch (error) {
    throw new ApiError(
      'BadRequest',
      `the body of the request is not valid YAML: ${messageOf(error).split('\n', 1)[0]}`,
    );
  }
  // Through JSON once more: whatever YAML can say beyond it is gone, and the depth is checked as for everybody.
  const value = decodeJson(Buffer.from(text));
  if (doubles.length > 0 && typeof value === 'object' && value !== null) doubled.set(value, doubles);
  return value;
}
