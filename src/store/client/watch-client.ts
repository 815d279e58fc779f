/**
 * All watches of a store over one `etcdserverpb.Watch` stream. When the stream breaks, each watch restarts from the
 * revision after the last delivered revision. No event is lost or repeated, because events of one revision arrive
 * together.
 */

import { storeRevision } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { Channel } from '../../wire/grpc/channel.ts';
import type { ClientStream } from '../../wire/grpc/client-calls.ts';
import { Reader, Writer } from '../../wire/protobuf/protobuf.ts';
import { EventType } from '../core/messages/event.ts';
import type { WireKeyValue } from '../core/messages/kv.ts';
import {
  decodeWatchResponse,
  type WatchResponse,
  type WireEvent,
  writeWatchCancel,
  writeWatchCreate,
  writeWatchProgress,
} from '../core/messages/watch.ts';
import {
  type KeyValue,
  type Revision,
  StoreError,
  type StoreWatch,
  type WatchEvent,
  type WatchHandler,
} from '../port.ts';

const RETRY_MS = 100;
const STATUS_TIMEOUT_MS = 5000;

class Watch {
  readonly id: number;
  readonly start: string;
  readonly end: string;
  readonly handler: WatchHandler;
  /** First revision that has not been delivered. */
  next: Revision;
  /** The peer has confirmed the watch on the current stream. */
  created = false;
  progressDue = false;
  /** The progress request in flight covers this watch. */
  progressRequested = false;

  constructor(id: number, start: string, end: string, next: Revision, handler: WatchHandler) {
    this.id = id;
    this.start = start;
    this.end = end;
    this.next = next;
    this.handler = handler;
  }
}

export class WatchClient {
  readonly #channel: Channel;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #watches = new Map<number, Watch>();
  readonly #writer = new Writer(1024);
  #stream: ClientStream | undefined;
  #retry: Timer | undefined;
  #lastId = 0;
  #closed = false;
  #progressUnderWay = false;
  /**
   * Revision of the first of two progress responses, while the second response is awaited. Used for a server whose
   * progress responses may overtake events.
   */
  #unconfirmed: Revision | undefined;
  #confirmTwice = true;
  #served = false;

  constructor(channel: Channel, clock: Clock, log: Log) {
    this.#channel = channel;
    this.#clock = clock;
    this.#log = log;
  }

  watch(start: string, end: string, fromRevision: Revision, handler: WatchHandler): StoreWatch {
    this.#lastId += 1;
    const watch = new Watch(this.#lastId, start, end, fromRevision, handler);
    this.#watches.set(watch.id, watch);
    if (this.#stream === undefined) this.#connect();
    else this.#create(watch);
    return {
      requestProgress: () => {
        if (!this.#watches.has(watch.id)) return;
        watch.progressDue = true;
        this.#requestProgress();
      },
      cancel: () => this.#cancel(watch),
    };
  }

  close(): void {
    this.#closed = true;
    this.#retry?.cancel();
    this.#watches.clear();
    this.#stream?.cancel();
  }

  #connect(): void {
    if (this.#closed || this.#retry !== undefined || this.#stream !== undefined) return;
    this.#progressUnderWay = false;
    this.#unconfirmed = undefined;
    this.#confirmTwice = true;
    this.#served = false;
    const stream = this.#channel.stream('/etcdserverpb.Watch/Watch', {
      message: (message) => this.#receive(message),
      ended: (error) => {
        if (this.#stream !== stream) return;
        this.#stream = undefined;
        this.#log.v(2, 'watch stream ended', { cause: error?.message });
        // The member has stopped, so connect to another member without delay.
        if (this.#served && this.#watches.size > 0) this.#connect();
        else this.#later();
      },
    });
    this.#stream = stream;
    void this.#detectVersion(stream);
    for (const watch of this.#watches.values()) {
      watch.created = false;
      watch.progressDue ||= watch.progressRequested;
      watch.progressRequested = false;
      this.#create(watch);
    }
  }

  #later(): void {
    if (this.#closed || this.#retry !== undefined) return;
    this.#retry = this.#clock.setTimer(RETRY_MS, () => {
      this.#retry = undefined;
      if (this.#watches.size > 0) this.#connect();
    });
  }

  #create(watch: Watch): void {
    const { id, start, end, next } = watch;
    const request = writeWatchCreate(this.#writer.reset(), {
      key: start,
      end: end === `${start}\0` ? '' : end,
      startRevision: next,
      watchId: id,
    });
    this.#stream?.send(request.finish());
  }

  #cancel(watch: Watch): void {
    if (!this.#watches.delete(watch.id)) return;
    this.#stream?.send(writeWatchCancel(this.#writer.reset(), watch.id).finish());
  }

  #receive(message: Buffer): void {
    this.#served = true;
    let response: WatchResponse;
    try {
      response = decodeWatchResponse(message);
    } catch (error) {
      this.#log.error('watch response invalid', { cause: messageOf(error) });
      this.#stream?.cancel();
      this.#stream = undefined;
      this.#later();
      return;
    }
    if (response.watchId < 0) {
      if (!response.created) this.#progressed(storeRevision(response.revision));
      return;
    }
    const watch = this.#watches.get(response.watchId);
    if (watch === undefined) return;
    if (response.canceled) {
      this.#refused(watch, response);
      return;
    }
    if (response.created) {
      watch.created = true;
      // A watch "from now on" must keep its start revision after a reconnection.
      if (watch.next <= 0) watch.next = storeRevision(response.revision + 1);
      if (watch.progressDue) this.#requestProgress();
    }
    const last = response.events.at(-1);
    if (last === undefined) return;
    watch.next = storeRevision(last.kv.modRevision + 1);
    watch.handler.events(response.events.map(watchEvent), storeRevision(last.kv.modRevision));
  }

  #refused(watch: Watch, { compactRevision, cancelReason, created }: WatchResponse): void {
    if (compactRevision > 0) {
      this.#watches.delete(watch.id);
      watch.handler.closed(
        new StoreError('compacted', `history before revision ${compactRevision} has been compacted`),
      );
      return;
    }
    this.#log.warn('watch canceled by the store; retrying', { reason: cancelReason, created });
    watch.created = false;
    this.#clock.setTimer(RETRY_MS, () => {
      if (this.#watches.has(watch.id)) this.#create(watch);
    });
  }

  #requestProgress(): void {
    if (this.#progressUnderWay || this.#stream === undefined) return;
    let any = false;
    for (const watch of this.#watches.values()) {
      if (!watch.progressDue || !watch.created) continue;
      watch.progressDue = false;
      watch.progressRequested = true;
      any = true;
    }
    if (any) this.#sendProgress();
  }

  #sendProgress(): void {
    this.#progressUnderWay = true;
    this.#stream?.send(writeWatchProgress(this.#writer.reset()).finish());
  }

  #progressed(revision: Revision): void {
    this.#progressUnderWay = false;
    if (this.#confirmTwice && this.#unconfirmed === undefined) {
      this.#unconfirmed = revision;
      this.#sendProgress();
      return;
    }
    const confirmed = this.#unconfirmed ?? revision;
    this.#unconfirmed = undefined;
    for (const watch of [...this.#watches.values()]) {
      if (!watch.progressRequested) continue;
      watch.progressRequested = false;
      if (this.#watches.has(watch.id)) watch.handler.progress(confirmed);
    }
    this.#requestProgress();
  }

  /**
   * etcd before 3.4.31 and 3.5.13 may answer a progress request before events that it still has to send. For such
   * versions a second request follows: when its response arrives, the events before the first response have arrived
   * too.
   */
  async #detectVersion(stream: ClientStream): Promise<void> {
    try {
      const answer = await this.#channel.unary('/etcdserverpb.Maintenance/Status', Buffer.alloc(0), STATUS_TIMEOUT_MS);
      if (this.#stream === stream && this.#unconfirmed === undefined) {
        this.#confirmTwice = !progressIsOrdered(statusVersion(answer));
      }
    } catch (error) {
      this.#log.v(4, 'store version unknown', { cause: messageOf(error) });
    }
  }
}

function statusVersion(answer: Buffer): string {
  const reader = new Reader(answer);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 2) return reader.string();
    reader.skip();
  }
  return '';
}

function progressIsOrdered(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map((part) => Number.parseInt(part, 10));
  if (major !== 3) return major > 3;
  if (minor === 4) return patch >= 31;
  return minor > 5 || (minor === 5 && patch >= 13);
}

function watchEvent({ type, kv }: WireEvent): WatchEvent {
  return { type: type === EventType.delete ? 'delete' : 'put', kv: keyValue(kv) };
}

function keyValue(kv: WireKeyValue): KeyValue {
  return {
    key: kv.key,
    value: kv.value,
    createRevision: storeRevision(kv.createRevision),
    modRevision: storeRevision(kv.modRevision),
  };
}
