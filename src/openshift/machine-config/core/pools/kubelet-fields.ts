/**
 * Converts fields of a KubeletConfiguration to the kubelet arguments of `node-config.yaml`. A field that this kubelet
 * does not support is rejected with its name. Source: k8s.io/kubelet/config/v1beta1; validateUserKubeletConfig in
 * pkg/controller/kubelet-config of openshift/machine-config-operator.
 */
import type { JsonObject, JsonValue } from '../../../../api/meta/object.ts';
import { tryParseQuantity } from '../../../../base/quantity.ts';
import { parseDuration } from '../../../../base/time/duration.ts';

type Form =
  | 'count'
  | 'limit'
  | 'flag'
  | 'text'
  | 'list'
  | 'size'
  | 'duration'
  | 'quantities'
  | 'thresholds'
  | 'durations';

const FIELDS: Readonly<Record<string, readonly [argument: string, form: Form]>> = {
  maxPods: ['max-pods', 'count'],
  podPidsLimit: ['pod-max-pids', 'limit'],
  seccompDefault: ['seccomp-default', 'flag'],
  containerLogMaxSize: ['container-log-max-size', 'size'],
  containerLogMaxFiles: ['container-log-max-files', 'count'],
  systemReserved: ['system-reserved', 'quantities'],
  kubeReserved: ['kube-reserved', 'quantities'],
  systemReservedCgroup: ['system-reserved-cgroup', 'text'],
  kubeReservedCgroup: ['kube-reserved-cgroup', 'text'],
  enforceNodeAllocatable: ['enforce-node-allocatable', 'list'],
  evictionHard: ['eviction-hard', 'thresholds'],
  evictionSoft: ['eviction-soft', 'thresholds'],
  evictionSoftGracePeriod: ['eviction-soft-grace-period', 'durations'],
  evictionMinimumReclaim: ['eviction-minimum-reclaim', 'quantities'],
  evictionPressureTransitionPeriod: ['eviction-pressure-transition-period', 'duration'],
  evictionMaxPodGracePeriod: ['eviction-max-pod-grace-period', 'count'],
  cpuManagerPolicy: ['cpu-manager-policy', 'text'],
  reservedSystemCPUs: ['reserved-cpus', 'text'],
  topologyManagerPolicy: ['topology-manager-policy', 'text'],
  topologyManagerScope: ['topology-manager-scope', 'text'],
  memoryManagerPolicy: ['memory-manager-policy', 'text'],
  memoryThrottlingFactor: ['memory-throttling-factor', 'text'],
  shutdownGracePeriod: ['shutdown-grace-period', 'duration'],
  shutdownGracePeriodCriticalPods: ['shutdown-grace-period-critical-pods', 'duration'],
  allowedUnsafeSysctls: ['allowed-unsafe-sysctls', 'list'],
};

const CHOICES: Readonly<Record<string, readonly string[]>> = {
  cpuManagerPolicy: ['none', 'static'],
  topologyManagerPolicy: ['none', 'best-effort', 'restricted', 'single-numa-node'],
  topologyManagerScope: ['container', 'pod'],
  memoryManagerPolicy: ['None', 'Static'],
};

/** Fields that upstream rejects, because a node with a different value could not join the cluster again. */
const FORBIDDEN = [
  'cgroupDriver',
  'clusterDNS',
  'clusterDomain',
  'featureGates',
  'runtimeRequestTimeout',
  'staticPodPath',
];
const IGNORED = new Set(['kind', 'apiVersion']);

type Values = Readonly<Record<string, unknown>>;

/** Error message for a forbidden field, as in upstream; undefined if the configuration sets none. */
export function forbiddenField(config: Values): string | undefined {
  const name = FORBIDDEN.find((each) => Object.hasOwn(config, each) && !isZero(config[each]));
  return name === undefined
    ? undefined
    : `KubeletConfiguration: ${name} is not allowed to be set, but contains: ${shown(config[name])}`;
}

export type KubeletArguments = { readonly arguments: Readonly<Record<string, readonly string[]>> };

/**
 * Converts fields to arguments. Fields with the zero value of their type are omitted, because Go encoders write them
 * for unset fields.
 */
export function kubeletArguments(config: Values): KubeletArguments | { readonly error: string } {
  const found: Record<string, readonly string[]> = {};
  for (const [name, value] of Object.entries(config)) {
    if (IGNORED.has(name) || isZero(value)) continue;
    const special = Object.hasOwn(SPECIAL, name) ? SPECIAL[name]?.(value) : undefined;
    const field = Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined;
    if (special === undefined && field === undefined && isUnset(value)) continue;
    if (special === undefined && field === undefined)
      return { error: `KubeletConfiguration: ${name} is not supported by the kubelets of this cluster` };
    const converted = special ?? convert(name, field ?? ['', 'text'], value);
    if (converted === undefined || converted.values === undefined)
      return { error: `KubeletConfiguration: ${name}: invalid value: ${shown(value)}` };
    found[converted.argument] = converted.values;
  }
  return { arguments: found };
}

interface Converted {
  readonly argument: string;
  /** Values of the argument; undefined if the value of the field is invalid. */
  readonly values: readonly string[] | undefined;
}

function convert(name: string, [argument, form]: readonly [string, Form], value: unknown): Converted {
  const values = FORMS[form](value);
  const choices = CHOICES[name];
  const isChoice = choices === undefined || values?.every((each) => choices.includes(each)) === true;
  return { argument, values: isChoice ? values : undefined };
}

const FORMS: Readonly<Record<Form, (value: unknown) => readonly string[] | undefined>> = {
  count: (value) => (isCount(value) ? [String(value)] : undefined),
  limit: (value) => (isCount(value) || value === -1 ? [String(value)] : undefined),
  flag: (value) => (typeof value === 'boolean' ? [String(value)] : undefined),
  text: (value) => (typeof value === 'string' || typeof value === 'number' ? [String(value)] : undefined),
  list: (value) => (Array.isArray(value) && value.every((each) => typeof each === 'string') ? value : undefined),
  size: (value) => (typeof value === 'string' && /^\d{1,15}(Ki|Mi|Gi)?$/.test(value) ? [value] : undefined),
  duration: (value) => (isDuration(value) ? [value] : undefined),
  quantities: (value) => pairs(value, '=', (each) => isQuantity(each) || isPercentage(each)),
  thresholds: (value) => pairs(value, '<', (each) => isQuantity(each) || isPercentage(each)),
  durations: (value) => pairs(value, '=', isDuration),
};

/** Converters for fields with nested values, by name of the field. */
const SPECIAL: Readonly<Record<string, (value: unknown) => Converted>> = {
  memorySwap: (value) => {
    const { swapBehavior, ...rest } = isRecord(value) ? value : { other: value };
    const known = typeof swapBehavior === 'string' && ['NoSwap', 'LimitedSwap'].includes(swapBehavior);
    return {
      argument: 'memory-swap-behavior',
      values: known && Object.keys(rest).length === 0 ? [swapBehavior] : undefined,
    };
  },
  reservedMemory: (value) => ({
    argument: 'reserved-memory',
    values: Array.isArray(value) ? allOrNone(value.map(reservationOf)) : undefined,
  }),
};

function reservationOf(item: unknown): string | undefined {
  if (!isRecord(item)) return undefined;
  const { numaNode, limits } = item;
  const memory = isRecord(limits) ? limits['memory'] : undefined;
  if (!Number.isInteger(numaNode) || typeof memory !== 'string' || !isQuantity(memory)) return undefined;
  return `${String(numaNode)}:memory=${memory}`;
}

function pairs(value: unknown, separator: string, holds: (text: string) => boolean): readonly string[] | undefined {
  if (!isRecord(value)) return undefined;
  return allOrNone(
    Object.entries(value).map(([key, each]) =>
      /^[A-Za-z0-9][A-Za-z0-9./_-]*$/.test(key) && typeof each === 'string' && holds(each)
        ? `${key}${separator}${each}`
        : undefined,
    ),
  );
}

function allOrNone(values: readonly (string | undefined)[]): readonly string[] | undefined {
  const known = values.filter((each) => each !== undefined);
  return known.length === values.length ? known : undefined;
}

const isRecord = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 1_000_000_000;

const isDuration = (value: unknown): value is string => typeof value === 'string' && (parseDuration(value) ?? -1) >= 0;

const isQuantity = (text: string): boolean => tryParseQuantity(text) !== undefined;

const isPercentage = (text: string): boolean => /^\d{1,3}(\.\d+)?%$/.test(text);

function isZero(value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === 0 || value === '0s') return true;
  return typeof value === 'object' && Object.values(value).every((each) => isZero(each) || each === false);
}

/**
 * Whether a value is unset: like `isZero`, but `0` also counts, because it is no valid CPU quantity or threshold here.
 */
function isUnset(value: unknown): boolean {
  if (value === '0' || isZero(value)) return true;
  return typeof value === 'object' && value !== null && Object.values(value).every((each) => isUnset(each));
}

const shown = (value: unknown): string =>
  typeof value === 'string' ? value.slice(0, 100) : (JSON.stringify(value) ?? '').slice(0, 100);

export interface SplitArguments {
  /** Fields of a KubeletConfiguration. */
  readonly config: JsonObject;
  /** Arguments that correspond to no field. The host applies them itself. */
  readonly rest: Readonly<Record<string, readonly string[]>>;
}

/** Converts the arguments of a NodeConfig to fields of a KubeletConfiguration. */
export function kubeletFields(given: Readonly<Record<string, readonly string[]>>): SplitArguments {
  const config: Record<string, JsonValue> = {};
  const rest: Record<string, readonly string[]> = {};
  for (const [argument, values] of Object.entries(given)) {
    const [name, value] = fieldOf(argument, values) ?? [];
    // The host keeps an argument that would not convert back to the same value.
    const back = name === undefined || value === undefined ? undefined : kubeletArguments({ [name]: value });
    if (name === undefined || value === undefined || back === undefined || 'error' in back || isZero(value))
      rest[argument] = values;
    else config[name] = value;
  }
  return { config, rest };
}

function fieldOf(argument: string, values: readonly string[]): readonly [string, JsonValue] | undefined {
  const [first = ''] = values;
  const parts = values.flatMap((each) => each.split(',')).filter((each) => each !== '');
  if (argument === 'memory-swap-behavior') return ['memorySwap', { swapBehavior: first }];
  const entry = Object.entries(FIELDS).find(([, [name]]) => name === argument);
  if (entry === undefined) return undefined;
  const [field, [, form]] = entry;
  if (form === 'list') return [field, parts];
  if (form === 'quantities' || form === 'thresholds' || form === 'durations') {
    const separator = form === 'thresholds' ? '<' : '=';
    const items = parts.map((each) => [
      each.split(separator, 1)[0] ?? '',
      each.split(separator).slice(1).join(separator),
    ]);
    return [field, Object.fromEntries(items) as JsonObject];
  }
  if (values.length !== 1) return undefined;
  if (form === 'limit' && first === '-1') return [field, -1];
  if (form === 'count' || form === 'limit') return [field, /^\d{1,9}$/.test(first) ? Number(first) : first];
  if (form === 'flag') return [field, first === 'true' ? true : first === 'false' ? false : first];
  return [field, first];
}
