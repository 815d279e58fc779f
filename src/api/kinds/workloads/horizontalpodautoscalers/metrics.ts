/**
 * Conversion of metrics to the form of v2beta1 (and of v1 annotations), which has names and targets as flat fields
 * instead of structures. Source: k8s.io/kubernetes/pkg/apis/autoscaling/v2beta1 conversion.
 */
import type { JsonObject, JsonValue } from '../../../meta/object.ts';

type Moves = readonly (readonly [current: string, older: string])[];

const RESOURCE: Moves = [
  ['name', 'name'],
  ['target.averageUtilization', 'targetAverageUtilization'],
  ['target.averageValue', 'targetAverageValue'],
];
const RESOURCE_STATUS: Moves = [
  ['name', 'name'],
  ['current.averageUtilization', 'currentAverageUtilization'],
  ['current.averageValue', 'currentAverageValue'],
];
const CONTAINER: Moves = [['container', 'container']];

/** Field paths in v2 and v2beta1, by metric source. */
const SPEC: Readonly<Record<string, Moves>> = {
  resource: RESOURCE,
  containerResource: [...CONTAINER, ...RESOURCE],
  pods: [
    ['metric.name', 'metricName'],
    ['metric.selector', 'selector'],
    ['target.averageValue', 'targetAverageValue'],
  ],
  object: [
    ['describedObject', 'target'],
    ['metric.name', 'metricName'],
    ['metric.selector', 'selector'],
    ['target.value', 'targetValue'],
    ['target.averageValue', 'averageValue'],
  ],
  external: [
    ['metric.name', 'metricName'],
    ['metric.selector', 'metricSelector'],
    ['target.value', 'targetValue'],
    ['target.averageValue', 'targetAverageValue'],
  ],
};

const STATUS: Readonly<Record<string, Moves>> = {
  resource: RESOURCE_STATUS,
  containerResource: [...CONTAINER, ...RESOURCE_STATUS],
  pods: [
    ['metric.name', 'metricName'],
    ['metric.selector', 'selector'],
    ['current.averageValue', 'currentAverageValue'],
  ],
  object: [
    ['describedObject', 'target'],
    ['metric.name', 'metricName'],
    ['metric.selector', 'selector'],
    ['current.value', 'currentValue'],
    ['current.averageValue', 'averageValue'],
  ],
  external: [
    ['metric.name', 'metricName'],
    ['metric.selector', 'metricSelector'],
    ['current.value', 'currentValue'],
    ['current.averageValue', 'currentAverageValue'],
  ],
};

/** Part of an autoscaler to which metrics belong. */
type Part = 'spec' | 'status';

const MOVES: Readonly<Record<Part, Readonly<Record<string, Moves>>>> = { spec: SPEC, status: STATUS };

/** Converts metrics to the older form. */
export function olderMetrics(metrics: JsonValue | undefined, part: Part): JsonObject[] {
  return each(metrics, MOVES[part], (source, moves) => moved(source, moves, 0));
}

/** Converts metrics of the older form to v2. */
export function currentMetrics(metrics: JsonValue | undefined, part: Part): JsonObject[] {
  return each(metrics, MOVES[part], (source, moves) => {
    const current = moved(source, moves, 1);
    if (part === 'spec') current['target'] = typed(current['target']);
    else current['current'] ??= {};
    return current;
  });
}

/** Adds `target.type`. Older versions have no type; it follows from the field of the target that is set. */
function typed(target: JsonValue | undefined): JsonObject {
  const given = isObject(target) ? target : {};
  const type =
    given['averageUtilization'] !== undefined
      ? 'Utilization'
      : given['averageValue'] !== undefined
        ? 'AverageValue'
        : 'Value';
  return { type, ...given };
}

function each(
  metrics: JsonValue | undefined,
  sources: Readonly<Record<string, Moves>>,
  convert: (source: JsonObject, moves: Moves) => JsonObject,
): JsonObject[] {
  const found: JsonObject[] = [];
  for (const metric of Array.isArray(metrics) ? metrics : []) {
    if (!isObject(metric)) continue;
    const { type } = metric;
    const converted: JsonObject = type === undefined ? {} : { type };
    for (const [field, moves] of Object.entries(sources)) {
      const source = metric[field];
      if (isObject(source)) converted[field] = convert(source, moves);
    }
    found.push(converted);
  }
  return found;
}

/** Copies the listed fields from one form to the other. `from`: index of the source path in each move. */
function moved(source: JsonObject, moves: Moves, from: 0 | 1): JsonObject {
  const target: JsonObject = {};
  for (const move of moves) {
    const value = at(source, move[from]);
    if (value !== undefined) put(target, move[1 - from] ?? '', value);
  }
  return target;
}

function at(object: JsonObject, path: string): JsonValue | undefined {
  const [first = '', second] = path.split('.');
  const value = object[first];
  if (second === undefined) return value;
  return isObject(value) ? value[second] : undefined;
}

function put(object: JsonObject, path: string, value: JsonValue): void {
  const [first = '', second] = path.split('.');
  if (second === undefined) {
    object[first] = value;
    return;
  }
  const known = object[first];
  if (isObject(known)) known[second] = value;
  else object[first] = { [second]: value };
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
