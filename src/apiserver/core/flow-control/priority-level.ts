/** A priority level: its configuration, limits and queues. Source: KEP-1040, "Dispatching" and "Configuration". */

import { EXEMPT } from '../../../api/flow-control/defaults.ts';
import type { PriorityLevelConfiguration } from '../../../api/generated/flowcontrol/v1.ts';
import type { FlowCounters } from './counters.ts';
import { QueueSet, type Queuing } from './queue-set.ts';

/** Maximum part of a level's seats that one request may occupy. */
const MAX_SEATS_SHARE = 0.15;

export interface Limits {
  readonly nominal: number;
  readonly min: number;
  readonly max: number;
}

interface Totals {
  readonly dispatched: number;
  readonly rejected: number;
  readonly timedOut: number;
  readonly cancelled: number;
}

export class PriorityLevel<T> {
  readonly name: string;
  configuration: PriorityLevelConfiguration;
  readonly queues: QueueSet<T>;
  limits: Limits = { nominal: 0, min: 0, max: 0 };
  /** Target number of seats at the last adjustment. */
  target = 0;
  /** Maximum number of seats of one request. */
  maxSeats = 1;
  /** True if the level is no longer configured. It is removed when it is idle. */
  quiescing = false;
  /** Counters by flow schema. */
  readonly counters = new Map<string, FlowCounters>();
  /** Number of the turn in which `turnSeats` seats were taken. */
  turn = 0;
  turnSeats = 0;

  constructor(configuration: PriorityLevelConfiguration, nowMs: number) {
    this.name = configuration.metadata?.name ?? '';
    this.configuration = configuration;
    this.queues = new QueueSet(queuingOf(configuration), 0, nowMs);
  }

  get exempt(): boolean {
    return this.queues.queuing.type === 'exempt';
  }

  get totals(): Totals {
    const totals = { dispatched: 0, rejected: 0, timedOut: 0, cancelled: 0 };
    for (const { dispatched, rejected } of this.counters.values()) {
      totals.dispatched += dispatched;
      totals.timedOut += rejected['time-out'];
      totals.cancelled += rejected.cancelled;
      for (const count of Object.values(rejected)) totals.rejected += count;
    }
    return totals;
  }

  get uid(): string {
    return this.configuration.metadata?.uid ?? '';
  }

  configure(configuration: PriorityLevelConfiguration): void {
    this.configuration = configuration;
    this.queues.queuing = queuingOf(configuration);
    this.quiescing = false;
  }

  /**
   * Sets the limits from the level's share of the server's seats. `first`: the level is new and starts without half of
   * its lendable seats.
   */
  share(serverLimit: number, shareSum: number, first: boolean): void {
    const { shares, lendablePercent, borrowingLimitPercent } = sharesOf(this.configuration);
    const nominal = shareSum === 0 ? 0 : Math.ceil((serverLimit * shares) / shareSum);
    const lendable = Math.round((nominal * lendablePercent) / 100);
    const borrowing =
      borrowingLimitPercent === undefined ? serverLimit : Math.round((nominal * borrowingLimitPercent) / 100);
    this.limits = { nominal, min: nominal - lendable, max: nominal + borrowing };
    const { queuing } = this.queues;
    if (queuing.type === 'queue') {
      const part = Math.min(Math.ceil(nominal * MAX_SEATS_SHARE), Math.floor(nominal / queuing.handSize));
      this.maxSeats = Math.max(1, part);
    } else this.maxSeats = Number.POSITIVE_INFINITY;
    if (first) this.queues.limit = nominal - Math.floor(lendable / 2);
  }
}

interface Shares {
  readonly shares: number;
  readonly lendablePercent: number;
  /** Seats that the level may borrow, in percent of its nominal seats. Undefined: unlimited. */
  readonly borrowingLimitPercent: number | undefined;
}

export function sharesOf({ spec }: PriorityLevelConfiguration): Shares {
  const { limited, exempt } = spec ?? {};
  return {
    shares: limited?.nominalConcurrencyShares ?? exempt?.nominalConcurrencyShares ?? 0,
    lendablePercent: limited?.lendablePercent ?? exempt?.lendablePercent ?? 0,
    borrowingLimitPercent: limited?.borrowingLimitPercent,
  };
}

function queuingOf({ spec }: PriorityLevelConfiguration): Queuing {
  if (spec?.type === 'Exempt') return { type: 'exempt' };
  const queuing = spec?.limited?.limitResponse?.queuing;
  if (queuing === undefined) return { type: 'reject' };
  const { queues = 1, handSize = 1, queueLengthLimit = 1 } = queuing;
  return { type: 'queue', queues, handSize, queueLengthLimit };
}

/**
 * Reports whether the object can be used: it is complete, and it has the type Exempt if and only if it is named
 * `exempt`.
 */
export function isValidLevel({ metadata, spec }: PriorityLevelConfiguration): boolean {
  if (spec === undefined || (spec.type === 'Exempt') !== (metadata?.name === EXEMPT)) return false;
  if (spec.type === 'Exempt') return spec.exempt !== undefined && spec.limited === undefined;
  const response = spec.limited?.limitResponse;
  return (
    spec.type === 'Limited' &&
    response !== undefined &&
    (response.type === 'Queue') === (response.queuing !== undefined)
  );
}
