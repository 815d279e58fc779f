/** The host process: starts the host, prints progress, handles signals, and stops the host. */

import { createProgress } from '../../base/command-line/progress.ts';
import type { LogSink } from '../../base/log.ts';
import { loadSettings, type Settings } from '../config/settings.ts';
import { createLogTap, noLogTap } from '../logging/log-tap.ts';
import { selfCommand } from '../process/assets.ts';
import { trackChildren } from '../process/children.ts';
import { diagnosticsBelow, serveDiagnostics } from '../process/diagnostics.ts';
import { collectWhenIdle, scavengeAlone } from '../process/heap.ts';
import { keepWatchdog, notifyReady } from '../process/notify.ts';
import {
  createProcessLog,
  endOnDefect,
  scrubEnvironment,
  stderrSink,
  untilSignal,
  watchLag,
} from '../process/process.ts';
import { excludeSlowKeyExchanges } from '../process/tls.ts';
import { performDeparture, watchDeparture } from './departure.ts';
import { startHost } from './host.ts';
import { nextSteps } from './next-steps.ts';

export interface RunHostOptions {
  readonly root: string | undefined;
  readonly config: string | undefined;
  readonly keepPods: boolean;
  readonly logLevel: number | undefined;
  readonly write: (text: string) => void;
}

/** Runs the host. Resolves with the exit code after an orderly stop. Throws CodedErrors of the start. */
export async function runHost(options: RunHostOptions): Promise<number> {
  scrubEnvironment();
  excludeSlowKeyExchanges();
  const children = trackChildren();
  const began = performance.now();
  const settings = await loadSettings(options);
  const terminal = process.stdout.isTTY === true;
  // On a terminal, the progress steps are shown, and log lines only for warnings and errors. With --loglevel, all log
  // lines are shown.
  const sink = terminal && options.logLevel === undefined ? troubleOnly : stderrSink;
  const logTap = settings.embedded.logForward === undefined ? noLogTap : createLogTap(() => Date.now());
  const log = createProcessLog('hyperedge', settings.logLevel, logTap.sink(sink));
  const progress = createProgress({ write: options.write, terminal, nowMs: () => performance.now() });
  endOnDefect(log);
  const lag = watchLag(log);
  // Keeps the process running until its servers listen.
  const hold = setInterval(() => {}, 1 << 30);
  let watchdog = { stop: (): void => {} };
  const hurry = new AbortController();
  const interrupted = untilSignal(log, () => hurry.abort());
  const stopping = new AbortController();
  void interrupted.signal.then(() => stopping.abort());
  try {
    const reload = (): Promise<Settings> => loadSettings(options);
    const host = await startHost({ settings, log, logTap, progress, reload, signal: stopping.signal });
    await serveDiagnostics(diagnosticsBelow(settings.root), 'host', log);
    void notifyReady(process.env, log).then(() => {
      watchdog = keepWatchdog(process.env, log);
    });
    collectWhenIdle();
    scavengeAlone();
    let stopped = false;
    void host.ready.then(() => {
      if (stopped) return;
      const seconds = ((performance.now() - began) / 1000).toFixed(2);
      const steps = nextSteps({
        program: selfCommand(),
        root: settings.root,
        kubeconfig: host.kubeconfig,
        searchPath: process.env['PATH'] ?? '',
      });
      const kubeconfig = host.kubeconfig === undefined ? '' : `; kubeconfig: ${host.kubeconfig}`;
      options.write(
        [`node ${settings.nodeName} is Ready after ${seconds} s${kubeconfig}; try:`, ...steps]
          .join('\n  ')
          .concat('\n'),
      );
    });
    const current = await reload();
    const departure = watchDeparture(current, log, progress);
    const leaving = await Promise.race([departure.departs, interrupted.signal.then(() => undefined)]);
    departure.stop();
    stopped = true;
    if (leaving !== undefined) {
      await performDeparture(leaving, current, host, progress, hurry);
      await children.end(log);
      process.exit(0);
    }
    // During a shutdown of the machine, this process ends the pods in their order. Otherwise systemd would kill all of
    // them at once, including the store.
    const keepPods = options.keepPods && !host.endsPods() && !(await host.goingDown());
    progress.note(
      keepPods ? 'stopping; pods keep running' : 'stopping, pods too; a second signal kills them without grace period',
    );
    const stopProgress = createProgress({ write: options.write, terminal, nowMs: () => performance.now() });
    await host.stop({ keepPods, hurry });
    await children.end(log);
    stopProgress.step('stopped');
  } finally {
    interrupted.dispose();
    watchdog.stop();
    lag.stop();
    clearInterval(hold);
  }
  // The process exits explicitly, because open handles of libraries would keep it running.
  process.exit(0);
}

const troubleOnly: LogSink = {
  write: (line) => {
    if (!/^\S+ I /.test(line)) stderrSink.write(line);
  },
};
