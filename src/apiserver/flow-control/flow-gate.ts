/**
 * Connects the priority and fairness algorithm (`src/apiserver/core/flow-control`) to requests. Supplies the clock and
 * the turns of the event loop, resumes or rejects waiting requests, and removes requests whose client has disconnected.
 */
import type { Clock, Timer } from '../../base/time/clock.ts';
import { FlowControl, type FlowRequest } from '../core/flow-control/index.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Kinds } from '../pipeline/kinds.ts';
import { type Gate, isStream, tooManyRequests } from './gate.ts';
import { WatchTracker } from './watch-tracker.ts';
import { WorkEstimator } from './work-estimator.ts';

const ADJUSTMENT_MS = 10_000;
/** A request may wait for a quarter of its deadline. Source: upstream's requestWaitLimit. */
const WAIT_PART = 4;

export interface FlowGateDeps {
  readonly clock: Clock;
  readonly kinds: Kinds;
  readonly seats: number;
  readonly requestTimeoutMs: number;
}

/** Callbacks for requests that have waited. */
export interface Waiters {
  resume(exchange: Exchange): void;
  reject(exchange: Exchange, error: unknown): void;
}

export class FlowGate implements Gate {
  readonly flows: FlowControl<Exchange>;
  readonly #clock: Clock;
  readonly #waitLimitMs: number;
  readonly #watches = new WatchTracker();
  readonly #work: WorkEstimator;
  #waiters: Waiters | undefined;
  #turnEnds = false;
  #newcomers: FlowRequest<Exchange>[] = [];
  #expiry: Timer | undefined;
  #adjustment: Timer | undefined;

  constructor({ clock, kinds, seats, requestTimeoutMs }: FlowGateDeps) {
    this.#clock = clock;
    this.#waitLimitMs = requestTimeoutMs / WAIT_PART;
    this.flows = new FlowControl(seats, clock.monotonicMs());
    this.#work = new WorkEstimator(kinds, this.#watches);
  }

  /** Starts the periodic adjustment of borrowed seats between priority levels. */
  start(waiters: Waiters): void {
    this.#waiters = waiters;
    const adjust = (): void => {
      this.#adjustment = this.#clock.setTimer(ADJUSTMENT_MS, () => {
        this.flows.adjust(this.#clock.monotonicMs());
        this.#endTurnSoon();
        adjust();
      });
    };
    adjust();
  }

  stop(): void {
    this.#adjustment?.cancel();
    this.#expiry?.cancel();
  }

  admit(exchange: Exchange, nowMs: number): boolean {
    const { info, user } = exchange;
    if (isStream(info)) return true;
    const flows = this.flows.classify(user, info);
    exchange.flows = flows;
    const { distinguisherMethod } = flows.schema.spec ?? {};
    let distinguisher = '';
    if (distinguisherMethod?.type === 'ByUser') distinguisher = user.name;
    else if (distinguisherMethod?.type === 'ByNamespace' && info.resource) distinguisher = info.namespace;
    const work = this.#work.estimate(info, flows.level.maxSeats, flows.counters);
    const request = this.flows.arrive(exchange, flows, distinguisher, work, nowMs);
    this.#endTurnSoon();
    if (typeof request === 'string') throw tooManyRequests();
    exchange.flow = request;
    if (request.state === 'executing') {
      this.#begun(exchange);
      return true;
    }
    this.#wait(request);
    return false;
  }

  #begun(exchange: Exchange): void {
    const { info } = exchange;
    if (info.verb !== 'watch' || !info.resource) return;
    exchange.forgetWatch = this.#watches.register(info);
    exchange.initialised = () => this.#leave(exchange, this.#clock.monotonicMs());
  }

  /**
   * Most requests are dispatched at the end of the turn. Only requests that still wait then are watched for a
   * disconnect of their client.
   */
  #wait(request: FlowRequest<Exchange>): void {
    this.#newcomers.push(request);
    if (this.#expiry === undefined) this.#expireLater(this.#waitLimitMs);
  }

  #watchClients(): void {
    const newcomers = this.#newcomers;
    if (newcomers.length === 0) return;
    this.#newcomers = [];
    for (const request of newcomers) {
      if (request.state !== 'waiting') continue;
      const { response } = request.owner;
      if (response.destroyed) this.#cancel(request);
      else response.once('close', () => this.#cancel(request));
    }
  }

  #cancel(request: FlowRequest<Exchange>): void {
    if (request.state !== 'waiting') return;
    this.flows.cancel(request, this.#clock.monotonicMs());
    this.#waiters?.reject(request.owner, tooManyRequests());
  }

  #expireLater(delayMs: number): void {
    this.#expiry = this.#clock.setTimer(delayMs, () => {
      this.#expiry = undefined;
      const nowMs = this.#clock.monotonicMs();
      for (const { owner } of this.flows.expire(nowMs - this.#waitLimitMs, nowMs)) {
        this.#waiters?.reject(owner, tooManyRequests());
      }
      const oldest = this.flows.oldestMs;
      if (oldest !== undefined) this.#expireLater(Math.max(1, oldest + this.#waitLimitMs - nowMs));
    });
  }

  /** Frees the seats of a request: of a watch when it has started, otherwise when the response is complete. */
  #leave(exchange: Exchange, nowMs: number): void {
    const { flow } = exchange;
    if (flow?.state === 'executing') {
      const counters = exchange.info.verb === 'watch' ? flow.counters.watchExecution : flow.counters.execution;
      counters.observe((nowMs - flow.startedMs) / 1000);
      this.flows.finish(flow, nowMs);
      exchange.flow = undefined;
      this.#endTurnSoon();
    }
  }

  leave(exchange: Exchange, nowMs: number): void {
    this.#leave(exchange, nowMs);
    exchange.forgetWatch?.();
  }

  /** Schedules the dispatch once per turn of the event loop, after the input of all connections. */
  #endTurnSoon(): void {
    if (this.#turnEnds) return;
    this.#turnEnds = true;
    setImmediate(this.#endTurn);
  }

  readonly #endTurn = (): void => {
    this.#turnEnds = false;
    let nowMs = this.#clock.monotonicMs();
    this.#linger(this.flows.endTurn(nowMs));
    for (let next = this.flows.dispatch(nowMs); next !== undefined; next = this.flows.dispatch(nowMs)) {
      this.#begun(next.owner);
      this.#waiters?.resume(next.owner);
      nowMs = this.#clock.monotonicMs();
    }
    this.#watchClients();
    if (this.flows.pressed) this.#endTurnSoon();
  };

  #linger(requests: readonly FlowRequest<Exchange>[]): void {
    if (requests.length === 0) return;
    const byLatency = Map.groupBy(requests, ({ additionalLatencyMs }) => additionalLatencyMs);
    for (const [latencyMs, those] of byLatency) {
      this.#clock.setTimer(latencyMs, () => {
        const nowMs = this.#clock.monotonicMs();
        for (const request of those) this.flows.release(request, nowMs);
        this.#endTurnSoon();
      });
    }
  }
}
