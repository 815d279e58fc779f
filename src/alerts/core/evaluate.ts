/** Evaluates expressions over samples. Source: github.com/prometheus/prometheus promql/functions.go. */
import { CodedError } from '../../base/errors.ts';
import type { Aggregation, Binary, BinaryOperator, Call, Expression, Selector } from './expression.ts';
import { keyOf, type Labels, type Point, type SampleStore } from './samples.ts';

export interface Element {
  readonly labels: Labels;
  readonly value: number;
}

export type Value = number | readonly Element[];

/**
 * Evaluates an expression. Throws CodedError 'bad-rule' if a series matches several series of the other side, as in
 * Prometheus.
 */
export function evaluateAlertExpression(expression: Expression, samples: SampleStore, nowMs: number): Value {
  switch (expression.kind) {
    case 'number':
      return expression.value;
    case 'selector':
      return samples
        .instant(expression.metric, expression.matchers)
        .map(({ labels, points }) => ({ labels, value: points[0]?.value ?? Number.NaN }));
    case 'call':
      return callOf(expression, samples, nowMs);
    case 'aggregation':
      return aggregate(expression, vectorOf(evaluateAlertExpression(expression.of, samples, nowMs)));
    case 'binary':
      return binary(
        expression,
        evaluateAlertExpression(expression.left, samples, nowMs),
        evaluateAlertExpression(expression.right, samples, nowMs),
      );
  }
}

/** Returns the value as a vector. The parser has checked the types of all operands, so it is not a number. */
function vectorOf(value: Value): readonly Element[] {
  return typeof value === 'number' ? [] : value;
}

function callOf({ name, arguments: given }: Call, samples: SampleStore, nowMs: number): Element[] {
  const [first, second] = given;
  if (name === 'histogram_quantile') {
    if (first === undefined || second === undefined) return [];
    const quantile = evaluateAlertExpression(first, samples, nowMs);
    return histogramQuantiles(Number(quantile), vectorOf(evaluateAlertExpression(second, samples, nowMs)));
  }
  const { metric, matchers, rangeMs = 0 } = first as Selector;
  return samples.range(metric, matchers, nowMs, rangeMs).flatMap(({ labels, points }) => {
    const value = name === 'changes' ? changes(points) : extrapolated(points, nowMs - rangeMs, nowMs, name === 'rate');
    return value === undefined ? [] : [{ labels, value }];
  });
}

function changes(points: readonly Point[]): number {
  return points.filter(({ value }, index) => index > 0 && !Object.is(value, points[index - 1]?.value)).length;
}

/**
 * Limit for extrapolation to the ends of the range. If the gap to an end is longer than the average interval times this
 * factor, the series is assumed to begin or end within the range.
 */
const GAP_FACTOR = 1.1;

/** Increase of a counter within the range, or its rate per second. Undefined if there are fewer than two points. */
function extrapolated(points: readonly Point[], fromMs: number, toMs: number, isRate: boolean): number | undefined {
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined || points.length < 2) return undefined;
  let increase = last.value - first.value;
  for (const [index, { value }] of points.entries()) {
    const before = points[index - 1]?.value ?? Number.NEGATIVE_INFINITY;
    // A lower value means that the counter was reset to 0.
    if (value < before) increase += before;
  }
  const sampledMs = last.atMs - first.atMs;
  const averageMs = sampledMs / (points.length - 1);
  let startMs = first.atMs - fromMs;
  if (startMs >= averageMs * GAP_FACTOR) startMs = averageMs / 2;
  // Do not extrapolate a counter to a time before it was 0.
  if (increase > 0 && first.value >= 0) startMs = Math.min(startMs, sampledMs * (first.value / increase));
  let endMs = toMs - last.atMs;
  if (endMs >= averageMs * GAP_FACTOR) endMs = averageMs / 2;
  const whole = increase * ((sampledMs + startMs + endMs) / sampledMs);
  return isRate ? whole / ((toMs - fromMs) / 1000) : whole;
}

function histogramQuantiles(quantile: number, buckets: readonly Element[]): Element[] {
  const groups = Map.groupBy(buckets, ({ labels }) => keyOf(without(labels, ['le'])));
  return [...groups.values()].map((group) => ({
    labels: without(group[0]?.labels ?? new Map(), ['le']),
    value: bucketQuantile(quantile, group),
  }));
}

function bucketQuantile(quantile: number, group: readonly Element[]): number {
  const buckets = group
    .map(({ labels, value }) => ({ upper: bound(labels.get('le') ?? ''), count: value }))
    .filter(({ upper }) => !Number.isNaN(upper))
    .sort((a, b) => a.upper - b.upper);
  // Rounding errors of rates may make the count of a bucket smaller than that of the bucket before it.
  let most = 0;
  for (const bucket of buckets) {
    most = Math.max(most, bucket.count);
    bucket.count = most;
  }
  const last = buckets.at(-1);
  if (last === undefined || last.upper !== Number.POSITIVE_INFINITY || buckets.length < 2) return Number.NaN;
  if (last.count === 0 || Number.isNaN(quantile)) return Number.NaN;
  if (quantile < 0) return Number.NEGATIVE_INFINITY;
  if (quantile > 1) return Number.POSITIVE_INFINITY;
  const rank = quantile * last.count;
  const at = buckets.slice(0, -1).findIndex(({ count }) => count >= rank);
  if (at < 0) return buckets.at(-2)?.upper ?? Number.NaN;
  const { upper, count } = buckets[at] ?? last;
  if (at === 0 && upper <= 0) return upper;
  const lower = at === 0 ? 0 : (buckets[at - 1]?.upper ?? 0);
  const below = at === 0 ? 0 : (buckets[at - 1]?.count ?? 0);
  return lower + (upper - lower) * ((rank - below) / (count - below));
}

const bound = (le: string): number => (le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le === '' ? 'none' : le));

function aggregate({ operator, grouping }: Aggregation, elements: readonly Element[]): Element[] {
  const reduce = (labels: Labels): Labels => (grouping.keep ? only : without)(labels, grouping.labels);
  const groups = Map.groupBy(elements, ({ labels }) => keyOf(reduce(labels)));
  return [...groups.values()].map((group) => {
    const values = group.map(({ value }) => value);
    const sum = values.reduce((total, value) => total + value, 0);
    const results = {
      sum,
      avg: sum / values.length,
      count: values.length,
      // The result is NaN only if every value is NaN.
      min: values.reduce((least, value) => (value < least || Number.isNaN(least) ? value : least), Number.NaN),
      max: values.reduce((most, value) => (value > most || Number.isNaN(most) ? value : most), Number.NaN),
    };
    return { labels: reduce(group[0]?.labels ?? new Map()), value: results[operator] };
  });
}

function binary({ operator, matching }: Binary, left: Value, right: Value): Value {
  if (typeof left === 'number' && typeof right === 'number') return compute(operator, left, right) ?? Number.NaN;
  if (typeof left === 'number' || typeof right === 'number') {
    const vector = vectorOf(typeof left === 'number' ? right : left);
    const compares = isComparison(operator);
    return vector.flatMap(({ labels, value }) => {
      const result =
        typeof left === 'number' ? compute(operator, left, value) : compute(operator, value, Number(right));
      // A comparison with a number returns the value of the vector element.
      return result === undefined ? [] : [{ labels, value: compares ? value : result }];
    });
  }
  const reduce = (labels: Labels): Labels =>
    matching === undefined ? labels : (matching.keep ? only : without)(labels, matching.labels);
  const keyed = (elements: readonly Element[]) => Map.groupBy(elements, ({ labels }) => keyOf(reduce(labels)));
  const others = keyed(right);
  switch (operator) {
    case 'and':
      return left.filter(({ labels }) => others.has(keyOf(reduce(labels))));
    case 'unless':
      return left.filter(({ labels }) => !others.has(keyOf(reduce(labels))));
    case 'or': {
      const own = keyed(left);
      return [...left, ...right.filter(({ labels }) => !own.has(keyOf(reduce(labels))))];
    }
    default:
      return [...keyed(left)].flatMap(([key, group]) => {
        const other = others.get(key);
        const [element] = group;
        if (other?.[0] === undefined || element === undefined) return [];
        if (group.length > 1 || other.length > 1)
          throw new CodedError('bad-rule', `${operator}: several series have the labels ${key}`);
        const value = compute(operator, element.value, other[0].value);
        return value === undefined ? [] : [{ labels: reduce(element.labels), value }];
      });
  }
}

const isComparison = (operator: BinaryOperator): boolean => /^[=!<>]/.test(operator);

/** Result for two numbers. If the operator is a comparison: the left value if it is true, otherwise undefined. */
function compute(operator: BinaryOperator, left: number, right: number): number | undefined {
  switch (operator) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    case '/':
      return left / right;
    case '==':
      return left === right ? left : undefined;
    case '!=':
      return left !== right ? left : undefined;
    case '<':
      return left < right ? left : undefined;
    case '<=':
      return left <= right ? left : undefined;
    case '>':
      return left > right ? left : undefined;
    case '>=':
      return left >= right ? left : undefined;
    default:
      return undefined;
  }
}

function only(labels: Labels, names: readonly string[]): Labels {
  return new Map([...labels].filter(([name]) => names.includes(name)));
}

function without(labels: Labels, names: readonly string[]): Labels {
  return new Map([...labels].filter(([name]) => !names.includes(name)));
}
