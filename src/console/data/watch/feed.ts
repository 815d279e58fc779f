/**
 * A live copy of a collection: a list followed by a watch that resumes after interruptions. The copy stays visible
 * while the connection is down; a new list replaces it in one step, so the page does not flicker. Objects are stored by
 * `namespace/name` and not by UID, so the collection limits the memory.
 *
 * The feed ends its stream and resumes from the last resource version when the server ends the stream, when nothing
 * arrives for `STALL_MS` (bookmarks arrive every minute), and when the wall clock jumps, which means that the computer
 * slept. If the server no longer has the version (410) or does not have it yet (a restored store), the feed starts with
 * a new list.
 *
 * Over HTTP/1.1 a browser opens few connections to a server, and each watch occupies one. A feed that gets none of the
 * permitted streams lists the collection every `POLL_MS` instead.
 */
import { type KubeObject, objectKey } from '../../../api/meta/object.ts';
import { ApiError, isApiError, type Status } from '../../../api/meta/status.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Clock, RandomSource, Timer } from '../../../base/time/clock.ts';
import { Backoff } from '../../../client/backoff.ts';
import { query } from '../../../client/resource-path.ts';
import type { Api } from '../api/api.ts';
import type { FrameBatcher } from './frames.ts';
import { LineSplitter } from './lines.ts';
import type { StreamLimit } from './stream-limit.ts';
import { trimMetadata } from './trim.ts';

export interface FeedSource<T> {
  readonly path: string;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** Media type of the request. Default: JSON objects. */
  readonly accept?: string;
  /** Converts a page of the list. By default, its `items` are used. */
  readonly itemsOf?: (list: unknown) => readonly T[];
  /** Converts the object of an event. By default, the object itself is used. */
  readonly itemOf?: (object: unknown) => T | undefined;
  readonly keyOf?: (item: T) => string;
}

/**
 * `loading`: no list yet. `live`: the watch is open, or the last periodic list succeeded. `stale`: the copy is shown
 * while the feed reconnects.
 */
export type FeedState = 'loading' | 'live' | 'stale' | 'failed' | 'paused';

export interface Snapshot<T> {
  readonly items: readonly T[];
  readonly state: FeedState;
  /** Error of the last attempt; undefined if it succeeded. */
  readonly error: ApiError | undefined;
  /** Number that increases with each change. */
  readonly version: number;
}

export interface FeedContext {
  readonly api: Api;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly frames: FrameBatcher;
  readonly streams: StreamLimit;
}

const PAGE_SIZE = 500;
const MAX_PAGES = 100;
const WATCH_SECONDS = 300;
const POLL_MS = 5_000;
const STALL_MS = 90_000;
const TICK_MS = 10_000;
/** If a tick is late by more than this, the computer has slept. */
const SLEEP_MS = 20_000;
const MAX_EVENT_LENGTH = 16 << 20;
/** A watch that ends earlier does not reset the back-off. */
const SHORT_WATCH_MS = 2_000;

interface ListPage {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly unknown[];
}

interface Event {
  readonly type: string;
  readonly object: { readonly metadata?: { readonly resourceVersion?: string }; readonly code?: number };
}

export class Feed<T = KubeObject> {
  readonly #source: FeedSource<T>;
  readonly #context: FeedContext;
  readonly #listeners = new Set<(snapshot: Snapshot<T>) => void>();
  readonly #notify = (): void => this.#publish();
  readonly #backoff: Backoff;
  #items = new Map<string, T>();
  #array: readonly T[] | undefined = [];
  #state: FeedState = 'loading';
  #error: ApiError | undefined;
  #version = 0;
  #resourceVersion: string | undefined;
  /** Aborts the loop; undefined while the feed does not run. */
  #running: AbortController | undefined;
  /** Aborts the current stream, so that the loop connects again. */
  #stream: AbortController | undefined;
  #wake: (() => void) | undefined;
  #tick: Timer | undefined;
  #lastDataMs = 0;

  constructor(source: FeedSource<T>, context: FeedContext) {
    this.#source = source;
    this.#context = context;
    this.#backoff = new Backoff({ initialMs: 500, maxMs: 30_000, jitter: 0.5 }, context.random);
  }

  snapshot(): Snapshot<T> {
    this.#array ??= [...this.#items.values()];
    return { items: this.#array, state: this.#state, error: this.#error, version: this.#version };
  }

  get(key: string): T | undefined {
    return this.#items.get(key);
  }

  /** Calls `listener` after changes, at most once per frame. Returns a function that ends the subscription. */
  subscribe(listener: (snapshot: Snapshot<T>) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  start(): void {
    if (this.#running !== undefined) return;
    const running = new AbortController();
    this.#running = running;
    if (this.#state === 'paused') this.#set(this.#items.size === 0 ? 'loading' : 'stale', undefined);
    this.#watchClock(this.#context.clock.nowMs());
    void this.#run(running.signal);
  }

  /** Ends the streams and keeps the copy. `start` resumes from the copy's resource version. */
  pause(): void {
    if (this.#running === undefined) return;
    this.stop();
    this.#set('paused', undefined);
  }

  stop(): void {
    this.#running?.abort();
    this.#running = undefined;
    this.#stream?.abort();
    this.#tick?.cancel();
    this.#wake?.();
    this.#context.frames.cancel(this.#notify);
  }

  /** Connects again without delay, when the network is back or the user requests it. */
  reconnect(): void {
    this.#backoff.reset();
    this.#stream?.abort();
    this.#wake?.();
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const stream = new AbortController();
      this.#stream = stream;
      try {
        if (this.#resourceVersion === undefined) await this.#list(stream.signal);
        if (signal.aborted) return;
        if (!this.#context.streams.take()) {
          this.#backoff.reset();
          await this.#wait(POLL_MS);
          this.#resourceVersion = undefined;
          continue;
        }
        const openedMs = this.#context.clock.monotonicMs();
        await this.#watch(stream.signal).finally(() => this.#context.streams.release());
        if (this.#context.clock.monotonicMs() - openedMs >= SHORT_WATCH_MS) {
          this.#backoff.reset();
          continue;
        }
      } catch (error) {
        if (signal.aborted) return;
        if (!stream.signal.aborted) this.#fail(error);
      } finally {
        stream.abort();
      }
      if (!signal.aborted) await this.#pauseBetween();
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { path, labelSelector, fieldSelector, accept, keyOf = keyOfObject<T> } = this.#source;
    const itemsOf = this.#source.itemsOf ?? ((list: unknown) => ((list as ListPage).items ?? []) as readonly T[]);
    const items = new Map<string, T>();
    let token: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const list: ListPage = await this.#context.api.json<ListPage>(
        path + query({ labelSelector, fieldSelector, limit: PAGE_SIZE, continue: token }),
        { signal, ...(accept === undefined ? {} : { accept }) },
      );
      signal.throwIfAborted();
      for (const item of itemsOf(list)) items.set(keyOf(item), trimmed(item));
      token = list.metadata?.continue;
      if (token !== undefined && token !== '') continue;
      this.#items = items;
      this.#resourceVersion = list.metadata?.resourceVersion;
      this.#lastDataMs = this.#context.clock.monotonicMs();
      this.#changed();
      this.#set('live', undefined);
      return;
    }
    throw new ApiError('RequestEntityTooLarge', `${path}: more than ${MAX_PAGES * PAGE_SIZE} objects; use a filter`);
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { api, clock, random } = this.#context;
    const { path, labelSelector, fieldSelector, accept } = this.#source;
    const parameters = {
      watch: 'true',
      labelSelector,
      fieldSelector,
      resourceVersion: this.#resourceVersion,
      allowWatchBookmarks: true,
      timeoutSeconds: WATCH_SECONDS + Math.floor(random.random() * 60),
    };
    const response = await api.open(path + query(parameters), { signal, ...(accept === undefined ? {} : { accept }) });
    this.#set('live', undefined);
    this.#lastDataMs = clock.monotonicMs();
    const lines = new LineSplitter(MAX_EVENT_LENGTH, 'fail');
    const reader = response.body?.getReader();
    if (reader === undefined) return;
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (signal.aborted || done) return;
        this.#lastDataMs = clock.monotonicMs();
        for (const line of lines.push(value)) if (line !== '') this.#apply(eventOf(line));
      }
    } finally {
      reader.cancel().catch(() => undefined);
    }
  }

  #apply({ type, object }: Event): void {
    if (type === 'ERROR') throw ApiError.fromStatus(object as Partial<Status>, object.code ?? 500);
    const version = object.metadata?.resourceVersion;
    if (type !== 'BOOKMARK') {
      const { itemOf = (value: unknown) => value as T, keyOf = keyOfObject<T> } = this.#source;
      const item = itemOf(object);
      if (item === undefined) return;
      const key = keyOf(item);
      if (type === 'DELETED') this.#items.delete(key);
      else this.#items.set(key, trimmed(item));
      this.#changed();
      const own = version ?? (item as KubeObject).metadata?.resourceVersion;
      if (own !== undefined && own !== '') this.#resourceVersion = own;
    } else if (version !== undefined && version !== '') this.#resourceVersion = version;
  }

  #fail(error: unknown): void {
    const failure = error instanceof ApiError ? error : new ApiError('ServiceUnavailable', messageOf(error));
    // An error other than overload, missing rights or a broken connection concerns the version, so the feed lists
    // again.
    const isTransient = ['ServiceUnavailable', 'TooManyRequests', 'Unauthorized', 'Forbidden'].includes(failure.reason);
    if (!isTransient || isApiError(error, 'Expired') || isApiError(error, 'Gone')) this.#resourceVersion = undefined;
    // An expired version is expected after a sleep. The copy stays `stale`, without an error, until the new list
    // arrives.
    const isExpired = failure.httpCode === 410;
    this.#set(this.#version > 0 ? 'stale' : 'failed', isExpired ? undefined : failure);
    if (isExpired && this.#backoffIsFresh) this.#skipPause = true;
  }

  /** The first list after an expired version starts at once. After a second expiry in a row the feed waits. */
  #skipPause = false;
  #backoffIsFresh = true;

  async #pauseBetween(): Promise<void> {
    if (this.#skipPause) {
      this.#skipPause = false;
      this.#backoffIsFresh = false;
      return;
    }
    this.#backoffIsFresh = true;
    await this.#wait(this.#backoff.next());
  }

  /** Waits until the time has passed, or `reconnect` or `stop` ends the wait. */
  async #wait(delayMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.#context.clock.setTimer(delayMs, resolve);
      this.#wake = () => {
        timer.cancel();
        resolve();
      };
    });
    this.#wake = undefined;
  }

  #watchClock(expectedMs: number): void {
    this.#tick = this.#context.clock.setTimer(TICK_MS, () => {
      const { clock } = this.#context;
      const nowMs = clock.nowMs();
      const isAwakened = nowMs - expectedMs > TICK_MS + SLEEP_MS;
      const isStalled = this.#state === 'live' && clock.monotonicMs() - this.#lastDataMs > STALL_MS;
      if (isAwakened || isStalled) {
        if (this.#state === 'live') this.#set('stale', undefined);
        this.reconnect();
      }
      this.#watchClock(nowMs);
    });
  }

  #changed(): void {
    this.#array = undefined;
    this.#version++;
    this.#context.frames.request(this.#notify);
  }

  #set(state: FeedState, error: ApiError | undefined): void {
    if (this.#state === state && this.#error === error) return;
    this.#state = state;
    this.#error = error;
    this.#context.frames.request(this.#notify);
  }

  #publish(): void {
    const snapshot = this.snapshot();
    for (const listener of [...this.#listeners]) listener(snapshot);
  }
}

const keyOfObject = <T>(item: T): string => objectKey(item as KubeObject);

function trimmed<T>(item: T): T {
  trimMetadata(item as KubeObject);
  return item;
}

function eventOf(line: string): Event {
  const parsed: unknown = JSON.parse(line);
  if (typeof parsed === 'object' && parsed !== null && 'type' in parsed && 'object' in parsed) return parsed as Event;
  throw new ApiError('InternalError', 'the watch sent a line that is no event');
}
