/** The host process from its first line to its last: start, what the user sees, signals, stop. */
import type { LogSink } from '../../base/log.ts';
import { loadSettings } from '../config/settings.ts';
import { collectWhenIdle } from '../heap.ts';
import { createProcessLog, endOnDefect, scrubEnvironment, stderrSink, untilSignal, watchLag } from '../process.ts';
import { startHost } from './host.ts';
import { createProgress } from './progress.ts';

export interface RunHostOptions {
  readonly root: string | undefined;
  readonly config: string | undefined;
  readonly keepPods: boolean;
  readonly logLevel: number | undefined;
  readonly write: (text: string) => void;
}

/** Resolves with the exit code after an orderly stop; throws CodedErrors of the start. */
export async function runHost(options: RunHostOptions): Promise<number> {
  scrubEnvironment();
  const began = performance.now();
  const settings = await loadSettings(options);
  const terminal = process.stdout.isTTY === true;
  // On a terminal the steps are for people; the log joins them only when something is wrong or when it was asked for.
  const sink = terminal && options.logLevel === undefined ? troubleOnly : stderrSink;
  const log = createProcessLog('hyperedge', settings.logLevel, sink);
  const progress = createProgress({ write: options.write, terminal, nowMs: () => performance.now() });
  endOnDefect(log);
  const lag = watchLag(log);
  // Until servers listen nothing else keeps the process alive while it waits.
  const hold = setInterval(() => {}, 1 << 30);
  const hurry = new AbortController();
  const interrupted = untilSignal(log, () => hurry.abort());
  try {
    const host = await startHost({ settings, log, progress });
    collectWhenIdle();
    let stopped = false;
    void host.ready.then(() => {
      if (stopped) return;
      const seconds = ((performance.now() - began) / 1000).toFixed(2);
      options.write(
        `node ${settings.nodeName} is Ready after ${seconds} s; kubeconfig: ${host.kubeconfig}; try:\n` +
          `  kubectl --kubeconfig ${host.kubeconfig} get nodes,pods -A\n` +
          `  kubectl --kubeconfig ${host.kubeconfig} apply -f examples/hello.yaml\n` +
          `  kubectl --kubeconfig ${host.kubeconfig} -n kube-system logs master-api-${settings.nodeName}\n`,
      );
    });
    await interrupted.signal;
    stopped = true;
    // When the machine goes down nobody else ends the pods in their order: systemd would kill them all at once, the store with them.
    const keepPods = options.keepPods && !(await host.goingDown());
    progress.note(keepPods ? 'stopping; pods go on running' : 'stopping, pods too; once more ends them without grace');
    await host.stop({ keepPods, hurry });
    progress.step('stopped');
  } finally {
    interrupted.dispose();
    lag.stop();
    clearInterval(hold);
  }
  // Whatever a library still holds open must not keep a stopped host from ending.
  process.exit(0);
}

const troubleOnly: LogSink = {
  write: (line) => {
    if (!/^\S+ I /.test(line)) stderrSink.write(line);
  },
};
