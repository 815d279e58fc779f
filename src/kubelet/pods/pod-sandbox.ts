import type { Pod } from '../../api/generated/core/v1.ts';
import { isHostRootImage, mayUseHostRoot, type PodSource } from '../../api/podspec/host-root-image.ts';
import { toUid } from '../../base/brand.ts';
import { ignore, isDiskFull, messageOf } from '../../base/errors.ts';
import type { PodAction } from '../core/pod-plan/plan.ts';
import { LABELS } from '../core/pod-plan/snapshot.ts';
import { CONFIG_SOURCE } from '../sources/static-pod.ts';
import { VolumeError } from '../volumes/manager.ts';
import { portMappings } from './containers/port-mappings.ts';
import { kernelHostname, parseResolvConf, podDns } from './network-files.ts';
import type { PodServices } from './services.ts';

export type PodSandboxServices = Pick<
  PodServices,
  | 'cgroups'
  | 'clock'
  | 'directories'
  | 'events'
  | 'files'
  | 'host'
  | 'hostInfo'
  | 'log'
  | 'runtime'
  | 'runtimeClasses'
  | 'settings'
  | 'userNamespaces'
  | 'volumes'
>;

/** Age after which volume sources are read again: the API may have changed and a watch may have missed it. */
const FRESH_MS = 1_000;

type Create = Extract<PodAction, { type: 'createSandbox' }>;

/** Prepares the environment of a pod's containers: volumes, cgroup and sandbox. */
export class PodSandbox {
  readonly #services: PodSandboxServices;
  readonly #source: PodSource;
  readonly #fail: (reason: string, message: string) => void;
  #volumesFailed = false;
  #volumesSetUpMs = Number.NEGATIVE_INFINITY;

  /** `fail` ends the pod because it cannot run on this node. */
  constructor(services: PodSandboxServices, source: PodSource, fail: (reason: string, message: string) => void) {
    this.#services = services;
    this.#source = source;
    this.#fail = fail;
  }

  /**
   * Sets up the volumes and creates the sandbox, concurrently if the volumes are available immediately. If the volumes
   * fail, no sandbox remains.
   */
  async create(pod: Pod, action: Create): Promise<void> {
    const services = this.#services;
    for (const id of action.replaces) await services.runtime.stopPodSandbox(id);
    if (action.replaces.length > 0) {
      services.events.pod(pod, 'Normal', 'SandboxChanged', 'Pod sandbox changed, it will be killed and re-created.');
    }
    // Create this directory first: garbage collection recognizes leftovers of the pod by it.
    await services.files.pods
      .makeDirectory(services.directories.pod(toUid(pod.metadata?.uid)), 0o750)
      .catch((error: unknown) => {
        if (!isOfControlPlane(pod, this.#source) || !isDiskFull(error)) throw error;
      });
    if (this.#volumesFailed || !services.volumes.areImmediate(pod)) {
      await this.#setUpVolumes(pod);
      await this.#run(pod, action.attempt);
      return;
    }
    const [volumes, sandbox] = await Promise.allSettled([this.#setUpVolumes(pod), this.#run(pod, action.attempt)]);
    if (volumes.status === 'rejected') {
      if (sandbox.status === 'fulfilled') await this.#discard(sandbox.value);
      throw volumes.reason;
    }
    if (sandbox.status === 'rejected') throw sandbox.reason;
  }

  /** True shortly after volume setup, so that containers started with the sandbox skip a second check. */
  get areVolumesFresh(): boolean {
    return this.#services.clock.monotonicMs() - this.#volumesSetUpMs < FRESH_MS;
  }

  async #setUpVolumes(pod: Pod): Promise<void> {
    const { volumes, events, settings, clock } = this.#services;
    try {
      await volumes.setUp(pod, { podIps: [], hostIps: settings.nodeIps });
      this.#volumesFailed = false;
      this.#volumesSetUpMs = clock.monotonicMs();
    } catch (error) {
      // The next attempt sets up the volumes before it creates the sandbox, so that no sandbox exists while the pod
      // waits, for example for a missing config map.
      this.#volumesFailed = true;
      if (error instanceof VolumeError && error.exceedsAttachLimit)
        this.#fail('VolumeAttachmentLimitExceeded', `Pod was rejected: ${error.message}`);
      else if (error instanceof VolumeError) events.pod(pod, 'Warning', 'FailedMount', error.message);
      throw error;
    }
  }

  /** Returns the sandbox ID. */
  async #run(pod: Pod, attempt: number): Promise<string> {
    const services = this.#services;
    try {
      const cgroup = services.cgroups.ensurePod(pod);
      cgroup.catch(ignore('awaited together with the sandbox below'));
      // The cgroup must exist before the sandbox only if the sandbox has a process: the holder of a shared PID
      // namespace.
      if (pod.spec?.shareProcessNamespace === true) await cgroup;
      const [runtimeHandler, resolvConf, firstImageId] = await Promise.all([
        services.runtimeClasses.handlerOf(pod),
        services.host.resolvConf(),
        this.#firstImageId(pod),
      ]);
      const userNamespace = await services.userNamespaces.mappingOf(pod, runtimeHandler);
      const sandbox = services.runtime.runPodSandbox({
        ...this.#describe(pod, attempt),
        cgroupParent: services.cgroups.parentOf(pod),
        dns: podDns(pod, parseResolvConf(resolvConf), {
          servers: services.settings.clusterDns,
          domain: services.settings.clusterDomain,
        }),
        ...(firstImageId === undefined ? {} : { firstImageId }),
        ...(userNamespace === undefined ? {} : { userNamespace }),
        ...(runtimeHandler === undefined ? {} : { runtimeHandler }),
        ...(isOfControlPlane(pod, this.#source) ? { mayUseMemory: true } : {}),
      });
      const [made, grouped] = await Promise.allSettled([sandbox, cgroup]);
      if (made.status === 'rejected') throw made.reason;
      if (grouped.status === 'fulfilled') return made.value;
      await this.#discard(made.value);
      throw grouped.reason;
    } catch (error) {
      const message = `Failed to create pod sandbox: ${messageOf(error)}`;
      services.events.pod(pod, 'Warning', 'FailedCreatePodSandBox', message);
      throw error;
    }
  }

  #describe(pod: Pod, attempt: number) {
    const { directories, hostInfo, settings } = this.#services;
    const { name = '', namespace = 'default', labels, annotations } = pod.metadata ?? {};
    const uid = toUid(pod.metadata?.uid);
    const { spec } = pod;
    return {
      name,
      namespace,
      uid,
      attempt,
      hostname: kernelHostname(pod, hostInfo.hostname, settings.clusterDomain),
      labels: {
        ...labels,
        [LABELS.podName]: name,
        [LABELS.podNamespace]: namespace,
        [LABELS.podUid]: uid,
      },
      // Overrides the pod's annotation: an API pod must not claim to be a static pod.
      annotations: { ...annotations, [CONFIG_SOURCE]: this.#source },
      logDirectory: directories.logs(pod),
      hostNetwork: spec?.hostNetwork === true,
      hostPid: spec?.hostPID === true,
      hostIpc: spec?.hostIPC === true,
      shareProcessNamespace: spec?.shareProcessNamespace === true,
      privileged: [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].some(
        (container) => container.securityContext?.privileged === true,
      ),
      portMappings: portMappings(pod),
      sysctls: Object.fromEntries((spec?.securityContext?.sysctls ?? []).map((each) => [each.name, each.value])),
    };
  }

  /** ID of the image of the pod's first container. Undefined if the image is not present yet or is the host's root. */
  async #firstImageId({ spec }: Pod): Promise<string | undefined> {
    const image = (spec?.initContainers?.[0] ?? spec?.containers[0])?.image ?? '';
    if (isHostRootImage(image)) return undefined;
    const status = await this.#services.runtime.images.status(image).catch(() => undefined);
    return status?.id;
  }

  async #discard(sandboxId: string): Promise<void> {
    const { runtime, log } = this.#services;
    try {
      await runtime.stopPodSandbox(sandboxId);
      await runtime.removePodSandbox(sandboxId);
    } catch (error) {
      log.warn('sandbox not removed', { sandbox: sandboxId, error: messageOf(error) });
    }
  }
}

/**
 * Whether the pod is of the control plane: a static pod whose containers use the host's root. It starts even if the
 * disk is full.
 */
export const isOfControlPlane = ({ spec }: Pod, source: PodSource): boolean =>
  mayUseHostRoot(source) &&
  [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].every(({ image }) => isHostRootImage(image ?? ''));
