import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { StreamCall } from '../../wire/grpc/port.ts';
import type { WatchCreateRequest } from '../core/messages/watch.ts';
import type { Change } from '../core/mvcc/machine.ts';
import { intervalOf } from '../core/mvcc/txn-check.ts';
import type { Watchers } from '../core/mvcc/watchers.ts';
import type { Engine } from '../replication/engine.ts';
import type { Encoder } from '../services/encode.ts';

/** The stream of a watch. */
export interface WatchSink {
  /** Sends changes to `watch`, which is synced. */
  deliver(watch: Watch, changes: readonly Change[]): void;
}

export class Watch {
  readonly id: number;
  readonly start: string;
  readonly end: string | undefined;
  readonly single: boolean;
  readonly noPut: boolean;
  readonly noDelete: boolean;
  readonly prevKv: boolean;
  readonly fragment: boolean;
  readonly progressNotify: boolean;
  readonly stream: WatchSink;
  /** First revision that was not sent. */
  next: number;
  upToDate = false;
  open = true;
  /** Whether an event was sent since the last periodic progress report. */
  active = false;

  constructor(stream: WatchSink, id: number, request: WatchCreateRequest, next: number) {
    const key = request.key === '' ? '\0' : request.key;
    const interval = intervalOf(key, request.end);
    this.stream = stream;
    this.id = id;
    this.start = interval.start;
    this.end = interval.end;
    this.single = request.end === '';
    this.noPut = request.noPut;
    this.noDelete = request.noDelete;
    this.prevKv = request.prevKv;
    this.fragment = request.fragment;
    this.progressNotify = request.progressNotify;
    this.next = next;
  }
}

export interface WatchServiceDeps {
  readonly engine: Engine;
  readonly encoder: Encoder;
  readonly clock: Clock;
  readonly log: Log;
  readonly progressIntervalMs: number;
  readonly fragmentBytes?: number;
  /** Runs a callback after the responses of this event loop turn were sent. */
  readonly defer: (run: () => void) => void;
  /** Reason why the caller may not watch a range. Undefined when it may. */
  readonly refusal: (call: StreamCall, key: string, end: string) => string | undefined;
}

/** State shared by the streams of the watch service. */
export interface WatchHub {
  readonly deps: WatchServiceDeps;
  /** Synced watches. */
  readonly upToDate: Watchers<Watch>;
  /** Number of events sent since the start. */
  eventCount: number;
  /**
   * Delivers changes that were held back. Must run before any progress report, after which no earlier change may
   * follow.
   */
  deliverHeld(): void;
  /** Call when the number of watches has changed. */
  counted(difference: number): void;
}
