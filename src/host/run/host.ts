/** `hyperedge run`: starts the services of this host in an order that respects their dependencies, and stops them. */

import type { Progress } from '../../base/command-line/progress.ts';
import { CodedError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { type StartStage, serviceList, startServices } from '../../base/services.ts';
import { raiseWatchLimits } from '../../kubelet/io/host-facts/index.ts';
import { masterFiles } from '../../pki/index.ts';
import type { Settings } from '../config/settings.ts';
import type { LogTap } from '../logging/log-tap.ts';
import { systemClock as clock } from '../process/process.ts';
import { isMachineShuttingDown, stopInTime } from './host-stop.ts';
import { clusterAccess } from './services/cluster-access.ts';
import { extensions } from './services/extensions.ts';
import { node } from './services/node.ts';
import { preparation } from './services/preparation.ts';
import { slowStages } from './start-stages.ts';

export interface Host {
  /** Resolves when the Node was reported Ready for the first time. */
  readonly ready: Promise<void>;
  /** Path of the administrator's kubeconfig; undefined on a host that is not a master. */
  readonly kubeconfig: string | undefined;
  /** Whether a reset or uninstall has requested that the stop ends the pods. */
  endsPods(): boolean;
  /** Whether the machine is being shut down or rebooted. */
  goingDown(): Promise<boolean>;
  /**
   * Stops the host. Pods are killed without their grace periods when `hurry` is aborted or when the time limit expires.
   */
  stop(options: { readonly keepPods: boolean; readonly hurry: AbortController }): Promise<void>;
}

export interface HostOptions {
  readonly settings: Settings;
  readonly log: Log;
  readonly progress: Progress;
  /** Stores copies of the log lines of this process for log forwarding. */
  readonly logTap: LogTap;
  /** Reads the settings again. Called after this host has joined a cluster. */
  readonly reload: () => Promise<Settings>;
  /** Aborted if the process is stopped before the host has started. */
  readonly signal: AbortSignal;
}

export const HOST_SERVICES = serviceList([...preparation, ...clusterAccess, ...node, ...extensions]);

/**
 * Starts the services. Throws CodedErrors of one line; then the services that have started are stopped, and their pods
 * keep running.
 */
export async function startHost({
  settings: given,
  log,
  logTap,
  progress,
  reload,
  signal,
}: HostOptions): Promise<Host> {
  if (process.geteuid?.() !== 0) {
    throw new CodedError('not-root', 'hyperedge run creates cgroups and containers; start it as root');
  }
  if (!given.roles.has('node')) {
    throw new CodedError(
      'bad-config',
      `${given.bootstrapFile}: roles: a host without the node role runs no pods; start hyperedge etcd instead`,
    );
  }
  await raiseWatchLimits(log);
  const stages: StartStage[] = [];
  const context = { given, startedAt: new Date().toISOString(), log, logTap, progress, reload, signal, stages };
  const { values, stop } = await startServices(HOST_SERVICES, context, {
    clock,
    log: log.named('start'),
    onFailure: { keepPods: true, hurry: AbortSignal.abort() },
    started: (stage) => stages.push(stage),
  });
  progress.summary(slowStages(stages));
  const { settings, serviceManager, instanceLock, kubelet, podNetwork, clusterRecord } = values;
  return {
    ready: Promise.all([kubelet.nodeReady, podNetwork.synced, clusterRecord.recorded]).then(() => {}),
    kubeconfig: settings.roles.has('master') ? masterFiles(settings.root).adminKubeconfig : undefined,
    endsPods: () => values.control.endsPods(),
    goingDown: async () => serviceManager !== undefined && isMachineShuttingDown(serviceManager, log),
    stop: async ({ keepPods, hurry }) => {
      const stopped = await stopInTime(stop({ keepPods, hurry: hurry.signal }), hurry, log);
      if (!stopped) await instanceLock.release();
    },
  };
}
