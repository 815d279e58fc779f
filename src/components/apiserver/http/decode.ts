/** Bodies as documents: JSON, or YAML without aliases beyond reason and without tags. */
import { isUtf8 } from 'node:buffer';
import { isScalar, Lexer, parseDocument, visit, type YAMLMap } from 'yaml';
import type { JsonObject, JsonValue } from '../../../api/meta/object.ts';
import { ApiError } from '../../../api/meta/status.ts';
import { messageOf } from '../../../base/errors.ts';
import { checkDepth, duplicateFields, hasDuplicates } from './json-scan.ts';
import { decodeProtobuf } from './protobuf/decode.ts';
import { PROTOBUF } from './protobuf/table.ts';

/** Parsing YAML costs the event loop about a hundred times what JSON does, by the token and not by the byte; clients send it by hand only. */
const MAX_YAML_BYTES = 512 * 1024;
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

export function decodeBody(body: Buffer, format: BodyFormat): JsonObject {
  if (format === 'protobuf') return decodeProtobuf(body);
  const value = decodeValue(body, format);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ApiError('BadRequest', 'the body of the request is not an object');
  }
  return value;
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
    return JSON.parse(body.toString('utf8')) as JsonValue;
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
    return JSON.parse(body.toString('utf8')) as JsonValue;
  } catch (error) {
    throw new ApiError('BadRequest', `the body of the request is not valid JSON: ${messageOf(error)}`);
  }
}

function countTokens(source: string): void {
  let count = 0;
  for (const _token of new Lexer().lex(source)) {
    count += 1;
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
  if (body.length > MAX_YAML_BYTES) {
    throw new ApiError('RequestEntityTooLarge', `a YAML body may have at most ${MAX_YAML_BYTES} bytes; send JSON`);
  }
  const source = body.toString('utf8');
  countTokens(source);
  let text: string;
  try {
    const document = parseDocument(source, {
      schema: 'core',
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
