/** Debug pages with the current state of the queues. Source: docs, "API Priority and Fairness", Debugging. */
import type { Clock } from '../../base/time/clock.ts';
import type { FlowControl, FlowRequest, PriorityLevel } from '../core/flow-control/index.ts';
import type { Exchange } from '../http/exchange.ts';
import { isTrue } from '../http/request-info.ts';

const ROOT = '/debug/api_priority_and_fairness/';
/** Maximum number of queues for which empty queues are listed too. */
const MAX_QUEUES = 1024;
const MIN_WIDTH = 8;

type Flows = FlowControl<Exchange>;
type Level = PriorityLevel<Exchange>;
type Row = readonly (string | number | boolean)[];

export function dumpsOf(flows: Flows, clock: Clock): ReadonlyMap<string, (query: URLSearchParams) => string> {
  return new Map<string, (query: URLSearchParams) => string>([
    [`${ROOT}dump_priority_levels`, () => table(LEVEL_COLUMNS, sorted(flows).map(levelRow))],
    [`${ROOT}dump_queues`, () => table(QUEUE_COLUMNS, sorted(flows).flatMap(queueRows))],
    [
      `${ROOT}dump_requests`,
      (query) => {
        const details = isTrue(query.get('includeRequestDetails'));
        const offsetMs = clock.nowMs() - clock.monotonicMs();
        const rows = sorted(flows).flatMap((level) => requestRows(level, offsetMs, details));
        return table(details ? [...REQUEST_COLUMNS, ...DETAIL_COLUMNS] : REQUEST_COLUMNS, rows);
      },
    ],
  ]);
}

const sorted = (flows: Flows): Level[] => [...flows.levels()].sort((a, b) => (a.name < b.name ? -1 : 1));

/** Text table. Columns have equal width, and a comma follows each cell but the last. */
function table(columns: readonly string[], rows: readonly Row[]): string {
  const cells = [columns, ...rows.map((row) => row.map(String))].map((row) =>
    row.map((cell, index) => (index < row.length - 1 ? `${cell},` : cell)),
  );
  const widths = columns.map((_, index) => Math.max(MIN_WIDTH, ...cells.map((row) => (row[index]?.length ?? 0) + 1)));
  const line = (row: readonly string[]): string =>
    row.map((cell, index) => (index < row.length - 1 ? cell.padEnd(widths[index] ?? 0) : cell)).join('');
  return cells.map((row) => `${line(row)}\n`).join('');
}

const LEVEL_COLUMNS = [
  'PriorityLevelName',
  'ActiveQueues',
  'IsIdle',
  'IsQuiescing',
  'WaitingRequests',
  'ExecutingRequests',
  'DispatchedRequests',
  'RejectedRequests',
  'TimedoutRequests',
  'CancelledRequests',
];

function levelRow({ name, queues, quiescing, totals }: Level): Row {
  let active = 0;
  for (const queue of queues.queues()) if (queue.waiting.length > 0) active += 1;
  const { dispatched, rejected, timedOut, cancelled } = totals;
  const { waiting, executing, idle } = queues;
  return [name, active, idle, quiescing, waiting, executing.length, dispatched, rejected, timedOut, cancelled];
}

const QUEUE_COLUMNS = [
  'PriorityLevelName',
  'Index',
  'PendingRequests',
  'ExecutingRequests',
  'SeatsInUse',
  'NextDispatchR',
  'InitialSeatsSum',
  'MaxSeatsSum',
  'TotalWorkSum',
];

const seatSeconds = (seatMs: number): string => `${(seatMs / 1000).toFixed(8)}ss`;

function queueRows({ name, queues }: Level): Row[] {
  const { queuing } = queues;
  if (queuing.type !== 'queue') return [[name, ...QUEUE_COLUMNS.slice(1).map(() => '<none>')]];
  const rows = new Map<number, Row>();
  if (queuing.queues <= MAX_QUEUES) {
    for (let index = 0; index < queuing.queues; index++) {
      rows.set(index, [name, index, 0, 0, 0, seatSeconds(0), 0, 0, seatSeconds(0)]);
    }
  }
  for (const { index, waiting, executing, seatsInUse, nextDispatchR, waitingWork } of queues.queues()) {
    let initialSeats = 0;
    let seats = 0;
    for (const request of waiting) {
      initialSeats += request.initialSeats;
      seats += request.seats;
    }
    const work = seatSeconds(waitingWork);
    const next = seatSeconds(nextDispatchR);
    rows.set(index, [name, index, waiting.length, executing, seatsInUse, next, initialSeats, seats, work]);
  }
  return [...rows.entries()].sort(([a], [b]) => a - b).map(([, row]) => row);
}

const REQUEST_COLUMNS = [
  'PriorityLevelName',
  'FlowSchemaName',
  'QueueIndex',
  'RequestIndexInQueue',
  'FlowDistingsher',
  'ArriveTime',
  'InitialSeats',
  'FinalSeats',
  'AdditionalLatency',
  'StartTime',
];
const DETAIL_COLUMNS = ['UserName', 'Verb', 'APIPath', 'Namespace', 'Name', 'APIVersion', 'Resource', 'SubResource'];

/** Waiting requests in queue order, then executing requests, which are not in a queue any more. */
function requestRows({ name, queues }: Level, offsetMs: number, details: boolean): Row[] {
  const rows: Row[] = [];
  const time = (ms: number): string => new Date(ms + offsetMs).toISOString();
  const add = (request: FlowRequest<Exchange>, place: number): void => {
    const { counters, queue, distinguisher, initialSeats, finalSeats, additionalLatencyMs } = request;
    const { arrivedMs, startedMs, owner } = request;
    rows.push([
      name,
      counters.schema,
      queue?.index ?? -1,
      place,
      distinguisher,
      time(arrivedMs),
      initialSeats,
      finalSeats,
      additionalLatencyMs === 0 ? '0s' : `${additionalLatencyMs}ms`,
      place < 0 ? time(startedMs) : '0001-01-01T00:00:00Z',
      ...(details ? detailsOf(owner) : []),
    ]);
  };
  for (const queue of [...queues.queues()].sort((a, b) => a.index - b.index)) {
    let place = 0;
    for (const request of queue.waiting) add(request, place++);
  }
  for (const request of queues.executing) add(request, -1);
  return rows;
}

function detailsOf({ user, info }: Exchange): Row {
  if (!info.resource) return [user.name, info.verb, info.path, '', '', '', '', ''];
  const version = info.group === '' ? info.version : `${info.group}/${info.version}`;
  return [user.name, info.verb, info.path, info.namespace, info.name, version, info.plural, info.subresource];
}
