/** Bodies as documents: JSON, or YAML without aliases beyond reason and without tags. */
import { isUtf8 } from 'node:buffer';
import { isScalar, Lexer, parseDocument, visit, type YAMLMap } from 'yaml';
import type { JsonObject, JsonValue } from '../../../api/meta/object.ts';
import { ApiError } from '../../../api/meta/status.ts';
import { messageOf } from '../../../base/errors.ts';
import { parseJson } from '../../../base/json.ts';
import { checkDepth, duplicateFields, hasDuplicates, MAX_DEPTH, tooDeep } from './json-scan.ts';
import { decodeProtobuf } from './protobuf/decode.ts';
import { PROTOBUF } from './protobuf/table.ts';

/** Parsing YAML costs the event loop about a hundred times what JSON does, by the token and not by the byte; clients send it by hand only. */
const MAX_YAML_TOKENS = 50_000;
const MAX_ALIASES = 32;

export type BodyFormat = 'json' | 'yaml' | 'protobuf';

/** The format a content type names. Throws 'UnsupportedMediaType'. An absent type is JSON, as upstream. */
export function bodyFormat(contentType: string | undefined): BodyFormat {
  const type = (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (type === '' || type === 'application/json' || type === 'text/json') return 'json';
  if (type === 'application/yaml' || type === 'text/yaml' || type === 'application/x-yaml') return 'yaml';
  if (type === PROTOBUF) return 'protobuf';
  throw new ApiError(
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, ${PROTOBUF}`,
  );
}

/** `kind`: what the body should be; for the answer to who sent something else, in upstream's words. */
export function decodeBody(body: Buffer, format: BodyFormat, kind?: string): JsonObject {
  if (format === 'protobuf') return decodeProtobuf(body);
  let value: JsonValue;
  try {
    value = decodeValue(body, format);
  } catch (error) {
    if (kind === undefined || !(error instanceof ApiError) || error.reason !== 'BadRequest') throw error;
    throw unrecognized(kind, format === 'json' ? `${NO_TYPE}${error.message}` : error.message, body);
  }
  // To upstream nothing is an empty object.
  if (value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) {
    const found = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value;
    throw unrecognized(
      kind ?? 'object',
      `${NO_TYPE}json: cannot unmarshal ${found} into Go value of type ${TYPE_META}`,
      body,
    );
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

/** Built-in kinds are what their path says; a document of a custom one has to name its kind itself. Source: apimachinery's UnstructuredJSONScheme. */
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

/** `duplicate field "a.b"` for each field that a body has twice. `document`: what it was decoded to, not changed since. */
export function duplicatesOf(body: Buffer, format: BodyFormat, document: JsonObject): string[] {
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
  try {
    return parseJson(body.toString('utf8')) as JsonValue;
  } catch (error) {
    throw new ApiError('BadRequest', jsonProblem(messageOf(error), body));
  }
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

function refuseDoubles(map: YAMLMap): void {
  const seen = new Set<unknown>();
  for (const { key } of map.items) {
    const name = isScalar(key) ? String(key.value) : key;
    if (seen.has(name)) throw new Error(`the key ${JSON.stringify(String(name))} occurs twice in one map`);
    seen.add(name);
  }
}

function decodeYaml(body: Buffer): JsonValue {
  const source = body.toString('utf8');
  checkTokens(source);
  let text: string;
  try {
    const document = parseDocument(source, {
      schema: 'core',
      intAsBigInt: true,
      strict: true,
      // The library's own test compares each key with every other.
      uniqueKeys: false,
      resolveKnownTags: false,
      logLevel: 'error',
    });
    const [problem] = [...document.errors, ...document.warnings];
    if (problem !== undefined) throw problem;
    visit(document, { Map: (_, map) => refuseDoubles(map) });
    text = JSON.stringify(document.toJS({ maxAliasCount: MAX_ALIASES })) ?? 'null';
  } catch (error) {
    throw new ApiError(
      'BadRequest',
      `the body of the request is not valid YAML: ${messageOf(error).split('\n', 1)[0]}`,
    );
  }
  // Through JSON once more: whatever YAML can say beyond it is gone, and the depth is checked as for everybody.
  return decodeJson(Buffer.from(text));
}
