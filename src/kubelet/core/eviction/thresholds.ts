/**
 * Eviction thresholds of a node. Source: pkg/kubelet/eviction/{api/types.go,helpers.go}; "Node-pressure Eviction" in
 * the Kubernetes documentation.
 */
import { quantityValue, tryParseQuantity } from '../../../base/quantity.ts';

export const SIGNALS = [
  'memory.available',
  'nodefs.available',
  'nodefs.inodesFree',
  'imagefs.available',
  'imagefs.inodesFree',
  'pid.available',
] as const;
export type Signal = (typeof SIGNALS)[number];

/** Resource to reclaim for a signal, with its name in messages. */
export type EvictionResource = 'memory' | 'ephemeral-storage' | 'inodes' | 'pids';

export const RESOURCE_OF: Readonly<Record<Signal, EvictionResource>> = {
  'memory.available': 'memory',
  'nodefs.available': 'ephemeral-storage',
  'nodefs.inodesFree': 'inodes',
  'imagefs.available': 'ephemeral-storage',
  'imagefs.inodesFree': 'inodes',
  'pid.available': 'pids',
};

export type Pressure = 'MemoryPressure' | 'DiskPressure' | 'PIDPressure';

export const PRESSURE_OF: Readonly<Record<Signal, Pressure>> = {
  'memory.available': 'MemoryPressure',
  'nodefs.available': 'DiskPressure',
  'nodefs.inodesFree': 'DiskPressure',
  'imagefs.available': 'DiskPressure',
  'imagefs.inodesFree': 'DiskPressure',
  'pid.available': 'PIDPressure',
};

/** Bytes, inodes or processes; or a fraction of the capacity between 0 and 1, exclusive. */
export type Amount = { readonly quantity: number } | { readonly fraction: number };

export interface Threshold {
  readonly signal: Signal;
  /** The threshold is met if less than this is available. */
  readonly value: Amount;
  /** Undefined for a hard threshold, which evicts at once without a grace period for pods. */
  readonly gracePeriodMs?: number;
  /** Amount above the threshold that must be available before reclaiming ends. */
  readonly minimumReclaim?: Amount;
}

export interface EvictionSettings {
  readonly thresholds: readonly Threshold[];
  /** Time for which a condition persists after its thresholds were last met. */
  readonly pressureTransitionMs: number;
  /** Maximum grace period of pods evicted for a soft threshold. */
  readonly maxPodGraceSeconds: number;
}

/**
 * Upstream's hard thresholds on Linux, and one for `pid.available`, for which upstream has no default. Source:
 * pkg/kubelet/apis/config/v1beta1/defaults_linux.go.
 */
export const DEFAULT_HARD: Readonly<Record<Signal, string>> = {
  'memory.available': '100Mi',
  'nodefs.available': '10%',
  'nodefs.inodesFree': '5%',
  'imagefs.available': '15%',
  'imagefs.inodesFree': '5%',
  'pid.available': '10%',
};

export const DEFAULT_PRESSURE_TRANSITION_MS = 300_000;

export interface ThresholdArguments {
  /** Replaces all of `DEFAULT_HARD`, like upstream's flag; undefined for the defaults. */
  readonly hard?: Readonly<Record<string, string>>;
  readonly soft?: Readonly<Record<string, string>>;
  /** Milliseconds. */
  readonly softGracePeriods?: Readonly<Record<string, number>>;
  readonly minimumReclaim?: Readonly<Record<string, string>>;
}

/** Throws a RangeError with upstream's message, which names the argument. Source: helpers.go ParseThresholdConfig. */
export function parseThresholds(args: ThresholdArguments): readonly Threshold[] {
  const { hard = DEFAULT_HARD, soft = {}, softGracePeriods = {}, minimumReclaim = {} } = args;
  const reclaim = new Map<Signal, Amount>();
  for (const [name, text] of Object.entries(minimumReclaim)) {
    reclaim.set(
      signalOf('eviction-minimum-reclaim', name),
      amountOf('eviction-minimum-reclaim', name, text, { mayBeNothing: true }),
    );
  }
  for (const name of Object.keys(softGracePeriods)) signalOf('eviction-soft-grace-period', name);
  const thresholds: Threshold[] = [];
  const add = (argument: string, name: string, text: string, gracePeriodMs: number | undefined): void => {
    const signal = signalOf(argument, name);
    // These values disable a threshold, as in upstream.
    if (text === '0%' || text === '100%') return;
    const minimum = reclaim.get(signal);
    thresholds.push({
      signal,
      value: amountOf(argument, name, text, { mayBeNothing: false }),
      ...(gracePeriodMs === undefined ? {} : { gracePeriodMs }),
      ...(minimum === undefined ? {} : { minimumReclaim: minimum }),
    });
  };
  for (const [name, text] of Object.entries(hard)) add('eviction-hard', name, text, undefined);
  for (const [name, text] of Object.entries(soft)) {
    const gracePeriodMs = Object.hasOwn(softGracePeriods, name) ? softGracePeriods[name] : undefined;
    if (gracePeriodMs === undefined)
      throw new RangeError(`eviction-soft: grace period must be specified for the soft eviction threshold ${name}`);
    add('eviction-soft', name, text, gracePeriodMs);
  }
  return thresholds;
}

function signalOf(argument: string, name: string): Signal {
  const signal = SIGNALS.find((each) => each === name);
  if (signal === undefined)
    throw new RangeError(`${argument}: unsupported eviction signal ${name}; use one of ${SIGNALS.join(', ')}`);
  return signal;
}

function amountOf(
  argument: string,
  name: string,
  text: string,
  { mayBeNothing }: { readonly mayBeNothing: boolean },
): Amount {
  const percent = /^(\d+(?:\.\d+)?)%$/.exec(text)?.[1];
  if (percent !== undefined) {
    const fraction = Number(percent) / 100;
    if (fraction < 0 || (fraction === 0 && !mayBeNothing) || fraction >= 1)
      throw new RangeError(`${argument}: eviction percentage threshold ${name} must be between 0% and 100%: ${text}`);
    return { fraction };
  }
  const quantity = tryParseQuantity(text);
  if (quantity === undefined)
    throw new RangeError(`${argument}: ${name}: "${text}" is neither a quantity such as 100Mi nor a percentage`);
  const value = quantityValue(quantity);
  if (value < 0 || (value === 0 && !mayBeNothing))
    throw new RangeError(`${argument}: eviction threshold ${name} must be positive: ${text}`);
  return { quantity: value };
}

/** Converts an amount to the unit of its signal. */
export function absolute(amount: Amount, capacity: number): number {
  return 'quantity' in amount ? amount.quantity : Math.floor(capacity * amount.fraction);
}
