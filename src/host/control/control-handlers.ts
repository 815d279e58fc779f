/** Handlers of the control socket: status of this host and restarts of control-plane components. */
import { CodedError, messageOf } from '../../base/errors.ts';
import type { StartStage } from '../../base/services.ts';
import { PRODUCT_VERSION } from '../../base/versions/version.ts';
import { type ApiClient, checkReady } from '../../client/index.ts';
import type { Kubelet } from '../../kubelet/index.ts';
import { masterFiles, nodeFiles } from '../../pki/index.ts';
import type { ContainerStatus } from '../../runtime/port.ts';
import type { ScheduledSnapshots } from '../../store/administration/schedule.ts';
import type { HostAlerts } from '../alerts/alerts.ts';
import type { PendingRestart } from '../config/pending-restart.ts';
import type { Settings } from '../config/settings.ts';
import type { HostRuntime } from '../node/runtime.ts';
import { failedRevisions } from '../openshift/revision-archive.ts';
import type { ControlPlaneRevisions } from '../openshift/revisions.ts';
import { COMPONENTS } from '../process/component-names.ts';
import { systemClock as clock } from '../process/process.ts';
import type { VersionReport } from '../run/version-skew.ts';
import type { ControlHandlers, HostStatus } from './control.ts';
import { controlPlaneContainers, endContainer, newestRunsFirst } from './restart-component.ts';
import { waitUntilRestarted } from './restart-outcome.ts';
import { storeLayout } from './store-layout.ts';
import type { SubmittedPods } from './submitted-pods.ts';

export interface ControlContext {
  /** Returns the settings with the current addresses. */
  readonly settings: () => Settings;
  readonly runtime: HostRuntime;
  readonly kubelet: Kubelet;
  readonly startedAt: string;
  readonly stages: readonly StartStage[];
  readonly driver: string;
  readonly client: ApiClient;
  readonly versions: () => Promise<VersionReport>;
  readonly snapshots: ScheduledSnapshots;
  readonly endPods: () => void;
  readonly submitted: SubmittedPods;
  readonly revisions: ControlPlaneRevisions;
  readonly alerts: HostAlerts;
  readonly pendingRestart: () => Promise<PendingRestart | undefined>;
}

const READY_PROBE_MS = 3_000;

/** Each component's container with the newest run. */
function newestOfEach(containers: readonly ContainerStatus[]): ContainerStatus[] {
  return COMPONENTS.flatMap((name) =>
    newestRunsFirst(
      containers.filter((container) => container.name === name),
      clock.nowMs(),
    ).slice(0, 1),
  );
}

/**
 * Reason why this host is not ready. It is determined at the request, because the Node's condition is stale while the
 * host is disconnected or the store has no quorum.
 */
async function reasonNotReady(client: ApiClient, kubelet: Kubelet): Promise<string | undefined> {
  try {
    await checkReady(client, AbortSignal.timeout(READY_PROBE_MS));
  } catch (error) {
    return `the API server is not ready: ${messageOf(error).split('\n')[0]}`;
  }
  return kubelet.isNodeReady ? undefined : 'the node is not Ready; see kubectl describe node';
}

export function controlHandlers({
  settings,
  runtime,
  kubelet,
  startedAt,
  stages,
  driver,
  client,
  versions,
  snapshots,
  endPods,
  submitted,
  revisions,
  alerts,
  pendingRestart,
}: ControlContext): ControlHandlers {
  const { root, nodeName, roles } = settings();
  const controlPlane = () => controlPlaneContainers(runtime);
  return {
    status: async (): Promise<HostStatus> => {
      const containers = await controlPlane();
      const components = newestOfEach(containers);
      const stopped = components.find((container) => container.state !== 'running');
      // In parallel, because each request may wait for a server that does not answer.
      const [store, reason, kubernetes, pending] = await Promise.all([
        storeLayout(settings()),
        stopped === undefined ? reasonNotReady(client, kubelet) : `${stopped.name} does not run`,
        versions(),
        pendingRestart(),
      ]);
      return {
        pid: process.pid,
        version: PRODUCT_VERSION,
        kubernetes,
        root,
        node: nodeName,
        nodeIp: settings().nodeIp,
        startedAt,
        startStages: stages,
        ready: reason === undefined,
        ...(reason === undefined ? {} : { notReady: reason }),
        cgroupDriver: driver,
        kubeconfig: roles.has('master') ? masterFiles(root).adminKubeconfig : nodeFiles(root).kubeconfig,
        components: components.map(({ name, state, attempt, startedAtMs, pid }) => ({
          name,
          state,
          restarts: attempt,
          startedAt: startedAtMs === 0 ? '' : new Date(startedAtMs).toISOString(),
          pid,
        })),
        failedRevisions: await failedRevisions(settings().paths.staticPodResources),
        ...(store === undefined ? {} : { store }),
        ...(pending === undefined ? {} : { pendingRestart: pending }),
      };
    },
    alerts: () => ({ node: nodeName, ...alerts.engine.report() }),
    kubelet: () => kubelet.report(),
    endPods,
    reloadSnapshots: () => snapshots.reload(),
    submitted,
    restart: async (component: string): Promise<void> => {
      const [before] = newestOfEach(await controlPlane()).filter(({ name }) => name === component);
      if (before === undefined)
        throw new CodedError('not-found', `${component}: no such component on this host; see hyperedge status`);
      const sinceMs = clock.nowMs();
      await revisions.adoptNow(component);
      await endContainer(runtime, kubelet, before);
      await waitUntilRestarted({
        settings: settings(),
        runtime,
        kubelet,
        component: before.name,
        before: before.id,
        sinceMs,
      });
    },
  };
}
