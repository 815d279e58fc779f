/** Parameters of a request for the usage history. Errors name the parameter. */
import { parseDuration } from '../../../base/time/duration.ts';
import { LEVELS } from './levels.ts';
import { METRICS, type MetricSpec, SCOPES, type Scope } from './metrics.ts';

export interface HistoryQuery {
  readonly scope: Scope;
  /** Only series of this namespace; undefined for all. `name` and `container` restrict the series in the same way. */
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly container: string | undefined;
  readonly metrics: readonly MetricSpec[];
  /** Start of the range in wall-clock time. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly points: number;
}

export class HistoryQueryError extends Error {}

const PARAMETERS: ReadonlySet<string> = new Set([
  ...['scope', 'slice', 'namespace', 'pod', 'container', 'metric', 'since', 'from', 'to', 'points'],
]);
const DEFAULT_POINTS = 300;
const MAX_POINTS = 2_000;
const DEFAULT_SINCE_MS = 3_600_000;
const MAX_SPAN_MS = 31 * 24 * 3_600_000;
const MAX_NAME = 253;
const MAX_SHOWN = 40;

/** Throws HistoryQueryError. */
export function parseHistoryQuery(query: Iterable<readonly [string, string]>, nowMs: number): HistoryQuery {
  const given = new Map<string, string>();
  for (const [name, value] of query) {
    if (!PARAMETERS.has(name)) throw wrong(shown(name), `unknown parameter; use ${[...PARAMETERS].join(', ')}`);
    if (given.has(name)) throw wrong(name, 'given more than once; give it once');
    given.set(name, value);
  }
  const scope = (given.get('scope') ?? 'node') as Scope;
  if (!SCOPES.includes(scope)) throw wrong('scope', `"${shown(scope)}" is not one of ${SCOPES.join(', ')}`);
  const nameParameter = scope === 'slice' ? 'slice' : 'pod';
  const text = (name: string, scopes: readonly Scope[]): string | undefined => {
    const value = given.get(name);
    if (value === undefined || value === '') return undefined;
    if (!scopes.includes(scope)) throw wrong(name, `not used with scope=${scope}; use scope=${scopes.join(' or ')}`);
    if (value.length > MAX_NAME) throw wrong(name, `longer than ${MAX_NAME} characters`);
    return value;
  };
  const namespace = text('namespace', ['pod', 'container']);
  const container = text('container', ['container']);
  const pod = text('pod', ['pod', 'container']);
  const slice = text('slice', ['slice']);
  return {
    scope,
    namespace,
    container,
    name: nameParameter === 'slice' ? slice : pod,
    metrics: metricsOf(scope, given.get('metric')),
    ...rangeOf(given, nowMs),
    points: pointsOf(given.get('points')),
  };
}

function metricsOf(scope: Scope, list: string | undefined): readonly MetricSpec[] {
  const known = METRICS[scope];
  if (list === undefined || list === '') return known;
  const names = [...new Set(list.split(',', known.length * 4))];
  return names.map((name) => {
    const found = known.find((metric) => metric.name === name);
    if (found !== undefined) return found;
    const all = known.map((metric) => metric.name).join(', ');
    throw wrong('metric', `"${shown(name)}" is not a metric of scope=${scope}; use ${all}`);
  });
}

function rangeOf(given: ReadonlyMap<string, string>, nowMs: number): { fromMs: number; toMs: number } {
  const since = given.get('since');
  const from = given.get('from');
  const to = given.get('to');
  if (since !== undefined && (from !== undefined || to !== undefined))
    throw wrong('since', 'excludes from and to; use either since, or from and to');
  const toMs = to === undefined ? nowMs : timeOf('to', to);
  if (from !== undefined) {
    const fromMs = timeOf('from', from);
    if (fromMs >= toMs) throw wrong('from', 'not before to; use an earlier time');
    if (toMs - fromMs > MAX_SPAN_MS) throw wrong('from', 'more than 31 days before to; use a later time');
    return { fromMs, toMs };
  }
  const spanMs = since === undefined ? DEFAULT_SINCE_MS : durationOf(since);
  return { fromMs: toMs - spanMs, toMs };
}

function durationOf(text: string): number {
  const days = /^(\d{1,4})d$/.exec(text)?.[1];
  const ms = days === undefined ? parseDuration(text) : Number(days) * 24 * 3_600_000;
  if (ms === undefined || ms < LEVELS[0].stepMs || ms > MAX_SPAN_MS)
    throw wrong('since', `"${shown(text)}" is not a duration from 15s to 31d; use for example 90m, 24h or 7d`);
  return ms;
}

function timeOf(name: string, text: string): number {
  const ms = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/.test(text)
    ? Date.parse(text)
    : Number.NaN;
  if (Number.isNaN(ms)) throw wrong(name, `"${shown(text)}" is not a time such as 2026-01-31T12:00:00Z`);
  return ms;
}

function pointsOf(text: string | undefined): number {
  if (text === undefined) return DEFAULT_POINTS;
  const points = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (points < 1 || points > MAX_POINTS)
    throw wrong('points', `"${shown(text)}" is not a whole number from 1 to ${MAX_POINTS}`);
  return points;
}

const wrong = (parameter: string, reason: string): HistoryQueryError =>
  new HistoryQueryError(`${parameter}: ${reason}`);

const shown = (text: string): string =>
  JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text).slice(1, -1);
