/** CSI drivers registered on this node, and its CSINode object. Source: pkg/volume/csi/nodeinfomanager. */

import type { Node } from '../../../api/generated/core/v1.ts';
import type { CSIDriver, CSINode, CSINodeDriver } from '../../../api/generated/storage/v1.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import type { NodeName } from '../../../base/brand.ts';
import { ignore } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import { dns1123SubdomainErrors, labelValueErrors, qualifiedNameErrors } from '../../../base/names.ts';
import type { ApiClient } from '../../../client/types.ts';
import type { PluginHandler, RegisteredPlugin } from '../../plugins/registrations.ts';
import type { CsiConnector, CsiNode, CsiNodeCapability, CsiNodeInfo } from './port.ts';

export interface RegisteredDriver {
  readonly name: string;
  readonly socket: string;
  readonly node: CsiNode;
  readonly capabilities: ReadonlySet<CsiNodeCapability>;
}

const NODE_ID_ANNOTATION = 'csi.volume.kubernetes.io/nodeid';
const CONFLICTS = 5;
/** CSI limits: a driver name is a domain name of at most 63 characters, a node ID has at most 256 bytes. */
const MAX_NAME = 63;
const MAX_NODE_ID = 256;
const MAX_TOPOLOGY = 32;
const MAX_COUNT = 0x7fff_ffff;

export class CsiDrivers implements PluginHandler {
  readonly #connect: CsiConnector;
  readonly #nodeName: NodeName;
  readonly #log: Log;
  readonly #onRegistered: (driver: string) => void;
  readonly #drivers = new Map<string, RegisteredDriver>();
  #client: ApiClient | undefined;
  #announcing: Promise<void> = Promise.resolve();

  constructor(options: {
    readonly connect: CsiConnector;
    readonly nodeName: NodeName;
    readonly log: Log;
    readonly onRegistered: (driver: string) => void;
  }) {
    this.#connect = options.connect;
    this.#nodeName = options.nodeName;
    this.#log = options.log;
    this.#onRegistered = options.onRegistered;
  }

  connect(client: ApiClient): void {
    this.#client = client;
  }

  /** Throws with upstream's text. */
  get(name: string): RegisteredDriver {
    const driver = this.#drivers.get(name);
    if (driver === undefined) throw new Error(`driver name ${name} not found in the list of registered CSI drivers`);
    return driver;
  }

  has(name: string): boolean {
    return this.#drivers.has(name);
  }

  /** Reads the driver's volume limit again and writes it to the CSINode. */
  async refresh(name: string): Promise<void> {
    const info = await this.get(name).node.info();
    checkInfo(name, info);
    await this.#inOrder(() =>
      this.#changeCsiNode((drivers) => drivers.map((each) => (each.name === name ? limited(each, info) : each))),
    );
  }

  /** CSIDriver object of the driver. Undefined when it does not exist. */
  async object(name: string): Promise<CSIDriver | undefined> {
    try {
      return await this.#api().resource(resources.csiDrivers).get(name);
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  }

  async register({ name, socket, versions }: RegisteredPlugin): Promise<void> {
    if (name.length > MAX_NAME || dns1123SubdomainErrors(name.toLowerCase()).length > 0)
      throw new Error(`CSI driver name ${JSON.stringify(name.slice(0, MAX_NAME))} is not a domain of 63 characters`);
    if (!versions.some((version) => /^v?1\./.test(version))) {
      throw new Error(`CSI driver ${name}: supports versions ${versions.slice(0, 8).join(', ')}; this node needs 1.x`);
    }
    const node = this.#connect(socket);
    const capabilities = await node.capabilities();
    const info = await node.info();
    checkInfo(name, info);
    await this.#inOrder(() => this.#announce(name, info));
    this.#drivers.set(name, { name, socket, node, capabilities });
    this.#log.info('CSI driver registered', { driver: name, nodeId: info.nodeId });
    this.#onRegistered(name);
  }

  async deregister({ name, socket }: RegisteredPlugin): Promise<void> {
    // A newer plug-in of the driver, as during its update, stays registered.
    if (this.#drivers.get(name)?.socket !== socket) return;
    this.#drivers.delete(name);
    this.#log.info('CSI driver deregistered', { driver: name });
    await this.#changeCsiNode((drivers) => drivers.filter((driver) => driver.name !== name));
  }

  /** Serializes the updates, because all driver node IDs share one annotation. */
  #inOrder(work: () => Promise<void>): Promise<void> {
    const mine = this.#announcing.then(work);
    this.#announcing = mine.catch(ignore('the caller of the update gets its error'));
    return mine;
  }

  async #announce(name: string, info: CsiNodeInfo): Promise<void> {
    const nodes = this.#api().resource(resources.nodes);
    const node = await nodes.get(this.#nodeName);
    checkTopology(name, info, node);
    const ids = { ...readIds(node), [name]: info.nodeId };
    await nodes.patch(this.#nodeName, undefined, 'strategic', {
      metadata: { annotations: { [NODE_ID_ANNOTATION]: JSON.stringify(ids) }, labels: info.topology },
    });
    const topologyKeys = Object.keys(info.topology).sort();
    const driver = limited({ name, nodeID: info.nodeId, topologyKeys }, info);
    await this.#changeCsiNode((drivers) => [...drivers.filter((each) => each.name !== name), driver], node);
  }

  /**
   * Changes the drivers of the CSINode, with a retry on conflicts. Without `node`, a missing CSINode is not created.
   */
  async #changeCsiNode(change: (drivers: readonly CSINodeDriver[]) => CSINodeDriver[], node?: Node): Promise<void> {
    const client = this.#api().resource(resources.csiNodes);
    for (let attempt = 1; ; attempt++) {
      try {
        const present = await this.#csiNode();
        if (present === undefined) {
          if (node === undefined) return;
          await client.create(csiNodeOf(node, change([])));
        } else {
          const drivers = change(present.spec.drivers);
          if (JSON.stringify(drivers) !== JSON.stringify(present.spec.drivers)) {
            await client.update({ ...present, spec: { ...present.spec, drivers } });
          }
        }
        return;
      } catch (error) {
        const isRace = isApiError(error, 'Conflict') || isApiError(error, 'AlreadyExists');
        if (!isRace || attempt >= CONFLICTS) throw error;
      }
    }
  }

  async #csiNode(): Promise<CSINode | undefined> {
    try {
      return await this.#api().resource(resources.csiNodes).get(this.#nodeName);
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  }

  #api(): ApiClient {
    if (this.#client === undefined) throw new Error('the API server is not available yet');
    return this.#client;
  }
}

function csiNodeOf({ metadata }: Node, drivers: CSINodeDriver[]): CSINode {
  const { name = '', uid = '' } = metadata ?? {};
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSINode',
    metadata: { name, ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid }] },
    spec: { drivers },
  };
}

function limited({ allocatable: _old, ...driver }: CSINodeDriver, { maxVolumes }: CsiNodeInfo): CSINodeDriver {
  return maxVolumes > 0 ? { ...driver, allocatable: { count: Math.min(maxVolumes, MAX_COUNT) } } : driver;
}

function readIds({ metadata }: Node): Readonly<Record<string, string>> {
  try {
    const ids: unknown = JSON.parse(metadata?.annotations?.[NODE_ID_ANNOTATION] ?? '{}');
    return typeof ids === 'object' && ids !== null ? (ids as Record<string, string>) : {};
  } catch {
    return {};
  }
}

/** Checks what a CSI driver reports about the node. Throws an Error that becomes the status of the registration. */
function checkInfo(driver: string, { nodeId, topology }: CsiNodeInfo): void {
  if (nodeId === '' || Buffer.byteLength(nodeId) > MAX_NODE_ID)
    throw new Error(`CSI driver ${driver}: node ID is empty or longer than ${MAX_NODE_ID} bytes`);
  const labels = Object.entries(topology);
  if (labels.length > MAX_TOPOLOGY)
    throw new Error(`CSI driver ${driver}: ${labels.length} topology segments are more than ${MAX_TOPOLOGY}`);
  for (const [key, value] of labels)
    if (qualifiedNameErrors(key).length > 0 || labelValueErrors(value).length > 0)
      throw new Error(
        `CSI driver ${driver}: topology segment ${JSON.stringify(key.slice(0, 64))} is not a valid label`,
      );
}

/** Like upstream's updateTopologyLabels: a driver must not change an existing label of the node. */
function checkTopology(driver: string, { topology }: CsiNodeInfo, { metadata }: Node): void {
  for (const [key, value] of Object.entries(topology)) {
    const existing = metadata?.labels?.[key];
    if (existing !== undefined && existing !== value)
      throw new Error(
        `CSI driver ${driver}: detected topology value collision: driver reported "${key}":"${value}" but existing label is "${key}":"${existing}"`,
      );
  }
}
