/** Priority and fairness metrics. Source: k8s.io/apiserver/pkg/util/flowcontrol/metrics. */
import type { Histogram } from '../../base/metrics/histogram.ts';
import type { FlowControl, FlowCounters, PriorityLevel } from '../core/flow-control/index.ts';

const PREFIX = 'apiserver_flowcontrol_';

function family(lines: string[], name: string, type: 'counter' | 'gauge' | 'histogram', help: string): string {
  lines.push(`# HELP ${PREFIX}${name} ${help}`, `# TYPE ${PREFIX}${name} ${type}`);
  return PREFIX + name;
}

const labelsOf = ({ schema, level }: FlowCounters): string => `flow_schema="${schema}",priority_level="${level}"`;

function buckets(lines: string[], name: string, labels: string, histogram: Histogram): void {
  if (histogram.count === 0) return;
  for (const [le, count] of histogram.cumulative()) lines.push(`${name}_bucket{${labels},le="${le}"} ${count}`);
  lines.push(`${name}_sum{${labels}} ${histogram.sum}`, `${name}_count{${labels}} ${histogram.count}`);
}

type OfFlow = readonly [name: string, type: 'counter' | 'gauge', help: string, (counters: FlowCounters) => number];

const OF_FLOWS: readonly OfFlow[] = [
  [
    'dispatched_requests_total',
    'counter',
    'Number of requests executed by API Priority and Fairness subsystem',
    (flow) => flow.dispatched,
  ],
  [
    'current_inqueue_requests',
    'gauge',
    'Number of requests currently pending in queues of the API Priority and Fairness subsystem',
    (flow) => flow.waiting,
  ],
  [
    'current_inqueue_seats',
    'gauge',
    'Number of seats currently pending in queues of the API Priority and Fairness subsystem',
    (flow) => flow.waitingSeats,
  ],
  [
    'current_executing_requests',
    'gauge',
    'Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage in the API Priority and Fairness subsystem',
    (flow) => flow.executing,
  ],
  [
    'current_executing_seats',
    'gauge',
    'Concurrency (number of seats) occupied by the currently executing (initial stage for a WATCH, any stage otherwise) requests in the API Priority and Fairness subsystem',
    (flow) => flow.executingSeats,
  ],
  [
    'request_dispatch_no_accommodation_total',
    'counter',
    'Number of times a dispatch attempt resulted in a non accommodation due to lack of available seats',
    (flow) => flow.notAccommodated,
  ],
];

type Distribution = readonly [labels: string, (counters: FlowCounters) => Histogram];

const DISTRIBUTIONS: readonly (readonly [name: string, help: string, ...Distribution[]])[] = [
  [
    'request_queue_length_after_enqueue',
    'Length of queue in the API Priority and Fairness subsystem, as seen by each request after it is enqueued',
    ['', (flow) => flow.queueLength],
  ],
  [
    'request_wait_duration_seconds',
    'Length of time a request spent waiting in its queue',
    [',execute="true"', (flow) => flow.waitExecuted],
    [',execute="false"', (flow) => flow.waitRejected],
  ],
  [
    'request_execution_seconds',
    'Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request execution in the API Priority and Fairness subsystem',
    [',type="regular"', (flow) => flow.execution],
    [',type="watch"', (flow) => flow.watchExecution],
  ],
  [
    'work_estimated_seats',
    'Number of estimated seats (maximum of initial and final seats) associated with requests in API Priority and Fairness',
    ['', (flow) => flow.seats],
  ],
  [
    'watch_count_samples',
    'count of watchers for mutating requests in API Priority and Fairness',
    ['', (flow) => flow.watches],
  ],
];

type OfLevel = readonly [name: string, help: string, (level: PriorityLevel<unknown>) => number];

const OF_LEVELS: readonly OfLevel[] = [
  [
    'nominal_limit_seats',
    'Nominal number of execution seats configured for each priority level',
    ({ limits }) => limits.nominal,
  ],
  [
    'lower_limit_seats',
    'Configured lower bound on number of execution seats available to each priority level',
    ({ limits }) => limits.min,
  ],
  [
    'upper_limit_seats',
    'Configured upper bound on number of execution seats available to each priority level',
    ({ limits }) => limits.max,
  ],
  [
    'current_limit_seats',
    'current derived number of execution seats available to each priority level',
    ({ queues }) => queues.limit,
  ],
  ['target_seats', 'Seat allocation targets', ({ target }) => target],
  ['current_r', 'R(time of last change)', ({ queues }) => queues.r / 1000],
  [
    'demand_seats_high_watermark',
    'High watermark, over last adjustment period, of demand_seats',
    ({ queues }) => queues.demand.statistics.highWatermark,
  ],
  [
    'demand_seats_average',
    'Time-weighted average, over last adjustment period, of demand_seats',
    ({ queues }) => queues.demand.statistics.average,
  ],
  [
    'demand_seats_stdev',
    'Time-weighted standard deviation, over last adjustment period, of demand_seats',
    ({ queues }) => queues.demand.statistics.deviation,
  ],
  ['demand_seats_smoothed', 'Smoothed seat demands', ({ queues }) => queues.demand.statistics.smoothed],
];

export function renderFlows(flows: FlowControl<unknown>): string {
  const lines: string[] = [];
  const used = [...flows.counters()].filter(
    ({ dispatched, waiting, rejected }) => dispatched + waiting > 0 || Object.values(rejected).some((each) => each > 0),
  );
  for (const [name, type, help, value] of OF_FLOWS) {
    const full = family(lines, name, type, help);
    for (const each of used) lines.push(`${full}{${labelsOf(each)}} ${value(each)}`);
  }
  const refused = family(
    lines,
    'rejected_requests_total',
    'counter',
    'Number of requests rejected by API Priority and Fairness subsystem',
  );
  for (const each of used) {
    for (const [reason, count] of Object.entries(each.rejected)) {
      if (count > 0) lines.push(`${refused}{${labelsOf(each)},reason="${reason}"} ${count}`);
    }
  }
  for (const [name, help, ...parts] of DISTRIBUTIONS) {
    const full = family(lines, name, 'histogram', help);
    for (const each of used) {
      for (const [labels, histogram] of parts) buckets(lines, full, `${labelsOf(each)}${labels}`, histogram(each));
    }
  }
  const levels = [...flows.levels()];
  for (const [name, help, value] of OF_LEVELS) {
    const full = family(lines, name, 'gauge', help);
    for (const level of levels) lines.push(`${full}{priority_level="${level.name}"} ${value(level)}`);
  }
  const fraction = family(lines, 'seat_fair_frac', 'gauge', 'Fair fraction of server seats');
  lines.push(`${fraction} ${flows.fairFraction}`);
  return lines.join('\n');
}
