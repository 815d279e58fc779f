/**
 * API Priority and Fairness as a state machine: its inputs are requests and time, its outputs the requests that may
 * execute. `turns.ts` explains how the single server thread is divided among the priority levels.
 *
 * Source: KEP-1040; k8s.io/apiserver/pkg/util/flowcontrol.
 */

import { CATCH_ALL, EXEMPT, mandatoryLevels, mandatorySchemas } from '../../../api/flow-control/defaults.ts';
import type { FlowSchema, PriorityLevelConfiguration } from '../../../api/generated/flowcontrol/v1.ts';
import { BoundedMap } from '../../../base/bounded-map.ts';
import { type AllocationClass, allocate } from './allocation.ts';
import { FlowCounters } from './counters.ts';
import { FlowRequest } from './flow-queue.ts';
import { byPrecedence, matchesRules, type OwnRules, rulesFor } from './matching.ts';
import { isValidLevel, PriorityLevel, sharesOf } from './priority-level.ts';
import { dealHand, flowHash } from './shuffle-sharding.ts';
import { Turns } from './turns.ts';
import type { RejectReason, Requester, RequestTarget, WorkEstimate } from './types.ts';

const MAX_HANDS = 4096;

/** State of one flow schema. Replaced when the configuration changes. */
export interface Flows<T> {
  readonly schema: FlowSchema;
  readonly name: string;
  readonly uid: string;
  readonly level: PriorityLevel<T>;
  readonly counters: FlowCounters;
  readonly hands: BoundedMap<string, readonly number[]>;
}

interface Candidate<T> {
  readonly rules: OwnRules;
  readonly flows: Flows<T>;
}

export interface SchemaState {
  readonly name: string;
  readonly level: string;
  readonly dangling: boolean;
}

const NO_HAND: readonly number[] = [0];

export class FlowControl<T> {
  readonly #serverLimit: number;
  readonly #levels = new Map<string, PriorityLevel<T>>();
  #flows: Flows<T>[] = [];
  /** Schemas that may match a requester, cached until the configuration changes. */
  #candidates = new WeakMap<Requester, readonly Candidate<T>[]>();
  #nominalSum = 0;
  #fairFraction = 0;
  readonly #turns = new Turns();
  #ended: FlowRequest<T>[] = [];
  #pressed = false;

  /** `serverLimit`: total number of seats of the server. */
  constructor(serverLimit: number, nowMs: number) {
    this.#serverLimit = serverLimit;
    this.configure([], [], nowMs);
  }

  levels(): Iterable<PriorityLevel<T>> {
    return this.#levels.values();
  }

  *counters(): Iterable<FlowCounters> {
    for (const { counters } of this.#levels.values()) yield* counters.values();
  }

  /** Fraction of its target seats that every level gets, unless a bound applies. */
  get fairFraction(): number {
    return this.#fairFraction;
  }

  /** Replaces the whole configuration. Returns for every schema whether its priority level exists. */
  configure(
    levels: readonly PriorityLevelConfiguration[],
    schemas: readonly FlowSchema[],
    nowMs: number,
  ): SchemaState[] {
    const wanted = new Map<string, PriorityLevelConfiguration>();
    for (const each of [...mandatoryLevels, ...levels.filter(isValidLevel)])
      wanted.set(each.metadata?.name ?? '', each);
    const added = new Set<PriorityLevel<T>>();
    for (const [name, configuration] of wanted) {
      const level = this.#levels.get(name);
      if (level !== undefined) {
        level.configure(configuration);
        continue;
      }
      const fresh = new PriorityLevel<T>(configuration, nowMs);
      this.#levels.set(name, fresh);
      added.add(fresh);
    }
    for (const [name, level] of this.#levels) if (!wanted.has(name)) level.quiescing = true;
    const states = schemas.map((schema) => {
      const level = schema.spec?.priorityLevelConfiguration.name ?? '';
      const found = wanted.has(level) && levels.some(({ metadata }) => metadata?.name === level);
      return { name: schema.metadata?.name ?? '', level, dangling: !found };
    });
    this.#order(schemas.filter((schema) => wanted.has(schema.spec?.priorityLevelConfiguration.name ?? '')));
    this.#shareOut(added, nowMs);
    return states;
  }

  #order(schemas: readonly FlowSchema[]): void {
    const sorted = [...schemas].sort(byPrecedence);
    const named = (name: string): boolean => sorted.some(({ metadata }) => metadata?.name === name);
    const [exempt, catchAll] = mandatorySchemas;
    if (exempt !== undefined && !named(EXEMPT)) sorted.unshift(exempt);
    if (catchAll !== undefined && !named(CATCH_ALL)) sorted.push(catchAll);
    this.#flows = sorted.flatMap((schema) => {
      const level = this.#levels.get(schema.spec?.priorityLevelConfiguration.name ?? '');
      const { name = '', uid = '' } = schema.metadata ?? {};
      if (level === undefined) return [];
      let counters = level.counters.get(name);
      if (counters === undefined) {
        counters = new FlowCounters(level.name, name);
        level.counters.set(name, counters);
      }
      return [{ schema, name, uid, level, counters, hands: new BoundedMap(MAX_HANDS) }];
    });
    this.#candidates = new WeakMap();
  }

  #shareOut(added: ReadonlySet<PriorityLevel<T>>, nowMs: number): void {
    for (const [name, level] of this.#levels) {
      if (level.quiescing && level.queues.idle) this.#levels.delete(name);
    }
    let sum = 0;
    for (const level of this.#levels.values()) sum += sharesOf(level.configuration).shares;
    this.#nominalSum = 0;
    for (const level of this.#levels.values()) {
      level.share(this.#serverLimit, sum, added.has(level));
      this.#nominalSum += level.limits.nominal;
    }
    this.#borrow(nowMs);
  }

  /**
   * Adjusts the limits of the levels: levels with low demand lend seats to levels with high demand. Call it every ten
   * seconds.
   */
  adjust(nowMs: number): void {
    if ([...this.#levels.values()].some((level) => level.quiescing && level.queues.idle)) {
      this.#shareOut(new Set(), nowMs);
    } else this.#borrow(nowMs);
  }

  #borrow(nowMs: number): void {
    const levels = [...this.#levels.values()];
    const classes = levels.map(({ limits, queues }): AllocationClass => {
      const { highWatermark, smoothed } = queues.demand.settle(nowMs);
      const lower = Math.max(limits.min, Math.min(limits.nominal, highWatermark));
      return { lower, upper: limits.max, target: Math.max(lower, smoothed) };
    });
    const allocation = allocate(this.#nominalSum, classes);
    if (allocation === undefined) return;
    this.#fairFraction = allocation.proportion;
    for (const [index, level] of levels.entries()) {
      level.target = classes[index]?.target ?? 0;
      level.queues.limit = Math.round(allocation.shares[index] ?? 0);
    }
  }

  /** The flow schema of a request. Every request has one, at least the catch-all schema. */
  classify(requester: Requester, target: RequestTarget): Flows<T> {
    let candidates = this.#candidates.get(requester);
    if (candidates === undefined) {
      candidates = this.#flows.flatMap((flows) => {
        const rules = rulesFor(flows.schema, requester);
        return rules.length === 0 ? [] : [{ rules, flows }];
      });
      this.#candidates.set(requester, candidates);
    }
    for (const candidate of candidates) if (matchesRules(candidate.rules, target)) return candidate.flows;
    // The catch-all schema matches by group, so a requester without any group matches no schema.
    const fallback = this.#flows.find(({ name }) => name === CATCH_ALL) ?? this.#flows.at(-1);
    if (fallback === undefined) throw new Error('flow control has no catch-all schema');
    return fallback;
  }

  /**
   * Adds a request. Returns the reason if the request is rejected. Otherwise its `state` is 'executing', and the caller
   * must call `finish`; or 'waiting' until `dispatch` returns it, and the caller may withdraw it with `cancel`.
   */
  arrive(
    owner: T,
    flows: Flows<T>,
    distinguisher: string,
    work: WorkEstimate,
    nowMs: number,
  ): FlowRequest<T> | RejectReason {
    const { level, counters } = flows;
    const { queues } = level;
    const request = new FlowRequest(owner, level, counters, distinguisher, work, nowMs);
    const hand = queues.queuing.type === 'queue' ? this.#handOf(flows, distinguisher) : NO_HAND;
    if (queues.waiting === 0 && queues.fits(request.seats) && this.#turns.allows(level, this.#nominalSum, nowMs)) {
      queues.execute(request, hand, nowMs);
      this.#turns.note(level, request.seats);
      return request;
    }
    const reason = queues.enqueue(request, hand, nowMs);
    if (reason === undefined) return request;
    counters.rejected[reason] += 1;
    return reason;
  }

  #handOf(flows: Flows<T>, distinguisher: string): readonly number[] {
    let hand = flows.hands.get(distinguisher);
    if (hand === undefined) {
      const { queuing } = flows.level.queues;
      if (queuing.type !== 'queue') return NO_HAND;
      hand = dealHand(flowHash(flows.name, distinguisher), queuing.queues, queuing.handSize);
      flows.hands.set(distinguisher, hand);
    }
    return hand;
  }

  /** Call when a request was answered or a watch has started. Its seats are freed at the end of the turn. */
  finish(request: FlowRequest<T>, nowMs: number): void {
    if (request.state !== 'executing') return;
    request.state = 'finished';
    request.finishedMs = nowMs;
    this.#ended.push(request);
  }

  /** Call when the client of a waiting request has disconnected. */
  cancel(request: FlowRequest<T>, nowMs: number): void {
    if (request.state === 'waiting') request.level.queues.reject(request, 'cancelled', nowMs);
  }

  /** Rejects requests that have been waiting since `beforeMs` or longer. */
  expire(beforeMs: number, nowMs: number): FlowRequest<T>[] {
    const expired: FlowRequest<T>[] = [];
    for (const { queues } of this.#levels.values()) {
      for (const request of queues.waitingSince(beforeMs)) {
        queues.reject(request, 'time-out', nowMs);
        expired.push(request);
      }
    }
    return expired;
  }

  /** Arrival time of the longest waiting request. Undefined if no request waits. */
  get oldestMs(): number | undefined {
    let oldest = Number.POSITIVE_INFINITY;
    for (const { queues } of this.#levels.values()) if (queues.waiting > 0) oldest = Math.min(oldest, queues.oldestMs);
    return oldest === Number.POSITIVE_INFINITY ? undefined : oldest;
  }

  /**
   * Ends the turn and frees the seats of its finished requests. Returns the requests that must be passed to `release`
   * after their additional latency.
   */
  endTurn(nowMs: number): readonly FlowRequest<T>[] {
    this.#turns.end();
    const ended = this.#ended;
    if (ended.length === 0) return [];
    this.#ended = [];
    const lingering: FlowRequest<T>[] = [];
    for (const request of ended) if (!request.level.queues.finish(request, nowMs)) lingering.push(request);
    return lingering;
  }

  release(request: FlowRequest<T>, nowMs: number): void {
    if (request.state === 'lingering') request.level.queues.release(request, nowMs);
  }

  /**
   * The next waiting request that may execute in this turn. Levels that have used the smallest part of their seats in
   * this turn come first.
   */
  dispatch(nowMs: number): FlowRequest<T> | undefined {
    this.#pressed = false;
    // Levels whose next request needs more seats than are free.
    let passed: Set<PriorityLevel<T>> | undefined;
    for (;;) {
      const level = this.#leastServed(passed, nowMs);
      if (level === undefined) return undefined;
      const request = level.queues.dispatch(nowMs);
      if (request !== undefined) {
        this.#turns.note(level, request.seats);
        return request;
      }
      passed ??= new Set();
      passed.add(level);
    }
  }

  #leastServed(passed: ReadonlySet<PriorityLevel<T>> | undefined, nowMs: number): PriorityLevel<T> | undefined {
    let best: PriorityLevel<T> | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const level of this.#levels.values()) {
      if (!level.queues.dispatchable || passed?.has(level) === true) continue;
      if (!this.#turns.allows(level, this.#nominalSum, nowMs)) {
        this.#pressed = true;
        continue;
      }
      const had = this.#turns.had(level);
      if (had < least) {
        least = had;
        best = level;
      }
    }
    return best;
  }

  /** True if the last `dispatch` skipped a level only because the level has used its share of the turn. */
  get pressed(): boolean {
    return this.#pressed;
  }
}
