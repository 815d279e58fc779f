/** Reads the options and the body of a write. */
import type { JsonValue, KubeObject } from '../../../api/meta/object.ts';
import { peerAddress } from '../../../base/addresses/addresses.ts';
import { readBody } from '../../http/body.ts';
import { bodyFormat, decodeBody, duplicatesOf, requireKind } from '../../http/decode.ts';
import type { Exchange } from '../../http/exchange.ts';
import { strictErrors } from '../../http/json-scan.ts';
import type { ResourceRequestInfo } from '../../http/request-info.ts';
import { type DecodedKind, decodeSent } from '../../pipeline/decode-object.ts';
import type { ServedKind } from '../../pipeline/kinds.ts';
import type { WriteRequest } from '../../pipeline/write-request.ts';
import { isLarge, yieldEventLoop } from '../../server/event-loop.ts';
import type { ServerContext } from '../context.ts';
import { decodePatch, type PatchForm } from './patch.ts';
import { parseWriteOptions } from './write-options.ts';

type RequestBodyContext = Pick<ServerContext, 'config'>;

const MAX_BODY = 3 * 1024 * 1024;

/** Options kind of each verb, for error messages. */
const OPTIONS: Readonly<Record<string, string>> = {
  update: 'UpdateOptions',
  patch: 'PatchOptions',
  delete: 'DeleteOptions',
  deletecollection: 'DeleteOptions',
};

export function writeRequest(
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
  options = parseWriteOptions(OPTIONS[info.verb] ?? 'CreateOptions', info.query, exchange.header('user-agent')),
): WriteRequest {
  return {
    kind,
    namespace: kind.definition.namespaced ? info.namespace : '',
    name: info.name,
    subresource: info.subresource,
    user: exchange.user,
    sourceAddress: peerAddress(exchange.connection.remoteAddress),
    options,
    warnings: exchange.warnings,
    deadlineMs: exchange.deadlineMs,
    annotate: (key, value, level) => exchange.audit?.annotate(key, value, level),
  };
}

export const limitOf = (context: RequestBodyContext): number => context.config.maxBodyBytes ?? MAX_BODY;

export async function readObject(
  context: RequestBodyContext,
  exchange: Exchange,
  kind: DecodedKind,
  request: WriteRequest,
): Promise<KubeObject> {
  const format = bodyFormat(exchange.header('content-type'));
  const limit = Math.min(limitOf(context), kind.definition?.maxBodyBytes ?? limitOf(context));
  const body = await readBody(exchange.request, limit);
  request.bodyBytes = body.length;
  const large = isLarge(body.length);
  const document = decodeBody(body, format, kind.kind);
  if (kind.definition?.custom !== undefined) requireKind(document, body, format, kind.kind);
  if (large) await yieldEventLoop();
  const duplicates = request.options.validation === 'Ignore' ? [] : duplicatesOf(body, format, document);
  if (large) await yieldEventLoop();
  exchange.audit?.sent(document);
  // For custom resources and YAML, upstream reports duplicate fields before unknown fields.
  const asSent = kind.definition?.custom === undefined && duplicates[0]?.startsWith('duplicate field') === true;
  const inOrder = asSent ? (unknown: readonly string[]) => strictErrors(body, unknown) : undefined;
  const { validation } = request.options;
  return decodeSent(kind, document, { validation, warnings: request.warnings, duplicates, inOrder });
}

export async function readPatch(
  context: RequestBodyContext,
  exchange: Exchange,
  form: PatchForm,
  request: WriteRequest,
): Promise<{ readonly bytes: Buffer; readonly body: JsonValue }> {
  const bytes = await readBody(exchange.request, limitOf(context));
  request.bodyBytes = bytes.length;
  const body = decodePatch(bytes, form);
  if (isLarge(bytes.length)) await yieldEventLoop();
  return { bytes, body };
}
