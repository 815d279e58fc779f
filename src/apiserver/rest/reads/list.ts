/** LIST: joins the bytes of cached objects. */
import { setImmediate as pause } from 'node:timers/promises';
import { stringify } from 'yaml';
import type { JsonObject } from '../../../api/meta/object.ts';
import { ApiError } from '../../../api/meta/status.ts';
import { parseJson } from '../../../base/json/json.ts';
import { isEverything } from '../../../base/selector.ts';
import type { Exchange } from '../../http/exchange.ts';
import { type AnswerForm, negotiateList } from '../../http/negotiate.ts';
import { listParts } from '../../http/protobuf/encode.ts';
import { PROTOBUF } from '../../http/protobuf/field-table.ts';
import type { ResourceRequestInfo } from '../../http/request-info.ts';
import { streamBody, streamSource } from '../../http/stream-body.ts';
import type { ServedKind } from '../../pipeline/kinds.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import type { KindCache } from '../../watch-cache/kind-cache.ts';
import type { ReadContext } from '../context.ts';
import { joined, ListSource, listItems } from './list-items.ts';
import { parseListOptions } from './list-options.ts';
import { messageOf, partialMessageOf, supportsProtobuf } from './messages.ts';
import { visibleOptions } from './readable.ts';
import { columnDefinitions, includeObjectOf, partialObject, table, tableRow } from './representations.ts';
import { type Snapshot, snapshotNow, takeSnapshot } from './snapshot.ts';
import { WholeLists } from './whole-lists.ts';

/**
 * Maximum size of lists that need a second pass over the text, such as YAML or indented JSON. Larger lists are
 * rejected, because the pass would block the event loop.
 */
const MAX_REWRITTEN = 2 * 1024 * 1024;
/**
 * Lists larger than this size are produced while they are sent. The size must exceed MAX_REWRITTEN and the limit of
 * audited bodies.
 */
const LONG = 4 * 1024 * 1024;
const TAIL = Buffer.from(']}\n');
const RENDER_BATCH = 200;
/** Maximum number of objects to match against a selector without a pause. */
const SELECTED_AT_ONCE = 2000;

const wholeLists = new WeakMap<object, WholeLists>();

function listsOf(context: ReadContext): WholeLists {
  let lists = wholeLists.get(context);
  if (lists === undefined) {
    lists = new WholeLists();
    wholeLists.set(context, lists);
  }
  return lists;
}

export function serveList(
  context: ReadContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
): Promise<void> | undefined {
  const { cache } = kind;
  if (cache === undefined)
    throw new ApiError('MethodNotAllowed', 'the server does not allow this method on the requested resource');
  const form = negotiateList(exchange.request.headers.accept, { protobuf: supportsProtobuf(kind) });
  if (form.as === 'PartialObjectMetadata')
    throw new ApiError('NotAcceptable', `you requested ${form.as}, but the requested object is a list`);
  const options = visibleOptions(context, kind, exchange, parseListOptions(kind, info.query));
  const namespace = info.namespace === '' ? undefined : info.namespace;
  if (
    kind.view === undefined &&
    options.continueToken === undefined &&
    options.resourceVersion === undefined &&
    context.cache.ready &&
    (isEverything(options.labels) || cache.size <= SELECTED_AT_ONCE)
  ) {
    // Fast path for the most common lists: all current objects, or all that match a label selector.
    const waiting = context.cache.freshen();
    if (waiting === undefined) {
      const snapshot = snapshotNow(context, kind, cache, namespace, options);
      return send(context, exchange, { kind, cache, namespace, form, snapshot });
    }
  }
  return takeSnapshot(context, kind, cache, namespace, options).then((snapshot) =>
    send(context, exchange, { kind, cache, namespace, form, snapshot }),
  );
}

export function listMeta(snapshot: Pick<Snapshot, 'revision' | 'continueToken' | 'remaining'>): string {
  let text = `{"resourceVersion":"${snapshot.revision}"`;
  if (snapshot.continueToken !== undefined) text += `,"continue":${JSON.stringify(snapshot.continueToken)}`;
  if (snapshot.remaining !== undefined) text += `,"remainingItemCount":${snapshot.remaining}`;
  return `${text}}`;
}

/** Sends a list of computed objects. */
export async function sendComputed(
  context: ReadContext,
  exchange: Exchange,
  kind: ServedKind,
  form: AnswerForm,
  objects: readonly CachedObject[],
): Promise<void> {
  const { revision } = context.cache;
  const snapshot = { revision, objects, continueToken: undefined, remaining: undefined, whole: false };
  await send(context, exchange, { kind, cache: undefined, namespace: undefined, form, snapshot });
}

interface ListAnswer {
  readonly kind: ServedKind;
  /** Cache of the objects. Undefined if the objects are not stored. */
  readonly cache: KindCache | undefined;
  readonly namespace: string | undefined;
  readonly form: AnswerForm;
  readonly snapshot: Snapshot;
}

function send(
  context: ReadContext,
  exchange: Exchange,
  { kind, cache, namespace, form, snapshot }: ListAnswer,
): Promise<void> | undefined {
  const meta = listMeta(snapshot);
  if (form.format === 'protobuf') return sendMessages(exchange, kind, form, snapshot, meta);
  if (form.as === 'Table') {
    const rowForm = { form, include: includeObjectOf(exchange.info.query), nowMs: context.clock.nowMs() };
    return eachOf(snapshot.objects, (object) => tableRow(kind, object, rowForm)).then((rows) =>
      sendWhole(exchange, form, Buffer.from(`${table(form, meta, columnDefinitions(kind.presented), rows)}\n`)),
    );
  }
  if (form.as === 'PartialObjectMetadataList') {
    const head = Buffer.from(
      `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/${form.version}","metadata":${meta},"items":[`,
    );
    return eachOf(snapshot.objects, (object) => partialObject(object, form)).then((items) =>
      sendWhole(exchange, form, Buffer.concat([head, ...joined(items), TAIL])),
    );
  }
  if (form.as !== 'object') throw new ApiError('NotAcceptable', `${form.as} is not a form of a list`);
  const head = Buffer.from(
    `{"kind":"${kind.presented.listKind}","apiVersion":"${kind.apiVersion}","metadata":${meta},"items":[`,
  );
  if (cache !== undefined && snapshot.whole && kind.alias === undefined && kind.view === undefined) {
    const items = listsOf(context).items(kind, cache, namespace, snapshot);
    if (items !== undefined) return sendParts(exchange, form, [head, items, TAIL]);
  }
  if (isLong(snapshot.objects)) return sendLong(exchange, kind, form, head, snapshot.objects);
  return sendParts(exchange, form, [head, ...listItems(kind, snapshot.objects), TAIL]);
}

/** Sends a body that is complete in memory. */
function sendWhole(exchange: Exchange, form: AnswerForm, json: Buffer): Promise<void> | undefined {
  if (form.format === 'yaml') return sendParts(exchange, form, [json]);
  exchange.sendBytes(200, json);
  return undefined;
}

async function sendMessages(
  exchange: Exchange,
  kind: ServedKind,
  form: AnswerForm,
  snapshot: Snapshot,
  meta: string,
): Promise<void> {
  const whole = form.as === 'object';
  const items = await eachOf(snapshot.objects, (object) =>
    whole ? messageOf(kind, object) : partialMessageOf(object),
  );
  const [apiVersion, listKind] = whole
    ? [kind.apiVersion, kind.presented.listKind]
    : [`meta.k8s.io/${form.version}`, 'PartialObjectMetadataList'];
  const parts = [...listParts(apiVersion, listKind, parseJson(meta) as JsonObject, items)];
  let length = 0;
  for (const part of parts) length += part.length;
  return streamBody(exchange, length, parts, PROTOBUF);
}

/** Renders in batches with pauses, so that long lists do not block the event loop. */
async function eachOf<T>(objects: readonly CachedObject[], render: (object: CachedObject) => T): Promise<T[]> {
  const rendered: T[] = [];
  for (const [index, object] of objects.entries()) {
    if (index > 0 && index % RENDER_BATCH === 0) await pause();
    rendered.push(render(object));
  }
  return rendered;
}

function isLong(objects: readonly CachedObject[]): boolean {
  let length = 0;
  for (const { bytes } of objects) length += bytes.length;
  return length > LONG;
}

/** Streams a long list, which would otherwise be in memory as a whole. */
function sendLong(
  exchange: Exchange,
  kind: ServedKind,
  form: AnswerForm,
  head: Buffer,
  objects: readonly CachedObject[],
): Promise<void> {
  if (form.format === 'yaml' || exchange.indents === 'requested') throw tooLong();
  if (exchange.audit?.logsResponses === true) exchange.audit.answeredInParts(Number.POSITIVE_INFINITY, []);
  return streamSource(exchange, new ListSource(kind, objects, head, TAIL));
}

const tooLong = (): ApiError =>
  new ApiError('NotAcceptable', 'the list is too large for this representation; request application/json or use limit');

function sendParts(exchange: Exchange, form: AnswerForm, parts: readonly Buffer[]): Promise<void> | undefined {
  let length = 0;
  for (const part of parts) length += part.length;
  if (exchange.audit?.logsResponses === true) exchange.audit.answeredInParts(length, parts);
  const { indents } = exchange;
  if (form.format === 'yaml' || indents === 'requested' || (indents === 'guessed' && length <= MAX_REWRITTEN)) {
    if (length > MAX_REWRITTEN) throw tooLong();
    const value: unknown = parseJson(Buffer.concat(parts).toString('utf8'));
    if (form.format === 'yaml') exchange.sendBytes(200, Buffer.from(stringify(value)), 'application/yaml');
    else exchange.sendBytes(200, Buffer.from(`${JSON.stringify(value, null, 2)}\n`));
    return undefined;
  }
  return streamBody(exchange, length, parts);
}
