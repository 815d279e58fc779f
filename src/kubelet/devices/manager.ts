/**
 * Extended resources of this node: their plug-ins, device health and assignment to containers. Devices are selected
 * when a container starts; admission only counts them. Source: pkg/kubelet/cm/devicemanager.
 */

import { isBackedByDevices } from '../../api/devices/extended-resources.ts';
import type { Container, Pod } from '../../api/generated/core/v1.ts';
import { amountsOf, podRequests } from '../../api/podspec/scheduling/node-resources.ts';
import { toUid, type Uid } from '../../base/brand.ts';
import { Turns } from '../../base/concurrency/keyed-turns.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { DeviceEdits } from '../core/pod-plan/devices.ts';
import type { PluginHandler, RegisteredPlugin } from '../plugins/registrations.ts';
import type { Rejection } from '../pods/admission.ts';
import { type Allocation, Allocations, readCheckpoint, writeCheckpoint } from './allocations.ts';
import { type DeviceEndpoint, pluginEndpoint } from './endpoint.ts';
import type {
  AllocateAnswer,
  DevicePluginConnection,
  ListedDevice,
  PluginOptions,
  PluginSockets,
  Registration,
  ResourceDevices,
} from './port.ts';
import { checkPlugin, checkRegistration, MAX_RESOURCES } from './validate-plugin.ts';

/** Time for which the capacity of a disconnected plug-in is still reported: upstream's endpointStopGracePeriod. */
const STOP_GRACE_MS = 5 * 60_000;

interface Device {
  readonly healthy: boolean;
  readonly numaNodes: readonly number[];
}

interface Resource {
  endpoint: DeviceEndpoint | undefined;
  /** Socket of the plug-in. Undefined for a resource that the node itself publishes. */
  socket?: string;
  devices: ReadonlyMap<string, Device>;
  stoppedAtMs: number | undefined;
}

export interface DeviceManagerOptions {
  readonly sockets: PluginSockets;
  readonly checkpoint: { read(): Promise<string | undefined>; write(content: string): Promise<void> };
  /** `device-plugins` below the kubelet's root. */
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when capacity or allocatable of the node may have changed. */
  readonly onChanged: () => void;
  readonly warn: (reason: string, message: string) => void;
}

export class DeviceManager implements PluginHandler {
  readonly #options: DeviceManagerOptions;
  readonly #resources = new Map<string, Resource>();
  readonly #allocations = new Allocations();
  /**
   * Serializes the allocations of a resource, because the plug-in's preference is requested between reading and
   * assigning the devices. A plug-in that hangs delays only its own resource.
   */
  readonly #turns = new Turns();
  readonly #writes = new Turns();
  #close: (() => Promise<void>) | undefined;

  constructor(options: DeviceManagerOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { checkpoint, sockets, directory, log } = this.#options;
    try {
      const text = await checkpoint.read();
      for (const name of text === undefined ? [] : readCheckpoint(text, this.#allocations))
        this.#resources.set(name, { endpoint: undefined, devices: new Map(), stoppedAtMs: undefined });
    } catch (error) {
      log.error('device allocations lost: checkpoint not read', { error: messageOf(error) });
    }
    try {
      const served = await sockets.serveRegistration(`${directory}/kubelet.sock`, (it) => this.#register(it));
      this.#close = () => served.close();
    } catch (error) {
      log.warn('device plug-in registration not served', { directory, error: messageOf(error) });
    }
  }

  async stop(): Promise<void> {
    for (const { endpoint } of this.#resources.values()) endpoint?.stop();
    await this.#close?.();
  }

  /** Publishes devices of this node itself under a resource. Replaces the devices of an earlier call. */
  publish(resource: string, devices: readonly ListedDevice[], endpoint: DeviceEndpoint): void {
    const known = this.#resources.get(resource);
    if (known === undefined && this.#resources.size >= MAX_RESOURCES) return;
    this.#resources.set(resource, { endpoint, devices: known?.devices ?? new Map(), stoppedAtMs: undefined });
    this.#listed(resource, devices);
  }

  /** Removes a resource that `publish` has added. The caller must ensure that no container uses its devices. */
  withdraw(resource: string): void {
    if (this.#resources.delete(resource)) this.#save();
  }

  amounts(): ReadonlyMap<string, readonly [capacity: number, allocatable: number]> {
    const nowMs = this.#options.clock.monotonicMs();
    return new Map(
      [...this.#resources].map(([name, { devices, endpoint, stoppedAtMs }]) => {
        const over = stoppedAtMs !== undefined && nowMs - stoppedAtMs > STOP_GRACE_MS;
        const healthy = [...devices.values()].filter((device) => device.healthy).length;
        return [name, [over ? 0 : devices.size, endpoint === undefined ? 0 : healthy]];
      }),
    );
  }

  /** UID of the pod that holds the device. Undefined when the device is free. */
  holder(resource: string, id: string): Uid | undefined {
    return this.#allocations.list.find((each) => each.resource === resource && each.ids.includes(id))?.podUid;
  }

  /**
   * Rejects a pod if the free devices do not suffice for the pod and for admitted pods that have no devices yet.
   * Undefined if the devices suffice.
   */
  rejection(pod: Pod, others: readonly Pod[]): Rejection | undefined {
    const uid = toUid(pod.metadata?.uid);
    for (const [name, requested] of podRequests(pod)) {
      const resource = this.#resources.get(name);
      if (resource === undefined || requested <= 0 || isBackedByDevices(pod, name)) continue;
      if (this.#allocations.of(uid).some((each) => each.resource === name)) continue;
      const free = this.#free(name, uid, false).length;
      const waiting = others
        .filter((each) => !isBackedByDevices(each, name))
        .filter((each) => !this.#allocations.of(toUid(each.metadata?.uid)).some((held) => held.resource === name))
        .reduce((sum, each) => sum + (podRequests(each).get(name) ?? 0), 0);
      const available = Math.max(0, free - waiting);
      if (requested <= available) continue;
      return {
        reason: 'UnexpectedAdmissionError',
        message: `Allocate failed due to requested number of devices unavailable for ${name}. Requested: ${requested}, Available: ${available}, which is unexpected`,
      };
    }
    return undefined;
  }

  /** Calls the plug-ins that require a call before each container start. */
  async preStart(allocations: readonly Allocation[]): Promise<void> {
    for (const { resource, ids } of allocations) {
      const endpoint = this.#resources.get(resource)?.endpoint;
      if (endpoint?.preStartRequired === true) await endpoint.preStart(ids);
    }
  }

  release(podUid: Uid): void {
    if (!this.#allocations.release(podUid)) return;
    this.#save();
    this.#options.onChanged();
  }

  /** Releases the devices of pods that are not in `podUids`. */
  retain(podUids: ReadonlySet<Uid>): void {
    for (const uid of new Set(this.#allocations.list.map((each) => each.podUid))) {
      if (!podUids.has(uid)) this.release(uid);
    }
  }

  heldBy(podUid: Uid, container: string): ResourceDevices[] {
    return this.#allocations.of(podUid, container).map(({ resource, ids }) => this.#shown(resource, ids));
  }

  /** All devices, for the pod-resources API. */
  all(): ResourceDevices[] {
    return [...this.#resources].map(([resource, { devices }]) => this.#shown(resource, [...devices.keys()]));
  }

  #shown(resource: string, ids: readonly string[]): ResourceDevices {
    const devices = this.#resources.get(resource)?.devices;
    const numaNodes = [...new Set(ids.flatMap((id) => devices?.get(id)?.numaNodes ?? []))];
    return { resource, ids, numaNodes };
  }

  /** Selects and prepares devices for a container that has none yet. Rejects if too few devices are available. */
  async allocate(pod: Pod, container: Container): Promise<readonly Allocation[]> {
    const found: Allocation[] = [];
    for (const [resource, size] of amountsOf(container.resources?.limits)) {
      const known = this.#resources.get(resource);
      if (known === undefined || size <= 0 || isBackedByDevices(pod, resource)) continue;
      found.push(await this.#turns.inTurn(resource, () => this.#allocateResource(pod, container, resource, size)));
    }
    return found;
  }

  async #allocateResource(pod: Pod, container: Container, resource: string, size: number): Promise<Allocation> {
    const podUid = toUid(pod.metadata?.uid);
    const init = pod.spec?.initContainers?.find(({ name }) => name === container.name);
    const isInit = init !== undefined && init.restartPolicy !== 'Always';
    const earlier = this.#allocations.find(podUid, container.name, resource);
    if (earlier !== undefined) return earlier;
    const free = this.#free(resource, podUid, isInit);
    // The plug-in may have registered again while this container waited.
    const endpoint = this.#resources.get(resource)?.endpoint;
    if (endpoint === undefined || free.length < size) {
      throw new Error(
        `Allocate failed due to requested number of devices unavailable for ${resource}. Requested: ${size}, Available: ${free.length}, which is unexpected`,
      );
    }
    const ids = await endpoint.choose(free, size);
    const answer = await endpoint.allocate(ids);
    const { cdiDevices } = answer;
    const edits = editsOf(answer);
    const allocation = { podUid, container: container.name, isInit, resource, ids, edits, cdiDevices };
    this.#allocations.set(allocation);
    this.#options.log.info('devices allocated', { pod: podUid, container: container.name, resource, ids });
    await this.#write();
    this.#options.onChanged();
    return allocation;
  }

  /** Healthy devices available to a container of the pod. Devices that its init containers used come first. */
  #free(resource: string, podUid: Uid, isInit: boolean): string[] {
    const inUse = this.#allocations.allocatedTo(resource, podUid, isInit);
    const own = new Set(
      this.#allocations
        .of(podUid)
        .filter((each) => each.resource === resource)
        .flatMap(({ ids }) => ids),
    );
    const free = [...(this.#resources.get(resource)?.devices ?? [])]
      .filter(([id, { healthy }]) => healthy && !inUse.has(id))
      .map(([id]) => id)
      .sort();
    return [...free.filter((id) => own.has(id)), ...free.filter((id) => !own.has(id))];
  }

  /** Registers a plug-in that was discovered by its own socket instead of calling the kubelet's registration socket. */
  async register({ name, socket, versions }: RegisteredPlugin): Promise<void> {
    checkPlugin(name, socket, versions);
    this.#checkRoom(name);
    const connection = this.#options.sockets.devicePlugin(socket);
    try {
      const options = await connection.options();
      this.#connect(name, socket, connection, options);
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  async deregister({ name, socket }: RegisteredPlugin): Promise<void> {
    const resource = this.#resources.get(name);
    if (resource?.endpoint === undefined || resource.socket !== socket) return;
    resource.endpoint.stop();
    this.#ended(resource);
    this.#options.log.info('device plug-in deregistered', { resource: name });
  }

  #register(registration: Registration): void {
    const { sockets, directory, log } = this.#options;
    const { resourceName: name, endpoint, options } = registration;
    try {
      checkRegistration(registration);
      this.#checkRoom(name);
      const socket = `${directory}/${endpoint}`;
      this.#connect(name, socket, sockets.devicePlugin(socket), options);
    } catch (error) {
      log.warn('device plug-in refused', { resource: name.slice(0, 128), error: messageOf(error) });
      throw error;
    }
  }

  #checkRoom(name: string): void {
    if (!this.#resources.has(name) && this.#resources.size >= MAX_RESOURCES)
      throw new Error(`${MAX_RESOURCES} resources are registered already; remove a device plug-in`);
  }

  #connect(name: string, socket: string, connection: DevicePluginConnection, options: PluginOptions): void {
    const { log, warn } = this.#options;
    log.info('device plug-in registered', { resource: name, socket });
    this.#resources.get(name)?.endpoint?.stop();
    const endpoint: DeviceEndpoint = pluginEndpoint(
      name,
      connection,
      options,
      {
        listed: (devices) => {
          if (this.#resources.get(name)?.endpoint === endpoint) this.#listed(name, devices);
        },
        ended: (why, refused) => {
          const resource = this.#resources.get(name);
          if (resource?.endpoint !== endpoint) return;
          log.warn(refused ? 'device plug-in refused' : 'device plug-in ended', { resource: name, error: why });
          if (refused) warn('DevicePluginRefused', `device plug-in of ${name} refused: ${why}`);
          this.#ended(resource);
        },
      },
      log,
    );
    const devices = this.#resources.get(name)?.devices ?? new Map<string, Device>();
    this.#resources.set(name, { endpoint, socket, devices, stoppedAtMs: undefined });
    this.#save();
  }

  #ended(resource: Resource): void {
    resource.endpoint = undefined;
    resource.stoppedAtMs = this.#options.clock.monotonicMs();
    this.#options.onChanged();
  }

  #listed(name: string, devices: readonly ListedDevice[]): void {
    const resource = this.#resources.get(name);
    if (resource === undefined) return;
    const next = new Map(
      devices.map(({ id, health, numaNodes }): [string, Device] => [id, { healthy: health === 'Healthy', numaNodes }]),
    );
    const changed = JSON.stringify([...next]) !== JSON.stringify([...resource.devices]);
    resource.devices = next;
    if (changed) this.#options.onChanged();
  }

  #save(): void {
    void this.#write().catch((error: unknown) =>
      this.#options.log.error('device checkpoint not written', { error: messageOf(error) }),
    );
  }

  /** Writes the state at the time of the write, so that a later write never has an older state. */
  #write(): Promise<void> {
    return this.#writes.inTurn('checkpoint', () =>
      this.#options.checkpoint.write(writeCheckpoint(this.#allocations, [...this.#resources.keys()])),
    );
  }
}

const editsOf = ({ env, devices, mounts, annotations }: AllocateAnswer): DeviceEdits => ({
  env: [...env].map(([name, value]) => ({ name, value })),
  devices,
  mounts: mounts.map((mount) => ({ ...mount, propagation: 'private' })),
  annotations,
});
