/** A control-plane component as a process of its own: configuration, log, start, signal, stop. */
import { CodedError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { readMasterLogLevel } from './config/master-env.ts';
import { canonicalRoot, pathsBelow } from './config/settings.ts';
import type { Component } from './controllers/server.ts';
import { collectLessOften, collectWhenIdle, keepYoungGenerationSmall, YOUNG_BYTES } from './heap.ts';
import { createProcessLog, endOnDefect, scrubEnvironment, untilSignal, watchLag, within } from './process.ts';

export interface ComponentFlags {
  readonly root: string | undefined;
  readonly configFile: string | undefined;
  readonly envFile: string | undefined;
  readonly logLevel: number | undefined;
}

/** Longer than any orderly end takes; the kubelet's patience is longer still. */
const STOP_TIMEOUT_MS = 8_000;

type Start = (onFatal: (error: Error) => void) => Promise<Component>;

/** Loaded one at a time: the store's process holds no API server. */
const STARTS = {
  api: async () => (await import('./api/server.ts')).startApi,
  controllers: async () => (await import('./controllers/server.ts')).startControllers,
} as const;

/** Runs until a signal. Resolves with the exit code; throws CodedErrors of the configuration. */
export async function runComponent(name: keyof typeof STARTS, flags: ComponentFlags): Promise<number> {
  const paths = pathsBelow(await canonicalRoot(flags.root));
  const level = flags.logLevel ?? (await readMasterLogLevel(flags.envFile ?? paths.masterEnv)) ?? 2;
  const log: Log = createProcessLog(name === 'api' ? 'apiserver' : name, level);
  if (name === 'api') keepYoungGenerationSmall(YOUNG_BYTES.api);
  return runUntilSignal(log, async () => {
    const start = await STARTS[name]();
    return start({ configFile: flags.configFile ?? paths.masterConfig, log });
  });
}

/** A member of the store that does not belong to its cluster any more: starting it again would change nothing, so it has not failed, as with etcd. */
export function hasLeft(error: unknown): boolean {
  return error instanceof CodedError && error.code === 'removed';
}

/** Starts, and ends in order at a signal or when what runs cannot go on. */
export async function runUntilSignal(log: Log, start: Start): Promise<number> {
  scrubEnvironment();
  endOnDefect(log);
  const lag = watchLag(log);
  // Until the servers listen nothing else keeps the process alive while it waits.
  const hold = setInterval(() => {}, 1 << 30);
  const interrupted = untilSignal(log);
  let failed: Error | undefined;
  const fatal = Promise.withResolvers<void>();
  try {
    const starting = start((error) => {
      failed = error;
      fatal.resolve();
    });
    // One that still waits for its store or its API server has nothing to end in order.
    const component = await Promise.race([starting, interrupted.signal.then(() => undefined)]);
    if (component === undefined) process.exit(0);
    collectLessOften();
    collectWhenIdle();
    await Promise.race([interrupted.signal, fatal.promise]);
    const ms = STOP_TIMEOUT_MS + (component.patienceMs ?? 0);
    if (!(await within(component.stop(), ms))) log.warn('did not stop in time', { ms });
  } finally {
    interrupted.dispose();
    lag.stop();
    clearInterval(hold);
  }
  if (failed !== undefined) log.error('ended', { error: failed.message });
  // Whatever a library still holds open must not keep a stopped component from ending.
  process.exit(failed === undefined || hasLeft(failed) ? 0 : 1);
}
