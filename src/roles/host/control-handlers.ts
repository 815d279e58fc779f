/** What the control socket serves: status of this host and restarts of control-plane components. */
import { CodedError } from '../../base/errors.ts';
import { PRODUCT_VERSION } from '../../base/version.ts';
import type { ScheduledSnapshots } from '../../components/etcd/administration/schedule.ts';
import type { Kubelet } from '../../components/kubelet/index.ts';
import type { ContainerStatus } from '../../core/podplan/port.ts';
import { masterFiles, nodeFiles } from '../../io/pki/index.ts';
import { COMPONENTS } from '../component-names.ts';
import type { Settings } from '../config/settings.ts';
import { within } from '../process.ts';
import type { ControlHandlers, HostStatus } from './control.ts';
import { controlPlaneContainers, endContainer } from './restart-component.ts';
import type { ControlPlaneRevisions } from './revisions.ts';
import type { HostRuntime } from './runtime.ts';
import type { SubmittedPods } from './submitted-pods.ts';
import type { VersionReport } from './version-skew.ts';

export interface ControlContext {
  /** With the present addresses. */
  readonly settings: () => Settings;
  readonly runtime: HostRuntime;
  readonly kubelet: Kubelet;
  readonly startedAt: string;
  readonly driver: string;
  readonly isReady: () => boolean;
  readonly versions: () => Promise<VersionReport>;
  readonly snapshots: ScheduledSnapshots;
  readonly endPods: () => void;
  readonly submitted: SubmittedPods;
  readonly revisions: ControlPlaneRevisions;
}

const RESTART_TIMEOUT_MS = 10_000;

/** The newest container of each component. */
function newestOfEach(containers: readonly ContainerStatus[]): ContainerStatus[] {
  return COMPONENTS.flatMap((name) => {
    const runs = containers.filter((container) => container.name === name);
    return runs.sort((left, right) => right.createdAtMs - left.createdAtMs).slice(0, 1);
  });
}

export function controlHandlers({
  settings,
  runtime,
  kubelet,
  startedAt,
  driver,
  isReady,
  versions,
  snapshots,
  endPods,
  submitted,
  revisions,
}: ControlContext): ControlHandlers {
  const { root, nodeName, roles } = settings();
  const controlPlane = () => controlPlaneContainers(runtime);
  return {
    status: async (): Promise<HostStatus> => {
      const containers = await controlPlane();
      const components = newestOfEach(containers);
      return {
        pid: process.pid,
        version: PRODUCT_VERSION,
        kubernetes: await versions(),
        root,
        node: nodeName,
        nodeIp: settings().nodeIp,
        startedAt,
        // The Node's last Ready condition may be stale when the control plane does not run.
        ready: isReady() && components.every((container) => container.state === 'running'),
        cgroupDriver: driver,
        kubeconfig: roles.has('master') ? masterFiles(root).adminKubeconfig : nodeFiles(root).kubeconfig,
        components: components.map(({ name, state, attempt, startedAtMs, pid }) => ({
          name,
          state,
          restarts: attempt,
          startedAt: startedAtMs === 0 ? '' : new Date(startedAtMs).toISOString(),
          pid,
        })),
      };
    },
    endPods,
    reloadSnapshots: () => snapshots.reload(),
    submitted,
    restart: async (component: string): Promise<void> => {
      const [before] = newestOfEach(await controlPlane()).filter(({ name }) => name === component);
      if (before === undefined)
        throw new CodedError('not-found', `${component}: no such component on this host; see hyperedge status`);
      const changed = Promise.withResolvers<void>();
      const started = async (): Promise<void> => {
        const [now] = newestOfEach(await controlPlane()).filter(({ name }) => name === component);
        if (now !== undefined && now.id !== before.id && now.state === 'running') changed.resolve();
      };
      const unsubscribe = runtime.runtime.onChange(() => void started().catch(changed.reject));
      try {
        await revisions.adoptNow(component);
        await endContainer(runtime, kubelet, before);
        if (!(await within(changed.promise, RESTART_TIMEOUT_MS))) {
          throw new CodedError(
            'not-started',
            `${component}: stopped and did not start again; see master-logs ${component}`,
          );
        }
      } finally {
        unsubscribe();
      }
    },
  };
}
