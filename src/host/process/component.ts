/** Process of a control-plane component: reads its configuration, starts it, and stops it at a signal. */
import { CodedError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { readMasterLogLevel } from '../config/master-env.ts';
import { canonicalRoot, pathsBelow } from '../config/paths.ts';
import type { Component, ComponentOptions } from '../controllers/server.ts';
import { diagnosticsBelow, serveDiagnostics } from './diagnostics.ts';
import { collectLessOften, collectWhenIdle, keepYoungGenerationSmall, scavengeAlone, YOUNG_BYTES } from './heap.ts';
import { createProcessLog, endOnDefect, scrubEnvironment, settlesWithin, untilSignal, watchLag } from './process.ts';
import { excludeSlowKeyExchanges } from './tls.ts';

export interface ComponentFlags {
  readonly root: string | undefined;
  readonly configFile: string | undefined;
  readonly envFile: string | undefined;
  readonly logLevel: number | undefined;
}

/** Time limit of a stop. It is longer than an orderly stop and shorter than the grace period of the static pod. */
const STOP_TIMEOUT_MS = 8_000;

type Start = (onFatal: (error: Error) => void) => Promise<Component>;

/** Loads a component on demand, so that its process does not load the code of other components. */
type LoadComponent = () => Promise<(options: ComponentOptions) => Promise<Component>>;

/** Runs the component until a signal. Resolves with the exit code. Throws CodedErrors of the configuration. */
export async function runComponent(
  name: 'api' | 'controllers',
  load: LoadComponent,
  flags: ComponentFlags,
): Promise<number> {
  const root = await canonicalRoot(flags.root);
  const paths = pathsBelow(root);
  const level = flags.logLevel ?? (await readMasterLogLevel(flags.envFile ?? paths.masterEnv)) ?? 2;
  const log: Log = createProcessLog(name === 'api' ? 'apiserver' : name, level);
  if (name === 'api') keepYoungGenerationSmall(YOUNG_BYTES.api);
  return runUntilSignal(log, async (onFatal) => {
    await serveDiagnostics(diagnosticsBelow(root), name, log);
    const start = await load();
    return start({
      configFile: flags.configFile ?? paths.masterConfig,
      agentSocket: paths.agentSocket,
      places: paths,
      log,
      onFatal,
    });
  });
}

/**
 * Whether the store member was removed from its cluster. The process then exits with 0, as etcd does, because a restart
 * would fail.
 */
export function hasLeft(error: unknown): boolean {
  return error instanceof CodedError && error.code === 'removed';
}

/** Starts the component and stops it at a signal or after a fatal error. */
export async function runUntilSignal(log: Log, start: Start): Promise<number> {
  scrubEnvironment();
  excludeSlowKeyExchanges();
  endOnDefect(log);
  const lag = watchLag(log);
  // Keeps the process running until its servers listen.
  const hold = setInterval(() => {}, 1 << 30);
  const interrupted = untilSignal(log);
  let failed: Error | undefined;
  const fatal = Promise.withResolvers<void>();
  try {
    const starting = start((error) => {
      failed = error;
      fatal.resolve();
    });
    // A signal during the start exits immediately. A component that waits for its store or API server has no state to
    // save.
    const component = await Promise.race([starting, interrupted.signal.then(() => undefined)]);
    if (component === undefined) process.exit(0);
    collectLessOften();
    collectWhenIdle();
    scavengeAlone();
    await Promise.race([interrupted.signal, fatal.promise]);
    const ms = STOP_TIMEOUT_MS + (component.patienceMs ?? 0);
    if (!(await settlesWithin(component.stop(), ms))) log.warn('component did not stop in time', { ms });
  } finally {
    interrupted.dispose();
    lag.stop();
    clearInterval(hold);
  }
  if (failed !== undefined) log.error('component failed', { error: failed.message });
  // The process exits explicitly, because open handles of libraries would keep it running.
  process.exit(failed === undefined || hasLeft(failed) ? 0 : 1);
}
