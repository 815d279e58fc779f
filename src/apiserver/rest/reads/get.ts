/** GET of one object: sends its bytes from the cache. */

import { stringify } from 'yaml';
import { errors } from '../../../api/meta/status.ts';
import { parseJson } from '../../../base/json/json.ts';
import type { Exchange } from '../../http/exchange.ts';
import { type AnswerForm, negotiate } from '../../http/negotiate.ts';
import { PROTOBUF } from '../../http/protobuf/field-table.ts';
import type { ResourceRequestInfo } from '../../http/request-info.ts';
import type { ServedKind } from '../../pipeline/kinds.ts';
import { inServedVersion } from '../../pipeline/kinds.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import type { ServerContext } from '../context.ts';
import { parseRevision } from './list-options.ts';
import { supportsProtobuf } from './messages.ts';
import { requireOwn } from './readable.ts';
import { renderSingle } from './representations.ts';

type GetContext = Pick<ServerContext, 'cache' | 'clock'>;

/** Responds synchronously if the cache is up to date; otherwise resolves when it has responded. */
export function get(
  context: GetContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
): Promise<void> | undefined {
  const form = negotiate(exchange.request.headers.accept, { protobuf: supportsProtobuf(kind) });
  const requested = info.query === undefined ? undefined : parseRevision(info.query.get('resourceVersion'));
  const waiting =
    requested === undefined
      ? context.cache.freshen()
      : requested > context.cache.revision
        ? context.cache.waitFor(requested)
        : undefined;
  if (waiting === undefined) return answer(context, exchange, kind, info, form);
  return waiting.then(() => answer(context, exchange, kind, info, form));
}

function answer(
  context: GetContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
  form: AnswerForm,
): Promise<void> | undefined {
  const object = kind.cache?.get(info.namespace, info.name);
  if (object === undefined) throw errors.notFound(kind, info.name);
  requireOwn(kind, exchange.user, object, info.name);
  const now = inServedVersion(kind, object);
  if (now instanceof Promise) return now.then((each) => sendObject(context, exchange, { kind, object: each, form }));
  sendObject(context, exchange, { kind, object: now, form });
  return undefined;
}

export interface ObjectAnswer {
  readonly kind: ServedKind;
  readonly object: CachedObject;
  readonly form: AnswerForm;
  /** HTTP status. Default: 200. */
  readonly code?: number;
}

export function sendObject(
  context: GetContext,
  exchange: Exchange,
  { kind, object, form, code = 200 }: ObjectAnswer,
): void {
  const { query } = exchange.info;
  if (exchange.audit?.logsResponses === true && form.format === 'protobuf') exchange.audit.answered(object.bytes);
  const bytes = renderSingle(kind, object, form, query, context.clock.nowMs());
  if (form.format === 'protobuf') exchange.sendBytes(code, bytes, PROTOBUF);
  else if (form.format === 'yaml') {
    exchange.sendBytes(code, Buffer.from(stringify(parseJson(bytes.toString('utf8')))), 'application/yaml');
  } else if (exchange.indents !== undefined) {
    exchange.sendBytes(code, Buffer.from(`${JSON.stringify(parseJson(bytes.toString('utf8')), null, 2)}\n`));
  } else {
    exchange.sendBytes(code, bytes);
  }
}
