/**
 * Reads the metrics of an autoscaler from `metrics.k8s.io`, `custom.metrics.k8s.io` and `external.metrics.k8s.io`.
 * Aggregated servers serve them, so responses are validated here.
 */

import type { MetricSpec } from '../../../api/generated/autoscaling/v2.ts';
import type { LabelSelector } from '../../../api/generated/meta/v1.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { messageOf } from '../../../base/errors.ts';
import { quantityMilliValue, tryParseQuantity } from '../../../base/quantity.ts';
import { formatLabelSelector, labelSelectorOf } from '../../../base/selector.ts';
import { timeMs } from '../../../base/time/timestamps.ts';
import type { Capabilities } from '../../framework/capabilities.ts';
import type { Reading } from './plan.ts';
import type { PodMetric } from './usage.ts';

interface PodMetrics {
  readonly metadata?: { readonly name?: string };
  readonly timestamp?: string;
  readonly window?: string;
  readonly containers?: readonly { readonly name?: string; readonly usage?: Readonly<Record<string, unknown>> }[];
}

interface MetricValue {
  readonly describedObject?: { readonly name?: string };
  readonly timestamp?: string;
  readonly windowSeconds?: number;
  readonly value?: unknown;
}

interface ItemList<T> {
  readonly items?: readonly T[];
}

/** Scope of one autoscaler: its namespace and the pod selector of its target. */
export interface MetricScope {
  readonly namespace: string;
  readonly selector: string;
  /** Returns `<plural>.<group>` of an object that a metric describes. */
  resourceOf(apiVersion: string | undefined, kind: string): Promise<string>;
}

const DEFAULT_WINDOW_MS = 60_000;

/**
 * Reads the metrics one after the other, because their number is not limited. Metrics that differ only in their target
 * share a reading.
 */
export async function readMetrics(
  read: Capabilities['read'],
  specs: readonly MetricSpec[],
  scope: MetricScope,
  signal: AbortSignal,
): Promise<readonly Reading[]> {
  const known = new Map<string, Reading>();
  const readings: Reading[] = [];
  for (const spec of specs) {
    const source = sourceOf(spec);
    const reading = known.get(source) ?? (await readMetric((path) => read(path, signal), spec, scope, signal));
    known.set(source, reading);
    readings.push(reading);
  }
  return readings;
}

function sourceOf(spec: MetricSpec): string {
  const { resource, containerResource, pods, object, external } = spec;
  const source = { ...(resource ?? containerResource ?? pods ?? object ?? external), target: undefined };
  return JSON.stringify([spec.type, source]);
}

async function readMetric(get: Get, spec: MetricSpec, scope: MetricScope, signal: AbortSignal): Promise<Reading> {
  try {
    if (spec.resource !== undefined) return await resourceMetric(get, scope, spec.resource.name, undefined);
    if (spec.containerResource !== undefined) {
      return await resourceMetric(get, scope, spec.containerResource.name, spec.containerResource.container);
    }
    if (spec.pods !== undefined) return await podsMetric(get, scope, spec.pods.metric);
    if (spec.object !== undefined) return await objectMetric(get, scope, spec.object);
    if (spec.external !== undefined) return await externalMetric(get, scope, spec.external.metric);
    return { type: 'failed', message: `unknown metric source type ${JSON.stringify(spec.type)}` };
  } catch (error) {
    if (signal.aborted) throw error;
    return { type: 'failed', message: messageOf(error) };
  }
}

type Get = <R>(path: string) => Promise<R>;

async function resourceMetric(
  get: Get,
  { namespace, selector }: MetricScope,
  resource: string,
  container: string | undefined,
): Promise<Reading> {
  const path = `/apis/metrics.k8s.io/v1beta1/namespaces/${enc(namespace)}/pods?labelSelector=${enc(selector)}`;
  const items = await itemsOf<PodMetrics>(
    get,
    path,
    `unable to get metrics for resource ${resource}`,
    'resource metrics API',
  );
  const metrics = new Map<string, PodMetric>();
  for (const { metadata, timestamp, window, containers = [] } of items) {
    const chosen = container === undefined ? containers : containers.filter((each) => each.name === container);
    const values = chosen.map((each) => tryParseQuantity(each.usage?.[resource]));
    if (values.length === 0 || values.some((value) => value === undefined)) continue;
    const milli = values.reduce((sum, value) => sum + (value === undefined ? 0 : quantityMilliValue(value)), 0);
    metrics.set(metadata?.name ?? '', { milli, atMs: timeMs(timestamp), windowMs: windowMs(window) });
  }
  return { type: 'pods', metrics };
}

interface Identifier {
  readonly name: string;
  readonly selector?: LabelSelector;
}

async function podsMetric(get: Get, { namespace, selector }: MetricScope, metric: Identifier): Promise<Reading> {
  const query = `labelSelector=${enc(selector)}${metricSelector(metric, '&')}`;
  const items = await custom(get, `namespaces/${enc(namespace)}/pods/*/${enc(metric.name)}?${query}`, metric.name);
  const metrics = new Map<string, PodMetric>();
  for (const { describedObject, timestamp, windowSeconds, value } of items) {
    const quantity = tryParseQuantity(value);
    if (quantity === undefined) continue;
    metrics.set(describedObject?.name ?? '', {
      milli: quantityMilliValue(quantity),
      atMs: timeMs(timestamp),
      windowMs: typeof windowSeconds === 'number' ? windowSeconds * 1000 : DEFAULT_WINDOW_MS,
    });
  }
  return { type: 'pods', metrics };
}

async function objectMetric(
  get: Get,
  scope: MetricScope,
  { metric, describedObject }: NonNullable<MetricSpec['object']>,
): Promise<Reading> {
  const { apiVersion, kind, name } = describedObject;
  const inNamespace = kind === 'Namespace' ? '' : `namespaces/${enc(scope.namespace)}/`;
  const resource = kind === 'Namespace' ? 'namespaces' : await scope.resourceOf(apiVersion, kind);
  const rest = kind === 'Namespace' ? `${enc(name)}/metrics/${enc(metric.name)}` : `${enc(name)}/${enc(metric.name)}`;
  const items = await custom(get, `${inNamespace}${resource}/${rest}?${metricSelector(metric, '')}`, metric.name);
  return totalOf(items, metric.name);
}

async function externalMetric(get: Get, { namespace }: MetricScope, metric: Identifier): Promise<Reading> {
  const selector = metric.selector === undefined ? '' : formatLabelSelector(labelSelectorOf(metric.selector));
  const path = `/apis/external.metrics.k8s.io/v1beta1/namespaces/${enc(namespace)}/${enc(metric.name)}?labelSelector=${enc(selector)}`;
  const what = `unable to get external metric ${namespace}/${metric.name}/${selector}`;
  return totalOf(await itemsOf<MetricValue>(get, path, what, 'external metrics API'), metric.name);
}

function totalOf(items: readonly MetricValue[], name: string): Reading {
  const values = items.map((item) => tryParseQuantity(item.value));
  if (values.some((value) => value === undefined)) throw new Error(`metric ${name} has a value that is no quantity`);
  return { type: 'value', milli: values.reduce((sum, value) => sum + (value ? quantityMilliValue(value) : 0), 0) };
}

/** Reads a custom metric. Uses the newest API version that the metrics adapter serves. */
async function custom(get: Get, path: string, name: string): Promise<readonly MetricValue[]> {
  const from = (version: string): Promise<readonly MetricValue[]> =>
    itemsOf(
      get,
      `/apis/custom.metrics.k8s.io/${version}/${path}`,
      `unable to get metric ${name}`,
      'custom metrics API',
    );
  try {
    return await from('v1beta2');
  } catch (error) {
    if (!(error instanceof Error) || !isApiError(error.cause, 'NotFound')) throw error;
    return from('v1beta1');
  }
}

async function itemsOf<T>(get: Get, path: string, what: string, api: string): Promise<readonly T[]> {
  let list: ItemList<T>;
  try {
    list = await get<ItemList<T>>(path);
  } catch (error) {
    throw new Error(`${what}: unable to fetch metrics from ${api}: ${messageOf(error)}`, { cause: error });
  }
  const items = list?.items;
  if (!Array.isArray(items) || items.length === 0) throw new Error(`${what}: no metrics returned from ${api}`);
  return items.filter((item) => typeof item === 'object' && item !== null);
}

function metricSelector(metric: Identifier, separator: string): string {
  if (metric.selector === undefined) return '';
  return `${separator}metricLabelSelector=${enc(formatLabelSelector(labelSelectorOf(metric.selector)))}`;
}

/** Parses a window in Go's duration format, of which servers use hours, minutes and seconds only. */
function windowMs(text: string | undefined): number {
  const match = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?$/.exec(text ?? '');
  if (match === null || text === '' || text === undefined) return DEFAULT_WINDOW_MS;
  return (Number(match[1] ?? 0) * 3600 + Number(match[2] ?? 0) * 60 + Number(match[3] ?? 0)) * 1000;
}

const enc = encodeURIComponent;
