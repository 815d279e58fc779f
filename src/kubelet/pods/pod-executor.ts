import { join } from 'node:path';
import type { Container, EphemeralContainer, Pod } from '../../api/generated/core/v1.ts';
import {
  hostRootRefusal,
  isHostRootImage,
  mayNameHostRoot,
  mayUseHostRoot,
  type PodSource,
} from '../../api/podspec/host-root-image.ts';
import { toUid } from '../../base/brand.ts';
import { isDiskFull, messageOf } from '../../base/errors.ts';
import type { ContainerConfig, ImageStatus, Mount, SandboxStatus } from '../../runtime/port.ts';
import { advanceBackOff, type BackOffEntry, restartLimits } from '../core/pod-plan/back-off.ts';
import { withDevices } from '../core/pod-plan/devices.ts';
import type { PodAction } from '../core/pod-plan/plan.ts';
import type { PodSnapshot } from '../core/pod-plan/snapshot.ts';
import type { ContainerDevices } from '../devices/node-devices.ts';
import { type NodeLimitServices, nodeLimits } from '../resources/node-limits.ts';
import type { PodAddresses } from '../volumes/manager.ts';
import { showsAddresses } from '../volumes/types/payload.ts';
import { containerConfig } from './containers/container-config.ts';
import { environmentOf } from './containers/environment.ts';
import { runHook } from './containers/hooks.ts';
import { StartError } from './containers/image-puller.ts';
import { podRegistryAuth } from './containers/registry-auth.ts';
import { unsupportedContainerField } from './containers/unsupported-fields.ts';
import { hostsFile, podHostname } from './network-files.ts';
import { isOfControlPlane, PodSandbox, type PodSandboxServices } from './pod-sandbox.ts';
import type { PodServices } from './services.ts';

export type PodExecutorServices = PodSandboxServices &
  NodeLimitServices &
  Pick<
    PodServices,
    | 'addresses'
    | 'config'
    | 'credentials'
    | 'devices'
    | 'probeNetwork'
    | 'puller'
    | 'runtimeFacts'
    | 'services'
    | 'view'
  >;

type Kill = Extract<PodAction, { type: 'killContainer' }>;
type Start = Extract<PodAction, { type: 'startContainer' }>;

export interface ContainerStart {
  readonly pod: Pod;
  readonly container: Container | EphemeralContainer;
  readonly sandbox: SandboxStatus;
  readonly action: Start;
  /** Delays of restarts by container. The start advances the delay of its container. */
  readonly backOff: Map<string, BackOffEntry>;
  /** Ends the start when the pod terminates. */
  readonly signal: AbortSignal;
}

const MIN_STOP_SECONDS = 2;

/**
 * Executes the plan of one pod. Stops run concurrently with each other and with starts; each stop runs only once at a
 * time.
 */
export class PodExecutor {
  private readonly services: PodExecutorServices;
  private readonly source: PodSource;
  private readonly done: () => void;
  private readonly sandbox: PodSandbox;
  /** Deadlines of the kills in progress, by container. */
  private readonly killing = new Map<string, number>();
  private readonly stopping = new Set<string>();
  /** IDs of containers whose postStart hook has not returned. */
  private readonly inPostStart = new Set<string>();

  constructor(
    services: PodExecutorServices,
    source: PodSource,
    worker: { readonly done: () => void; readonly fail: (reason: string, message: string) => void },
  ) {
    this.services = services;
    this.source = source;
    this.done = worker.done;
    this.sandbox = new PodSandbox(services, source, worker.fail);
  }

  createSandbox(pod: Pod, action: Extract<PodAction, { type: 'createSandbox' }>): Promise<void> {
    return this.sandbox.create(pod, action);
  }

  stopSandbox(pod: Pod, sandboxId: string): void {
    if (this.stopping.has(sandboxId)) return;
    this.stopping.add(sandboxId);
    void this.services.runtime
      .stopPodSandbox(sandboxId)
      .catch((error: unknown) => {
        this.services.events.pod(pod, 'Warning', 'FailedKillPod', `error killing pod: ${messageOf(error)}`);
        this.services.log.warn('sandbox not stopped', { sandbox: sandboxId, error: messageOf(error) });
        return this.pause();
      })
      .then(() => this.services.view.refresh())
      .finally(() => {
        this.stopping.delete(sandboxId);
        this.done();
      });
  }

  /** A later call with a shorter grace period stops the container sooner than the first call. */
  kill(pod: Pod, container: Container | EphemeralContainer | undefined, action: Kill, terminating: boolean): void {
    const { clock, events } = this.services;
    const until = clock.monotonicMs() + action.graceSeconds * 1000;
    const known = this.killing.get(action.containerId);
    if (known !== undefined && known <= until) return;
    this.killing.set(action.containerId, until);
    if (known === undefined) events.pod(pod, 'Normal', 'Killing', action.message, action.name);
    void this.stopContainer(pod, container, action, known === undefined)
      .catch(async (error: unknown) => {
        events.pod(
          pod,
          'Warning',
          terminating ? 'FailedKillPod' : 'Failed',
          `error killing container ${action.name}: ${messageOf(error)}`,
          action.name,
        );
        this.services.log.warn('container not stopped', { container: action.name, error: messageOf(error) });
        // After a failure, pause and let the planner retry, because it still sees the container running.
        await this.pause();
      })
      .then(() => this.services.view.refresh())
      .finally(() => {
        if (this.killing.get(action.containerId) === until) this.killing.delete(action.containerId);
        this.done();
      });
  }

  private pause(): Promise<void> {
    return new Promise((resolve) => {
      this.services.clock.setTimer(1_000, resolve);
    });
  }

  private async stopContainer(
    pod: Pod,
    container: Container | EphemeralContainer | undefined,
    action: Kill,
    first: boolean,
  ): Promise<void> {
    const { clock, runtime, events, probeNetwork: network } = this.services;
    const startedMs = clock.monotonicMs();
    const preStop = container?.lifecycle?.preStop;
    if (first && container !== undefined && preStop !== undefined && action.graceSeconds > 0) {
      const [sandbox] = this.services.view.get(toUid(pod.metadata?.uid)).sandboxes;
      const ip = sandbox === undefined ? '' : (this.services.addresses(pod, sandbox).podIps[0] ?? '');
      const limitMs = action.graceSeconds * 1000;
      try {
        await Promise.race([
          runHook(
            preStop,
            { runtime, network, clock, container: container as Container, containerId: action.containerId, ip },
            limitMs,
          ),
          this.containerGone(action.containerId, pod),
        ]);
      } catch (error) {
        events.pod(pod, 'Warning', 'FailedPreStopHook', `PreStopHook failed: ${messageOf(error)}`, action.name);
      }
    }
    const spent = (clock.monotonicMs() - startedMs) / 1000;
    const left = Math.round(action.graceSeconds - spent);
    await runtime.stopContainer(
      action.containerId,
      action.graceSeconds === 0 ? 0 : Math.max(Math.min(MIN_STOP_SECONDS, action.graceSeconds), left),
    );
  }

  /** Resolves when the container has exited, so that a hook does not wait for a dead container. */
  private containerGone(containerId: string, pod: Pod): Promise<void> {
    return new Promise((resolve) => {
      const unsubscribe = this.services.runtime.onChange(() => {
        void this.services.view.refresh().then(() => {
          const found = this.services.view
            .get(toUid(pod.metadata?.uid))
            .containers.find((status) => status.id === containerId);
          if (found?.state === 'running') return;
          unsubscribe();
          resolve();
        });
      });
    });
  }

  /** Throws `StartError`. */
  async startContainer(start: ContainerStart): Promise<void> {
    const { pod, container, sandbox, action, backOff, signal } = start;
    const { services } = this;
    const { runtime, events, clock } = services;
    this.checkHostRoot(pod, container);
    const image = await services.puller.ensure(
      pod,
      container,
      () => podRegistryAuth(services, pod, container.image ?? ''),
      (type, reason, message) => events.pod(pod, type, reason, message, container.name),
    );
    if (signal.aborted) return;
    if (action.lastFinishedAtMs !== undefined) {
      backOff.set(
        action.name,
        advanceBackOff(backOff.get(action.name), action.lastFinishedAtMs, clock.nowMs(), restartLimits(pod)),
      );
    }
    const addresses = services.addresses(pod, sandbox);
    const { config, devices } = await orStartError('CreateContainerConfigError', () =>
      this.configure(start, image, addresses),
    );
    if (signal.aborted) return;
    const id = await orStartError('CreateContainerError', () => runtime.createContainer(sandbox.id, config, signal));
    // The removal of the sandbox removes the container.
    if (signal.aborted) return;
    events.pod(pod, 'Normal', 'Created', `Container created`, container.name);
    const logPath = join(services.directories.logs(pod), config.logPath);
    const run = async (): Promise<void> => {
      await orStartError('RunContainerError', async () => {
        await devices?.preStart();
        await runtime.startContainer(id);
      });
      events.pod(pod, 'Normal', 'Started', `Container started`, container.name);
      await this.linkLog(pod, container.name, id, logPath);
    };
    if (container.lifecycle?.postStart === undefined) return run();
    // The runtime reports the container as running before its hook returns, so it is hidden before it starts.
    this.inPostStart.add(id);
    try {
      await run();
      await this.postStart(pod, container as Container, { id, ip: addresses.podIps[0] ?? '' }, signal);
    } finally {
      this.inPostStart.delete(id);
      this.done();
    }
  }

  /** Throws `StartError` if the container uses the image of the host root without permission. */
  private checkHostRoot(pod: Pod, container: Container | EphemeralContainer): void {
    // An image can change while the pod runs, so the check at admission is not sufficient.
    if (!isHostRootImage(container.image ?? '')) return;
    if (mayUseHostRoot(this.source) || mayNameHostRoot(pod, container)) return;
    const message = hostRootRefusal(`container ${container.name}`);
    throw new StartError({ reason: 'CreateContainerConfigError', message });
  }

  /** Prepares environment, volumes, devices and log directory of a container, and returns its configuration. */
  private async configure(
    { pod, container, action }: ContainerStart,
    image: ImageStatus,
    addresses: PodAddresses,
  ): Promise<{ readonly config: ContainerConfig; readonly devices: ContainerDevices | undefined }> {
    const { services } = this;
    const { settings, volumes } = services;
    const unsupported = unsupportedContainerField(pod, container, services.runtimeFacts());
    if (unsupported !== undefined) throw new Error(unsupported.message);
    const env = await environmentOf({
      pod,
      container: container as Container,
      services: services.services(),
      ...addresses,
      allocatable: services.allocatable(),
      config: services.config,
    });
    if (!this.sandbox.areVolumesFresh || showsAddresses(pod)) await volumes.setUp(pod, addresses);
    const mounts: Mount[] = await volumes.mountsOf(pod, container as Container, env);
    mounts.push(...(await this.ownMounts(pod, container, addresses.podIps, action.attempt, mounts)));
    const config = containerConfig({
      pod,
      container,
      attempt: action.attempt,
      image,
      env,
      mounts,
      devices: volumes.devicesOf(pod, container as Container),
      ...nodeLimits(services, pod, container),
      pidNamespaceOf: this.targetOf(pod, container),
      hostRoot: isHostRootImage(container.image ?? ''),
      seccompDefault: settings.seccompDefault,
      seccompProfileRoot: settings.seccompProfileRoot,
      logLimitBytes: settings.containerLogMaxBytes + LOG_BETWEEN_CHECKS_BYTES,
    });
    const devices = await services.devices?.allocate(pod, container);
    const logDirectory = join(services.directories.logs(pod), container.name);
    await this.unlessFull(pod, services.files.pods.makeDirectory(logDirectory, 0o755));
    return { config: devices === undefined ? config : withDevices(config, devices.edits), devices };
  }

  /** The snapshot without running containers whose postStart hook has not returned: they have not started yet. */
  withoutStarting(snapshot: PodSnapshot): PodSnapshot {
    if (this.inPostStart.size === 0) return snapshot;
    const shown = snapshot.containers.filter(({ id, state }) => state !== 'running' || !this.inPostStart.has(id));
    return { ...snapshot, containers: shown };
  }

  /** Runs the hook. If it fails, stops the container and throws `StartError`. */
  private async postStart(
    pod: Pod,
    container: Container,
    started: { readonly id: string; readonly ip: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { runtime, events, clock, probeNetwork: network, view } = this.services;
    const handler = container.lifecycle?.postStart;
    if (handler === undefined) return;
    try {
      const target = { runtime, network, clock, container, containerId: started.id, ip: started.ip };
      await orAbandoned(runHook(handler, target, POST_START_LIMIT_MS), signal);
    } catch (error) {
      if (signal.aborted) return;
      events.pod(pod, 'Warning', 'FailedPostStartHook', `PostStartHook failed`, container.name);
      await runtime.stopContainer(started.id, Number(pod.spec?.terminationGracePeriodSeconds ?? 30));
      await view.refresh();
      throw new StartError({ reason: 'PostStartHookError', message: messageOf(error) });
    }
  }

  /** Returns the container ID of an ephemeral container's target, if it has one. */
  private targetOf(pod: Pod, container: Container | EphemeralContainer): string | undefined {
    const name = 'targetContainerName' in container ? container.targetContainerName : undefined;
    if (name === undefined || name === '') return undefined;
    const target = this.services.view
      .get(toUid(pod.metadata?.uid))
      .containers.find((status) => status.name === name && status.state === 'running');
    if (target === undefined) throw new Error(`unable to find target container ${name}`);
    return target.id;
  }

  /** Mounts of /etc/hosts and of the termination log. */
  private async ownMounts(
    pod: Pod,
    container: Container | EphemeralContainer,
    podIps: readonly string[],
    attempt: number,
    present: readonly Mount[],
  ): Promise<Mount[]> {
    const { services } = this;
    const uid = toUid(pod.metadata?.uid);
    const own: Mount[] = [];
    if (!present.some((mount) => mount.containerPath === '/etc/hosts')) {
      const path = services.directories.etcHosts(uid);
      const content = hostsFile(pod, podIps, podHostname(pod, services.hostInfo.hostname), {
        clusterDomain: services.settings.clusterDomain,
        hostFile: pod.spec?.hostNetwork === true ? await services.host.hosts() : '',
      });
      if (await this.unlessFull(pod, services.files.pods.replace(path, content)))
        own.push({ hostPath: path, containerPath: '/etc/hosts', readOnly: false, propagation: 'private' });
    }
    const messagePath = container.terminationMessagePath ?? '/dev/termination-log';
    if (messagePath !== '') {
      const path = services.directories.terminationMessage(uid, container.name, attempt);
      if (await this.unlessFull(pod, services.files.pods.makeMessageFile(path)))
        own.push({ hostPath: path, containerPath: messagePath, readOnly: false, propagation: 'private' });
    }
    return own;
  }

  /**
   * Waits for `work`. Returns false instead of throwing if the disk is full and the pod is of the control plane, whose
   * containers can start without the file.
   */
  private async unlessFull(pod: Pod, work: Promise<void>): Promise<boolean> {
    try {
      await work;
      return true;
    } catch (error) {
      if (!isOfControlPlane(pod, this.source) || !isDiskFull(error)) throw error;
      this.services.log.v(2, 'pod file not written: the disk is full', { pod: pod.metadata?.name });
      return false;
    }
  }

  /** Creates the link `<pod>_<namespace>_<container>-<id>.log`, which log collectors expect. */
  private async linkLog(pod: Pod, container: string, id: string, path: string): Promise<void> {
    const { containerLogs } = this.services.settings.paths;
    const link = join(containerLogs, `${pod.metadata?.name}_${pod.metadata?.namespace}_${container}-${id}.log`);
    try {
      await this.services.files.pods.link(path, link);
    } catch (error) {
      this.services.log.v(2, 'log link not created', { link, error: messageOf(error) });
    }
  }
}

const POST_START_LIMIT_MS = 600_000;
/** Bytes that a container may write to its log between two size checks. */
const LOG_BETWEEN_CHECKS_BYTES = 16 << 20;

/** Runs `work`. Its errors become a `StartError` with the reason. */
async function orStartError<T>(reason: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new StartError({ reason, message: messageOf(error) });
  }
}

async function orAbandoned<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) throw new Error('abandoned: the pod is being terminated');
  return new Promise<T>((resolve, reject) => {
    const onAbort = (): void => reject(new Error('abandoned: the pod is being terminated'));
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
