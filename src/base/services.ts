/**
 * A process as a list of services. Each service names the services that it needs. The start order follows from these
 * needs, and the stop order is the reverse. The list is checked when it is built, before any service starts.
 */

import { messageOf } from './errors.ts';
import type { Log } from './log.ts';
import type { Clock } from './time/clock.ts';

/** Maximum time for which a service is awaited after a second stop signal. */
const HURRIED_MS = 10_000;

/** How the services stop. */
export interface StopMode {
  /** Aborted by a second stop signal. */
  readonly hurry: AbortSignal;
}

/** A service. `Values` maps the name of each service to the value that its start returns. */
export interface Service<Context, Values, Mode extends StopMode, Name extends keyof Values, Need extends keyof Values> {
  readonly name: Name;
  /** Services that must start before this service, because it uses their values or effects. */
  readonly needs: readonly Need[];
  /** A service that starts earlier. This service stops in parallel with it instead of in reverse start order. */
  readonly stopsWith?: keyof Values;
  /** Time limit of the stop. */
  readonly stopMs?: number | ((mode: Mode) => number);
  start(needs: Pick<Values, Need>, context: Context): Values[Name] | Promise<Values[Name]>;
  stop?(value: Values[Name], mode: Mode): void | Promise<void>;
}

export type AnyService<Context, Values, Mode extends StopMode> = Service<
  Context,
  Values,
  Mode,
  keyof Values,
  keyof Values
>;

/** Type of a function that defines a service. The start of the service receives exactly the values that it needs. */
export type DefineService<Context, Values, Mode extends StopMode> = <
  Name extends keyof Values,
  const Need extends keyof Values = never,
>(
  service: Service<Context, Values, Mode, Name, Need>,
) => AnyService<Context, Values, Mode>;

export function serviceDefiner<Context, Values, Mode extends StopMode>(): DefineService<Context, Values, Mode> {
  return (service) => service;
}

/** Services in the order of their start. */
export type ServiceList<Context, Values, Mode extends StopMode> = readonly AnyService<Context, Values, Mode>[];

/**
 * Orders services by their needs. Services that do not depend on each other keep their order. Throws an Error for a
 * repeated name, an unknown need or a cycle.
 */
export function serviceList<Context, Values, Mode extends StopMode>(
  services: ServiceList<Context, Values, Mode>,
): ServiceList<Context, Values, Mode> {
  const names = new Set<keyof Values>();
  for (const { name } of services) {
    if (names.has(name)) throw new Error(`service ${String(name)}: listed twice`);
    names.add(name);
  }
  for (const service of services) {
    for (const need of needsOf(service))
      if (!names.has(need)) throw new Error(`service ${String(service.name)}: needs unknown service ${String(need)}`);
  }
  const ordered: AnyService<Context, Values, Mode>[] = [];
  const placed = new Set<keyof Values>();
  let waiting = [...services];
  while (waiting.length > 0) {
    const next = waiting.find((service) => needsOf(service).every((need) => placed.has(need)));
    if (next === undefined) throw new Error(`services need each other: ${cycleOf(waiting).join(' → ')}`);
    ordered.push(next);
    placed.add(next.name);
    waiting = waiting.filter((service) => service !== next);
  }
  return ordered;
}

function needsOf<Context, Values, Mode extends StopMode>({
  needs,
  stopsWith,
}: AnyService<Context, Values, Mode>): readonly (keyof Values)[] {
  return stopsWith === undefined ? needs : [...needs, stopsWith];
}

/** Finds a cycle. `waiting`: services that need at least one other service in this list. */
function cycleOf<Context, Values, Mode extends StopMode>(waiting: ServiceList<Context, Values, Mode>): string[] {
  const byName = new Map(waiting.map((service) => [service.name, service]));
  const path: (keyof Values)[] = [];
  let current = waiting[0];
  while (current !== undefined && !path.includes(current.name)) {
    path.push(current.name);
    current = byName.get(needsOf(current).find((need) => byName.has(need)) ?? current.name);
  }
  const first = current === undefined ? 0 : path.indexOf(current.name);
  return [...path.slice(first), path[first] ?? ''].map(String);
}

/** A service that has started, and the duration of its start. */
export interface StartStage {
  readonly name: string;
  readonly ms: number;
}

export interface StartOptions<Mode extends StopMode> {
  readonly clock: Clock;
  readonly log: Log;
  /** Stop mode for services that have already started when another service fails to start. */
  readonly onFailure: Mode;
  /** Called after each service has started. */
  readonly started?: (stage: StartStage) => void;
}

export interface RunningServices<Values, Mode extends StopMode> {
  readonly values: Values;
  /**
   * Stops the services in reverse order of their start. A service that fails to stop is logged, and the others still
   * stop. Only the first call has an effect.
   */
  stop(mode: Mode): Promise<void>;
}

/**
 * Starts the services one after the other. If a service fails, the started services are stopped and the error is
 * thrown.
 */
export async function startServices<Context, Values, Mode extends StopMode>(
  services: ServiceList<Context, Values, Mode>,
  context: Context,
  { clock, log, onFailure, started }: StartOptions<NoInfer<Mode>>,
): Promise<RunningServices<Values, Mode>> {
  const values: Partial<Values> = {};
  const stack = new AsyncDisposableStack();
  const groups = new Map<keyof Values, ((mode: Mode) => Promise<void>)[]>();
  let stopMode = onFailure;
  let stopping: Promise<void> | undefined;
  const stop = (mode: Mode): Promise<void> => {
    stopMode = mode;
    stopping ??= stack.disposeAsync();
    return stopping;
  };
  /** Adds the service to the group of services with which it stops. */
  const stopLater = (service: AnyService<Context, Values, Mode>, value: Values[keyof Values]): void => {
    const stopOne = (mode: Mode): Promise<void> => stopService(service, value, mode, clock, log);
    const joined = service.stopsWith === undefined ? undefined : groups.get(service.stopsWith);
    const group = joined ?? [];
    group.push(stopOne);
    groups.set(service.name, group);
    if (joined === undefined) stack.defer(async () => void (await Promise.all(group.map((each) => each(stopMode)))));
  };
  try {
    for (const service of services) {
      const began = clock.monotonicMs();
      const value = await service.start(values as Values, context);
      values[service.name] = value;
      stopLater(service, value);
      const stage = { name: String(service.name), ms: Math.round(clock.monotonicMs() - began) };
      log.v(4, 'service started', { service: stage.name, ms: stage.ms });
      started?.(stage);
    }
  } catch (error) {
    await stop(onFailure);
    throw error;
  }
  return { values: values as Values, stop };
}

async function stopService<Context, Values, Mode extends StopMode>(
  service: AnyService<Context, Values, Mode>,
  value: Values[keyof Values],
  mode: Mode,
  clock: Clock,
  log: Log,
): Promise<void> {
  if (service.stop === undefined) return;
  const name = String(service.name);
  const limitMs = typeof service.stopMs === 'function' ? service.stopMs(mode) : service.stopMs;
  try {
    const done = Promise.resolve(service.stop(value, mode));
    if (!(await inTime(done, limitMs, mode.hurry, clock))) log.warn('service not stopped in time', { service: name });
  } catch (error) {
    log.warn('service not stopped', { service: name, error: messageOf(error) });
  }
}

/** Waits for `done`. Returns false if the time limit expires first, or `HURRIED_MS` after `hurry` was aborted. */
async function inTime(
  done: Promise<void>,
  limitMs: number | undefined,
  hurry: AbortSignal,
  clock: Clock,
): Promise<boolean> {
  const late = Promise.withResolvers<false>();
  const expire = (): void => late.resolve(false);
  const timers = limitMs === undefined ? [] : [clock.setTimer(limitMs, expire)];
  const hurried = (): void => void timers.push(clock.setTimer(HURRIED_MS, expire));
  if (hurry.aborted) hurried();
  else hurry.addEventListener('abort', hurried);
  try {
    return await Promise.race([done.then(() => true), late.promise]);
  } finally {
    hurry.removeEventListener('abort', hurried);
    for (const timer of timers) timer.cancel();
  }
}
