/** Decodes request bodies: JSON, or YAML without tags and with few aliases. */
import { isUtf8 } from 'node:buffer';
import { isScalar, Lexer, LineCounter, parseDocument, type Tags, visit, type YAMLMap } from 'yaml';
import type { JsonObject, JsonValue } from '../../api/meta/object.ts';
import { ApiError } from '../../api/meta/status.ts';
import { messageOf } from '../../base/errors.ts';
import { parseJson } from '../../base/json/json.ts';
import { checkDepth, duplicateFields, hasDuplicates, MAX_DEPTH, tooDeep } from './json-scan.ts';
import { decodeProtobuf } from './protobuf/decode.ts';
import { PROTOBUF } from './protobuf/field-table.ts';

/**
 * Maximum number of tokens in a YAML body. Parsing YAML takes about a hundred times as long as parsing JSON, and the
 * time depends on the number of tokens. The limit is sufficient for documents written by hand.
 */
const MAX_YAML_TOKENS = 50_000;
const MAX_ALIASES = 32;

export type BodyFormat = 'json' | 'yaml' | 'protobuf';

/** A media type with parameters, `a/b; c=d; e="f"`. Source: RFC 9110, 8.3.1. */
const MEDIA_TYPE =
  /^\s*([\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+)\s*(?:;\s*[\w!#$%&'*+.^`|~-]+=(?:[\w!#$%&'*+.^`|~-]+|"[^"]*")\s*)*;?\s*$/;
const MAX_MEDIA_TYPE = 256;

/** The format of a content type. As upstream, a missing type means JSON. Throws 'UnsupportedMediaType'. */
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

/** Decodes a body. `kind` is the expected kind, which upstream names in error messages. */
export function decodeBody(body: Buffer, format: BodyFormat, kind?: string): JsonObject {
  if (kind === undefined || format === 'protobuf') return decodeUnnamed(body, format);
  try {
    return decodeUnnamed(body, format);
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== 'BadRequest') throw error;
    throw unrecognized(kind, error.message, body);
  }
}

/** Like `decodeBody`, but errors do not name the expected kind. */
export function decodeUnnamed(body: Buffer, format: BodyFormat): JsonObject {
  if (format === 'protobuf') return decodeProtobuf(body);
  let value: JsonValue;
  try {
    value = decodeValue(body, format);
  } catch (error) {
    if (format !== 'json' || !(error instanceof ApiError) || error.reason !== 'BadRequest') throw error;
    throw new ApiError('BadRequest', `${NO_TYPE}${error.message}`);
  }
  // As upstream, `null` is an empty object.
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

/**
 * Error of a body that is not of the expected kind. Source: k8s.io/apiserver/pkg/endpoints/handlers
 * transformDecodeError.
 */
function unrecognized(kind: string, problem: string, body: Buffer): ApiError {
  const encoding = body[0] === 0x7b ? 'utf8' : 'hex';
  const text = body.toString(encoding, 0, MAX_SUMMARY);
  const summary = body.length === 0 ? '<empty>' : body.length > MAX_SUMMARY ? `${text} ...` : text;
  return new ApiError(
    'BadRequest',
    `the object provided is unrecognized (must be of type ${kind}): ${problem} (${summary})`,
  );
}

/** Maximum length of the quoted part of a body. Upstream quotes the complete body. */
const MAX_QUOTED = 1024;

/**
 * Requires `kind` in the document of a custom resource. For built-in kinds the path is sufficient. Source:
 * apimachinery's UnstructuredJSONScheme.
 */
export function requireKind(document: JsonObject, body: Buffer, format: BodyFormat, kind: string): void {
  if (typeof document['kind'] === 'string' && document['kind'] !== '') return;
  const text = format === 'json' ? body.toString('utf8') : JSON.stringify(document);
  throw unrecognized(kind, `Object 'Kind' is missing in '${text.slice(0, MAX_QUOTED)}'`, body);
}

/** Error messages of V8's JSON parser, and the corresponding messages of Go. */
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
 * Returns the error `duplicate field "a.b"` for each field that occurs twice in the body. For YAML, the errors have
 * line numbers. `document` must be the unchanged result of decoding `body`.
 */
export function duplicatesOf(body: Buffer, format: BodyFormat, document: JsonObject): readonly string[] {
  const lines = doubled.get(document);
  if (lines !== undefined) return lines;
  if (format === 'protobuf' || !looksLikeJson(body) || !hasDuplicates(body, document)) return [];
  return duplicateFields(body).map((path) => `duplicate field ${JSON.stringify(path)}`);
}

/** Decodes any JSON value, for patches that are lists. */
export function decodeValue(body: Buffer, format: Exclude<BodyFormat, 'protobuf'>): JsonValue {
  if (!isUtf8(body)) throw new ApiError('BadRequest', 'the body of the request is not UTF-8');
  if (format === 'json') return decodeJson(body);
  // JSON is valid YAML and much faster to parse, so it is tried first. `{"a": 1,}` is valid YAML only.
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
 * Matches text that may contain a number that overflows to infinity, which would be stored as null. It also matches
 * some identifiers. Runs in linear time.
 */
const HUGE_NUMBER = /\de\+?\d{3}|(?<!\d)\d{309}/i;

/** The number around position `at`, shortened for a message. */
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

/** Rejects documents with too many tokens or too deep nesting, before they are parsed. */
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

/** Duplicate fields of documents decoded from YAML. */
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
 * YAML 1.1 tags that upstream's parser does not resolve, so times and dates stay strings. Upstream resolves the other
 * tags: numbers in other bases, `yes` and `off`.
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
      // The yaml library would take quadratic time to check for unique keys.
      uniqueKeys: false,
      resolveKnownTags: false,
      logLevel: 'error',
    });
    // As upstream, only the first of several documents is read.
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
  // The JSON decoder removes what JSON cannot express, and checks the nesting depth.
  const value = decodeJson(Buffer.from(text));
  if (doubles.length > 0 && typeof value === 'object' && value !== null) doubled.set(value, doubles);
  return value;
}
