/** Facade for all device functions that other parts of the kubelet use. */
import type { Container, EphemeralContainer, Node, Pod } from '../../api/generated/core/v1.ts';
import { type NodeName, toUid, type Uid } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { ApiClient } from '../../client/types.ts';
import type { Fixture, FixtureScanner } from '../../rigs/fixtures-port.ts';
import type { RigHost } from '../../rigs/rig-host-port.ts';
import { cdiEdits } from '../core/pod-plan/cdi.ts';
import { type DeviceEdits, joinEdits } from '../core/pod-plan/devices.ts';
import type { PluginHandler } from '../plugins/registrations.ts';
import type { Rejection } from '../pods/admission.ts';
import type { KubeletFiles } from '../ports/files-port.ts';
import { ClaimManager, type OwnDriver } from './claims.ts';
import { DraPlugins } from './dra-plugins.ts';
import { FixtureSlices } from './fixture-slices.ts';
import { type FixtureState, Fixtures, resourceOf } from './fixtures.ts';
import { DeviceManager } from './manager.ts';
import { type CdiFiles, type PluginSockets, type PodResources, RIG_DRIVER, type Served } from './port.ts';
import { SliceWiping } from './slice-wiping.ts';

/**
 * Maximum wait until the Node reports an unplugged fixture as unavailable. After this time its pods fail in any case.
 */
const REPORT_MS = 5_000;
const REPORT_CHECK_MS = 50;

export interface KubeletDevices {
  readonly sockets: PluginSockets;
  readonly cdi: CdiFiles;
  /** `/var/lib/kubelet`, where plug-ins expect the kubelet's sockets. */
  readonly root: string;
  readonly scanner: FixtureScanner;
  /** If undefined, rigs have neither console nor power control. */
  readonly rigs?: RigHost;
}

export interface NodeDevicesOptions extends KubeletDevices {
  readonly nodeName: NodeName;
  readonly files: KubeletFiles;
  readonly clock: Clock;
  readonly log: Log;
  /** Pods that hold resources of the node. */
  readonly pods: () => readonly Pod[];
  readonly onChanged: () => void;
  /** The Node from the API server. Undefined while it is not known. */
  readonly node: () => Node | undefined;
  readonly warn: (reason: string, message: string) => void;
  readonly failPod: (uid: Uid, reason: string, message: string) => void;
  readonly warnOfPod: (pod: Pod, reason: string, message: string) => void;
}

/** Devices of a container, and the work due immediately before it starts. */
export interface ContainerDevices {
  readonly edits: DeviceEdits;
  preStart(): Promise<void>;
}

export class NodeDevices {
  readonly #options: NodeDevicesOptions;
  readonly #manager: DeviceManager;
  readonly #claims: ClaimManager;
  readonly #plugins: DraPlugins;
  readonly #wiping: SliceWiping;
  readonly #fixtures: Fixtures;
  readonly #slices: FixtureSlices;
  #podResources: Served | undefined;

  constructor(options: NodeDevicesOptions) {
    const { root, files, clock, log, sockets, cdi } = options;
    this.#options = options;
    const checkpoint = (name: string) => ({
      read: () => readIfPresent(files, `${root}/device-plugins/${name}`),
      write: (content: string) => files.pods.replace(`${root}/device-plugins/${name}`, content),
    });
    const onChanged = (): void => {
      this.#slices.kick();
      options.onChanged();
    };
    this.#manager = new DeviceManager({
      sockets,
      clock,
      onChanged,
      warn: options.warn,
      log: log.named('devices'),
      checkpoint: checkpoint('hyperedge_device_checkpoint'),
      directory: `${root}/device-plugins`,
    });
    this.#fixtures = new Fixtures({
      scanner: options.scanner,
      manager: this.#manager,
      clock,
      onChanged,
      log: log.named('fixtures'),
      onUnplugged: (fixture, uids) => this.#unplugged(fixture, uids),
      podsOfClaim: (uid) => this.#claims.podsOf(uid),
    });
    const drivers = new Map<string, OwnDriver>([[RIG_DRIVER, this.#fixtures]]);
    this.#plugins = new DraPlugins({ sockets, log: log.named('plugins'), onChanged: () => this.#wiping.changed() });
    this.#wiping = new SliceWiping({
      nodeName: options.nodeName,
      clock,
      log: log.named('claims'),
      isPresent: (driver) => drivers.has(driver) || this.#plugins.plugin(driver) !== undefined,
    });
    this.#claims = new ClaimManager({
      plugins: this.#plugins,
      cdi,
      drivers,
      log: log.named('claims'),
      checkpoint: checkpoint('hyperedge_claim_checkpoint'),
    });
    this.#slices = new FixtureSlices({
      nodeName: options.nodeName,
      clock,
      log: log.named('fixtures'),
      states: () => this.#fixtures.states(),
      node: options.node,
    });
  }

  async start(): Promise<void> {
    const { root, sockets, log } = this.#options;
    await Promise.all([this.#manager.start(), this.#claims.start()]);
    await this.#fixtures.start();
    try {
      const path = `${root}/pod-resources/kubelet.sock`;
      const source = { list: () => this.podResources(), allocatable: () => this.#manager.all() };
      this.#podResources = await sockets.servePodResources(path, source);
    } catch (error) {
      log.warn('pod-resources API not served', { root, error: messageOf(error) });
    }
  }

  connect(client: ApiClient): void {
    this.#claims.connect(client);
    this.#slices.connect(client);
    this.#wiping.connect(client);
  }

  /** Handlers by the plug-in type of the registration. */
  get pluginHandlers(): ReadonlyMap<string, PluginHandler> {
    return new Map<string, PluginHandler>([
      ['DRAPlugin', this.#plugins],
      ['DevicePlugin', this.#manager],
    ]);
  }

  async stop(): Promise<void> {
    this.#slices.stop();
    this.#fixtures.stop();
    this.#wiping.stop();
    this.#plugins.stop();
    await this.#manager.stop();
    await this.#podResources?.close();
  }

  /** Periodic maintenance. `known` is undefined while the list of pods is incomplete. */
  async maintain(known: readonly Pod[] | undefined): Promise<void> {
    this.#slices.nodeChanged();
    if (known === undefined) return;
    const uids = new Set(known.map((pod) => toUid(pod.metadata?.uid)));
    this.#manager.retain(uids);
    await this.#claims.retain(uids);
  }

  amounts(): ReadonlyMap<string, readonly [capacity: number, allocatable: number]> {
    return this.#manager.amounts();
  }

  get rigHost(): RigHost | undefined {
    return this.#options.rigs;
  }

  fixture(name: string): Fixture | undefined {
    return this.#fixtures.find(name);
  }

  fixtures(): readonly FixtureState[] {
    return this.#fixtures.states();
  }

  rejection(pod: Pod, others: readonly Pod[]): Rejection | undefined {
    return this.#manager.rejection(pod, others);
  }

  /**
   * Returns the devices of a container; rejects while the container cannot get them. If a device plug-in cannot
   * allocate devices, the pod fails. If a claim cannot be prepared, the pod waits and the caller tries again.
   */
  async allocate(pod: Pod, given: Container | EphemeralContainer): Promise<ContainerDevices> {
    const container = given as Container;
    const { failPod, warnOfPod } = this.#options;
    const [allocations, claimed] = await Promise.all([
      this.#manager.allocate(pod, container).catch((error: unknown) => {
        failPod(toUid(pod.metadata?.uid), 'UnexpectedAdmissionError', messageOf(error));
        throw error;
      }),
      this.#claims.editsFor(pod, container).catch((error: unknown) => {
        const message = `Failed to prepare dynamic resources: ${messageOf(error)}`;
        warnOfPod(pod, 'FailedPrepareDynamicResources', message);
        throw error;
      }),
    ]);
    const cdiNames = allocations.flatMap(({ cdiDevices }) => cdiDevices);
    const specs = cdiNames.length === 0 ? [] : (await this.#options.cdi.read()).map(({ content }) => content);
    return {
      edits: joinEdits([...allocations.map(({ edits }) => edits), cdiEdits(specs, cdiNames), claimed]),
      preStart: () => this.#manager.preStart(allocations),
    };
  }

  /** Makes the devices of a pod available to others when its containers have ended. Its claims stay prepared. */
  releaseDevices(podUid: Uid): void {
    this.#manager.release(podUid);
  }

  async release(podUid: Uid): Promise<void> {
    this.releaseDevices(podUid);
    await this.#claims.release(podUid);
  }

  podResources(): PodResources[] {
    return this.#options.pods().map((pod) => ({
      name: pod.metadata?.name ?? '',
      namespace: pod.metadata?.namespace ?? '',
      containers: [...(pod.spec?.initContainers ?? []).filter(isSidecar), ...(pod.spec?.containers ?? [])].map(
        (container) => ({
          name: container.name,
          devices: this.#manager.heldBy(toUid(pod.metadata?.uid), container.name),
          dynamic: this.#claims.heldBy(pod, container),
        }),
      ),
    }));
  }

  /**
   * Fails the pods that use an unplugged fixture. First waits until the Node reports the fixture as unavailable, so
   * that a replacement pod is not scheduled to it.
   */
  #unplugged(fixture: Fixture, uids: readonly Uid[]): void {
    const { clock, node } = this.#options;
    const deadlineMs = clock.monotonicMs() + REPORT_MS;
    const look = (): void => {
      const allocatable = node()?.status?.allocatable?.[resourceOf(fixture)] ?? '0';
      if (allocatable === '0' || clock.monotonicMs() >= deadlineMs) this.#fail(fixture, uids);
      else clock.setTimer(REPORT_CHECK_MS, look);
    };
    look();
  }

  #fail({ name, node, link }: Fixture, uids: readonly Uid[]): void {
    const message = `fixture ${name} was unplugged: ${node?.hostPath ?? link ?? 'its device'} no longer exists`;
    for (const uid of uids) this.#options.failPod(uid, 'FixtureUnplugged', message);
  }
}

const isSidecar = ({ restartPolicy }: Container): boolean => restartPolicy === 'Always';

async function readIfPresent({ manifests }: KubeletFiles, path: string): Promise<string | undefined> {
  const slash = path.lastIndexOf('/');
  const names = await manifests.names(path.slice(0, slash));
  return names.includes(path.slice(slash + 1)) ? manifests.read(path) : undefined;
}
