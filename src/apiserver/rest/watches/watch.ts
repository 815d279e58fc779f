/**
 * WATCH: one line of JSON or one protobuf frame per event. Watches of a whole kind share the encoded bytes; for
 * selectors and other forms, events are encoded per watch.
 */

import { ApiError } from '../../../api/meta/status.ts';
import { requiredFieldValue } from '../../../base/selector.ts';
import type { Exchange } from '../../http/exchange.ts';
import { failureOf } from '../../http/failures.ts';
import { type AnswerForm, negotiateStream } from '../../http/negotiate.ts';
import { envelope, watchFrame } from '../../http/protobuf/encode.ts';
import { PROTOBUF } from '../../http/protobuf/field-table.ts';
import { renderObject } from '../../http/render-object.ts';
import type { RequestInfo, ResourceRequestInfo } from '../../http/request-info.ts';
import { writeParts } from '../../http/stream-body.ts';
import { bytesAs, type ServedKind } from '../../pipeline/kinds.ts';
import type { HttpResponse } from '../../port.ts';
import type { ObjectView } from '../../storage/object-view.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import { CacheEvent, type EventBatch, type EventType, frameEvent } from '../../watch-cache/event-window.ts';
import type { KindCache } from '../../watch-cache/kind-cache.ts';
import type { KindSubscriber, SubscriptionScope } from '../../watch-cache/subscribers.ts';
import type { LoopContext, ReadContext, ServerContext } from '../context.ts';
import type { Expansion, PartEvent } from '../part-watches.ts';
import { type ListOptions, matcherOf, parseWatchOptions } from '../reads/list-options.ts';
import { bookmarkMessage, objectEnvelope, partialEnvelope, supportsProtobuf } from '../reads/messages.ts';
import { ReadableObjects, visibleOptions } from '../reads/readable.ts';
import { columnDefinitions, includeObjectOf, partialObject, table, tableRow } from '../reads/representations.ts';
import { takeSnapshot } from '../reads/snapshot.ts';
import { type OpenWatch, openWatches } from './open-watches.ts';
import type { PacedWatch } from './watch-pace.ts';

type WatchContext = ReadContext & LoopContext & Pick<ServerContext, 'config' | 'random'>;

/** Unread bytes after which a client is disconnected. The client can resume the watch. */
const MAX_UNREAD = 8 * 1024 * 1024;
const BOOKMARK_INTERVAL_MS = 60_000;
/**
 * Default of upstream's --min-request-timeout: a watch without a timeout lasts this long or up to twice as long, so
 * that watches do not reconnect at the same time.
 */
const MIN_TIMEOUT_SECONDS = 1800;
/** A last bookmark this long before the end lets the client resume without a new list. */
const LAST_BOOKMARK_MS = 2_000;
const INITIAL_EVENTS_END = '"annotations":{"k8s.io/initial-events-end":"true"},';

/** Supported forms of an event. */
const LINES: ReadonlySet<AnswerForm['as']> = new Set([
  'object',
  'Table',
  'PartialObjectMetadata',
  'PartialObjectMetadataList',
]);
/** Maximum number of deliveries that wait for conversions. */
const MAX_WAITING = 1_000;
/** Content type of framed protobuf streams. */
const STREAM = `${PROTOBUF};stream=watch`;

export function watch(
  context: WatchContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
): Promise<void> {
  const { cache } = kind;
  if (cache === undefined)
    throw new ApiError('MethodNotAllowed', 'the server does not allow this method on the requested resource');
  return watchParts(context, exchange, { kind, info, cache });
}

export interface WatchedParts {
  readonly kind: ServedKind;
  readonly info: ResourceRequestInfo;
  /** Cache of the watched objects or, with `expand`, of the objects that contain them. */
  readonly cache: KindCache;
  readonly expand?: Expansion;
}

export function watchParts(
  context: WatchContext,
  exchange: Exchange,
  { kind, info, cache, expand }: WatchedParts,
): Promise<void> {
  exchange.longRunning = true;
  const form = negotiateStream(exchange.request.headers.accept, { protobuf: supportsProtobuf(kind) });
  const options = visibleOptions(context, kind, exchange, parseWatchOptions(kind, info.query));
  const named = info.name === '' || info.selected ? options : withName(options, info.name);
  return new WatchStream(context, { exchange, kind, cache, info, form, options: named, expand }).run();
}

/**
 * Adds the name of the path to the selector. Throws 'BadRequest' if the selector names another object. Source:
 * k8s.io/apiserver/pkg/endpoints/handlers/get.go.
 */
function withName(options: ListOptions, name: string): ListOptions {
  const { fields } = options;
  if (fields.length > 0 && requiredFieldValue(fields, 'metadata.name') !== name)
    throw new ApiError('BadRequest', "fieldSelector metadata.name doesn't match requested name");
  return { ...options, fields: [...fields, { field: 'metadata.name', operator: '=', value: name }] };
}

interface StreamRequest {
  readonly exchange: Exchange;
  readonly kind: ServedKind;
  readonly cache: KindCache;
  readonly info: ResourceRequestInfo;
  readonly form: AnswerForm;
  readonly options: ListOptions;
  readonly expand: Expansion | undefined;
}

/** State of a watch. Thousands of watches are idle, so it avoids closures and timers where possible. */
class WatchStream implements KindSubscriber, OpenWatch, PacedWatch {
  readonly #context: WatchContext;
  readonly #exchange: Exchange;
  readonly #response: HttpResponse;
  readonly #kind: ServedKind;
  readonly #cache: KindCache;
  readonly #namespace: string | undefined;
  readonly #form: AnswerForm;
  readonly #options: ListOptions;
  readonly #matches: ((object: CachedObject) => boolean) | undefined;
  readonly #shared: boolean;
  /** Objects that the user may see. Set for kinds whose objects are only partly visible to the user. */
  readonly #readable: ReadableObjects | undefined;
  /** For tables: the part of the object that each row includes. */
  readonly #include: ReturnType<typeof includeObjectOf> | undefined;
  /** The part of the kind that this watch subscribes to. */
  readonly scope: SubscriptionScope;
  dueMs = Number.POSITIVE_INFINITY;
  #endMs = Number.POSITIVE_INFINITY;
  readonly #expand: Expansion | undefined;
  #definitionsSent = false;
  #ended = false;
  credits = Number.POSITIVE_INFINITY;
  creditedMs = 0;
  #turn: Promise<void> | undefined;
  #waiting = 0;
  #finish: (() => void) | undefined;

  constructor(context: WatchContext, { exchange, kind, cache, info, form, options, expand }: StreamRequest) {
    this.#context = context;
    this.#expand = expand;
    this.#exchange = exchange;
    this.#response = exchange.response;
    this.#kind = kind;
    this.#cache = cache;
    this.#namespace = info.namespace === '' || !kind.definition.namespaced ? undefined : info.namespace;
    this.#form = form;
    this.#options = options;
    this.#matches = matcherOf(kind, options);
    this.#shared = expand === undefined && this.#matches === undefined && this.#namespace === undefined && this.#plain;
    this.scope = this.#subscriptionScope();
    if (options.visible !== undefined && this.#matches !== undefined)
      this.#readable = new ReadableObjects(context, cache, this.#matches);
    if (!LINES.has(form.as)) throw new ApiError('NotAcceptable', `${form.as} is not a form of a watch`);
    this.#include = form.as === 'Table' ? includeObjectOf(info.query) : undefined;
  }

  get connection(): object {
    return this.#exchange.connection;
  }

  get source(): object {
    return this.#cache;
  }

  get #plain(): boolean {
    return this.#form.as === 'object' && this.#form.format === 'json' && this.#kind.alias === undefined;
  }

  #line(type: EventType, object: CachedObject): Buffer {
    const { as, format, version } = this.#form;
    if (format === 'protobuf') {
      return watchFrame(type, as === 'object' ? objectEnvelope(this.#kind, object) : partialEnvelope(version, object));
    }
    if (as === 'object') return frameEvent(type, bytesAs(this.#kind, object));
    if (this.#include === undefined) return frameEvent(type, partialObject(object, this.#form));
    const row = tableRow(this.#kind, object, {
      form: this.#form,
      include: this.#include,
      nowMs: this.#context.clock.nowMs(),
    });
    const definitions = this.#definitionsSent ? undefined : columnDefinitions(this.#kind.presented);
    this.#definitionsSent = true;
    const meta = `{"resourceVersion":"${object.revision}"}`;
    return frameEvent(type, Buffer.from(table(this.#form, meta, definitions, [row])));
  }

  /** Resolves when the watch has ended. */
  run(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#finish = resolve;
      this.#begin().catch(reject);
    });
  }

  async #begin(): Promise<void> {
    const { resourceVersion, sendInitialEvents } = this.#options;
    // A watch without a version, or with version 0, starts with the current objects unless the client declines them.
    const initial = sendInitialEvents ?? (resourceVersion === undefined || resourceVersion === 0);
    if (initial) await this.#beginWithState();
    else await this.#resume(resourceVersion);
    this.#exchange.begun();
    if (!this.#ended) this.#arm();
  }

  async #beginWithState(): Promise<void> {
    const wanted = this.#options.resourceVersion;
    const snapshot = await takeSnapshot(this.#context, this.#kind, this.#cache, this.#namespace, {
      ...this.#options,
      ...(this.#expand === undefined ? {} : { fields: [] }),
      limit: undefined,
      continueToken: undefined,
      match: wanted === undefined ? undefined : 'NotOlderThan',
    });
    await this.#recordStart();
    this.#head();
    // The initial state may exceed the unread limit, so it is sent at the client's speed.
    await writeParts(this.#response, this.#stateLines(snapshot.objects));
    if (this.#response.destroyed) return this.end();
    if (this.#options.sendInitialEvents === true && this.#options.bookmarks) {
      this.#write(this.#bookmark(snapshot.revision, INITIAL_EVENTS_END));
    }
    // The subscription starts last, so that changes since the snapshot are sent after it. The event window still has
    // them.
    this.#follow(snapshot.revision);
  }

  *#stateLines(objects: readonly CachedObject[]): Generator<Buffer> {
    for (const object of this.#parts(objects)) {
      this.#readable?.transition('ADDED', object);
      yield this.#line('ADDED', object);
    }
  }

  *#parts(objects: readonly CachedObject[]): Generator<CachedObject> {
    if (this.#expand === undefined) return yield* objects;
    for (const whole of objects)
      for (const { object } of this.#expand(whole, undefined, 'ADDED'))
        if (this.#matches?.(object) !== false) yield object;
  }

  async #resume(resourceVersion: number | undefined): Promise<void> {
    if (resourceVersion === undefined || resourceVersion === 0) await this.#context.cache.freshen();
    else if (resourceVersion > this.#context.cache.revision) await this.#context.cache.waitFor(resourceVersion);
    await this.#recordStart();
    const from =
      resourceVersion === undefined || resourceVersion === 0 ? this.#context.cache.revision : resourceVersion;
    this.#readable?.noteAll();
    this.#follow(from);
  }

  /** Waits until the audit event has been written, if the sink requires it. */
  async #recordStart(): Promise<void> {
    const recorded = this.#exchange.audit?.started(200);
    if (recorded !== undefined) await recorded;
  }

  /** As upstream, a version that is too old is reported in the stream after status 200, where clients expect it. */
  #follow(from: number): void {
    try {
      this.#subscribe(from);
      this.#head();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    if (this.#ended) return;
    const { failure } = failureOf(error);
    this.#head();
    const status = failure.toStatus();
    this.#write(
      this.#form.format === 'protobuf'
        ? watchFrame('ERROR', renderObject(PROTOBUF, status).body)
        : Buffer.from(`{"type":"ERROR","object":${JSON.stringify(status)}}\n`),
    );
    this.end();
  }

  #head(): void {
    if (this.#response.headersSent) return;
    this.#response.writeHead(
      200,
      this.#exchange.headers(this.#form.format === 'protobuf' ? STREAM : 'application/json'),
    );
    this.#response.flushHeaders();
    void this.#exchange.audit?.started(200);
  }

  #subscribe(from: number): void {
    this.#cache.subscribe(this, from, this.#context.cache.revision);
    this.#readable?.follow((type, object) => this.#write(this.#line(type, object)));
  }

  #subscriptionScope(): SubscriptionScope {
    const { fields } = this.#options;
    if (this.#expand !== undefined) return { namespace: this.#namespace };
    const ofKind = fields.find(({ field, operator }) => operator === '=' && !field.startsWith('metadata.'));
    // A converted object may have other field values than the stored object, so the field cannot be used.
    const field = ofKind === undefined || this.#kind.view !== undefined ? undefined : ofKind;
    return {
      namespace: this.#namespace,
      name: requiredFieldValue(fields, 'metadata.name'),
      field: field === undefined ? undefined : { name: field.field, value: field.value },
    };
  }

  deliver(batch: EventBatch): void {
    if (this.#ended) return;
    this.#head();
    const { view } = this.#kind;
    if (view !== undefined) {
      this.#inTurn(async () => this.#send(await this.#viewedLines(view, batch)));
      return;
    }
    if (this.#shared) {
      this.#write(batch.joined);
      return;
    }
    const lines: Buffer[] = [];
    for (const event of this.#eventsOf(batch)) {
      const { object, previous } = event;
      if (this.#namespace !== undefined && object.namespace !== this.#namespace) continue;
      const type = this.#seen(event.type, object, previous);
      if (type === undefined) continue;
      if (type === event.type && this.#plain && event instanceof CacheEvent) lines.push(event.line);
      // An object that no longer matches is sent as it was when it last matched, with the revision of the change.
      else if (type === 'DELETED' && event.type === 'MODIFIED' && previous !== undefined) {
        lines.push(this.#line('DELETED', previous.atRevision(event.revision)));
      } else lines.push(this.#line(type, object));
    }
    this.#send(lines);
  }

  #eventsOf({ events }: EventBatch): readonly (CacheEvent | PartEvent)[] {
    const expand = this.#expand;
    if (expand === undefined) return events;
    return events
      .filter(({ object }) => this.#namespace === undefined || object.namespace === this.#namespace)
      .flatMap(({ type, object, previous }) => expand(object, previous, type));
  }

  #seen(type: EventType, object: CachedObject, previous: CachedObject | undefined): EventType | undefined {
    if (this.#readable !== undefined) return this.#readable.transition(type, object);
    return this.#matches === undefined ? type : transition(type, object, previous, this.#matches);
  }

  reset(): void {
    this.end();
  }

  #send(lines: readonly Buffer[]): void {
    if (lines.length > 0) this.#write(lines.length === 1 && lines[0] !== undefined ? lines[0] : Buffer.concat(lines));
  }

  /** Runs work that may have to wait for a conversion, in the order of the events. */
  #inTurn(work: () => Promise<void>): void {
    this.#waiting += 1;
    if (this.#waiting > MAX_WAITING) {
      this.end();
      return;
    }
    this.#turn = (this.#turn ?? Promise.resolve())
      .then(work)
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#waiting -= 1;
      });
  }

  async #viewedLines(view: ObjectView, batch: EventBatch): Promise<Buffer[]> {
    const lines: Buffer[] = [];
    for (const event of batch.events) {
      if (this.#namespace !== undefined && event.object.namespace !== this.#namespace) continue;
      const object = await view.of(event.object);
      const matches = this.#matches;
      const previous =
        matches === undefined || event.previous === undefined ? undefined : await view.of(event.previous);
      const type = matches === undefined ? event.type : transition(event.type, object, previous, matches);
      if (type === undefined) continue;
      const left = type === 'DELETED' && event.type === 'MODIFIED' && previous !== undefined;
      lines.push(this.#line(type, left ? previous.atRevision(event.revision) : object));
    }
    return lines;
  }

  #bookmark(revision: number, annotations = ''): Buffer {
    if (this.#form.format === 'protobuf') return this.#bookmarkFrame(revision, annotations !== '');
    const { apiVersion, kind } = this.#plain
      ? this.#kind
      : this.#form.as === 'object'
        ? this.#kind
        : {
            apiVersion: `meta.k8s.io/${this.#form.version}`,
            kind: this.#form.as === 'Table' ? 'Table' : 'PartialObjectMetadata',
          };
    const rest = kind === 'Table' ? ',"columnDefinitions":null,"rows":[]' : '';
    const metadata = `{${annotations}"resourceVersion":"${revision}"}`;
    const object = `{"kind":"${kind}","apiVersion":"${apiVersion}","metadata":${metadata}${rest}}`;
    return Buffer.from(`{"type":"BOOKMARK","object":${object}}\n`);
  }

  #bookmarkFrame(revision: number, initialEventsEnd: boolean): Buffer {
    const partial = this.#form.as !== 'object';
    const message = bookmarkMessage(this.#kind, partial, {
      resourceVersion: String(revision),
      ...(initialEventsEnd ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}),
    });
    const [apiVersion, kind] = partial
      ? [`meta.k8s.io/${this.#form.version}`, 'PartialObjectMetadata']
      : [this.#kind.apiVersion, this.#kind.kind];
    return watchFrame('BOOKMARK', envelope(apiVersion, kind, message));
  }

  #write(line: Buffer): void {
    if (!this.#ended && line.length > 0) openWatches(this.#context).pace.write(this, line);
  }

  put(lines: Buffer): void {
    if (this.#response.destroyed) return;
    if (this.#response.writableLength > MAX_UNREAD) {
      this.#context.log.v(2, 'watch closed: the client is too slow', {
        path: this.#exchange.info.path,
        user: this.#exchange.user.name,
      });
      this.end();
      this.#response.destroy();
      return;
    }
    this.#response.write(lines);
  }

  /** Schedules the end and the bookmarks of a running watch. */
  #arm(): void {
    const { clock, random, stopping, config } = this.#context;
    if (stopping.aborted) {
      this.end();
      return;
    }
    const seconds =
      this.#options.timeoutSeconds ?? (config.minWatchSeconds ?? MIN_TIMEOUT_SECONDS) * (1 + random.random());
    const nowMs = clock.monotonicMs();
    this.#endMs = nowMs + seconds * 1000;
    this.#plan(nowMs);
    openWatches(this.#context).add(this);
    this.#response.on('close', () => this.end());
    if (this.#response.destroyed) this.end();
  }

  #plan(nowMs: number): void {
    this.dueMs = this.#endMs;
    if (!this.#options.bookmarks) return;
    const lastMs = this.#endMs - LAST_BOOKMARK_MS;
    if (nowMs < lastMs) this.dueMs = Math.min(lastMs, nowMs + BOOKMARK_INTERVAL_MS);
  }

  get info(): RequestInfo {
    return this.#exchange.info;
  }

  act(nowMs: number): void {
    if (nowMs >= this.#endMs) {
      this.end();
      return;
    }
    this.#plan(nowMs);
    const line = this.#bookmark(this.#context.cache.revision);
    if (this.#kind.view === undefined) this.#write(line);
    else this.#inTurn(async () => this.#write(line));
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#cache.unsubscribe(this);
    this.#readable?.end();
    const watches = openWatches(this.#context);
    watches.remove(this);
    watches.pace.finish(this);
    this.#response.end();
    this.#finish?.();
  }
}

/** Event type for a watch with selectors. Undefined: no event. */
function transition(
  type: EventType,
  object: CachedObject,
  previous: CachedObject | undefined,
  matches: (object: CachedObject) => boolean,
): EventType | undefined {
  const before = previous !== undefined && matches(previous);
  if (type === 'DELETED') return before ? 'DELETED' : undefined;
  const now = matches(object);
  if (now) return before ? 'MODIFIED' : 'ADDED';
  return before ? 'DELETED' : undefined;
}
