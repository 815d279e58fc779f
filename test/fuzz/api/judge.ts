/** Checks responses: each must be a valid object or a Status that matches its HTTP code. */
import { isUtf8 } from 'node:buffer';
import { gunzipSync } from 'node:zlib';
import { parse } from 'yaml';
import { decodeProtobuf } from '../../../src/apiserver/http/protobuf/decode.ts';
import type { Input } from './requests.ts';
import type { Reply } from './wire.ts';

/**
 * Codes by reason, independent of the server's own table. Source: k8s.io/apimachinery/pkg/apis/meta/v1 StatusReason.
 */
const CODES: Readonly<Record<string, readonly number[]>> = {
  BadRequest: [400],
  Unauthorized: [401],
  Forbidden: [403],
  NotFound: [404],
  MethodNotAllowed: [405],
  NotAcceptable: [406],
  AlreadyExists: [409],
  Conflict: [409],
  Gone: [410],
  Expired: [410],
  RequestEntityTooLarge: [413],
  UnsupportedMediaType: [415],
  Invalid: [422],
  TooManyRequests: [429],
  InternalError: [500],
  ServerTimeout: [500],
  ServiceUnavailable: [503],
  Timeout: [504],
};
/** Codes of requests that the HTTP parser rejects. As in Go's server, such a response has no Status. */
const PARSER_CODES: ReadonlySet<number> = new Set([400, 408, 431, 505]);
const PUBLIC_TEXT = /^\/(?:healthz|livez|readyz|metrics|openapi)/;
/** Errors for which upstream also responds with 500 although the client or a webhook caused them. */
const LIKE_UPSTREAM =
  /failed calling webhook|conversion webhook|without impersonating a user|^failed to create typed patch object/;
/** Errors without a reason. */
const WITHOUT_REASON = /^failed to create typed patch object/;
/** Paths of health checks, which report when the store does not respond in time, as in upstream. */
const HEALTH = /^\/(?:healthz|livez|readyz)(?:[/?]|$)/;
const MAX_MESSAGE = 300;

/** Description of the fault; undefined for a correct response. */
export function fault(input: Pick<Input, 'method' | 'path' | 'openEnded'>, reply: Reply): string | undefined {
  const { code, headers } = reply;
  if (code === 101) return input.openEnded ? undefined : 'switched protocols without being asked';
  if (code === 304) return undefined;
  if (input.method === 'HEAD') return undefined;
  if (!reply.complete && !input.openEnded) return 'the answer was cut off';
  let body = reply.body;
  if (headers.get('content-encoding') === 'gzip') {
    if (!reply.complete) return undefined;
    body = gunzipSync(body);
  }
  const type = headers.get('content-type') ?? '';
  if (
    code === 500 &&
    HEALTH.test(input.path) &&
    /^\[-\]etcd failed: |\n\[-\]etcd failed: /.test(body.toString('latin1'))
  )
    return undefined;
  if (code >= 400)
    return PARSER_CODES.has(code) && type === '' && body.length === 0 ? undefined : faultOfFailure(code, type, body);
  if (code >= 300) return `redirected with ${code}`;
  return faultOfSuccess(input, reply, type, body);
}

/** Decodes a body in any format. Throws if it is invalid. */
export function documentOf(type: string, body: Buffer): Record<string, unknown> {
  if (type.startsWith('application/vnd.kubernetes.protobuf')) return messageOf(body);
  if (!isUtf8(body)) throw new Error('not UTF-8');
  const text = body.toString('utf8');
  return type.startsWith('application/yaml') ? parse(text) : JSON.parse(text);
}

/**
 * Lists and partial objects are response types only, for which the server has no decoder, so just their envelope is
 * decoded.
 */
function messageOf(body: Buffer): Record<string, unknown> {
  try {
    return decodeProtobuf(body);
  } catch (error) {
    const named = /^(\S+) (\w*(?:List|PartialObjectMetadata|Scale|Status)) has no protobuf representation/.exec(
      error instanceof Error ? error.message : '',
    );
    if (named === null) throw error;
    return { apiVersion: named[1], kind: named[2] };
  }
}

function faultOfFailure(code: number, type: string, body: Buffer): string | undefined {
  let status: Record<string, unknown>;
  try {
    status = documentOf(type, body);
  } catch (error) {
    return `${code} without a Status (${type}: ${error instanceof Error ? error.message : String(error)}): ${body.toString('latin1').slice(0, 200)}`;
  }
  const shown = `: ${JSON.stringify(status).slice(0, MAX_MESSAGE)}`;
  if (status['kind'] !== 'Status' || status['apiVersion'] !== 'v1')
    return `${code} with another body than a Status${shown}`;
  if (status['status'] !== 'Failure') return `${code} with a Status that is no failure${shown}`;
  if (status['code'] !== code) return `HTTP ${code}, Status ${String(status['code'])}${shown}`;
  const codes =
    status['reason'] === undefined && WITHOUT_REASON.test(String(status['message']))
      ? [500]
      : CODES[String(status['reason'])];
  if (codes === undefined || !codes.includes(code))
    return `reason ${String(status['reason'])} does not go with ${code}${shown}`;
  if (typeof status['message'] !== 'string' || status['message'] === '') return `no message${shown}`;
  if (code === 500 && !LIKE_UPSTREAM.test(status['message'])) return `a bug was answered${shown}`;
  return undefined;
}

function faultOfSuccess(
  input: Pick<Input, 'path' | 'openEnded' | 'method'>,
  reply: Reply,
  type: string,
  body: Buffer,
): string | undefined {
  if (type.startsWith('text/plain') || PUBLIC_TEXT.test(input.path)) return undefined;
  if (input.openEnded && (!reply.complete || body.length === 0 || body.includes(0x0a)))
    return faultOfStream(type, body, reply.complete);
  let document: Record<string, unknown>;
  try {
    document = documentOf(type, body);
  } catch (error) {
    return `${reply.code} with a body that is no ${type}: ${error instanceof Error ? error.message : String(error)}: ${body.toString('latin1').slice(0, 200)}`;
  }
  if (typeof document !== 'object' || document === null || Array.isArray(document)) return 'not an object';
  if (!/^\/apis?\/[^?]*\/[^?/]/.test(input.path)) return undefined;
  const { kind, apiVersion } = document;
  if (typeof kind !== 'string' || kind === '' || typeof apiVersion !== 'string' || apiVersion === '')
    return `an object without kind or apiVersion: ${JSON.stringify(document).slice(0, MAX_MESSAGE)}`;
  return undefined;
}

function isDocument(body: Buffer): boolean {
  try {
    JSON.parse(body.toString('utf8'));
    return true;
  } catch {
    return false;
  }
}

function faultOfStream(type: string, body: Buffer, complete: boolean): string | undefined {
  if (!type.startsWith('application/json')) return undefined;
  const lines = body.toString('utf8').split('\n');
  const last = lines.pop();
  // A watch of a single object may return that object, indented on request.
  if (complete && lines[0] === '{') return isDocument(body) ? undefined : 'an indented answer that is not JSON';
  if (complete && last !== '') return 'a stream that ends within a line';
  for (const line of lines) {
    try {
      JSON.parse(line);
    } catch {
      return `a line of a stream that is not JSON: ${line.slice(0, 200)}`;
    }
  }
  return undefined;
}
