/** CSI drivers that have registered on this node, and its CSINode object. Source: pkg/volume/csi/nodeinfomanager. */
import type { Node } from 'kubernetes-types/core/v1';
import type { CSIDriver, CSINode, CSINodeDriver } from 'kubernetes-types/storage/v1';
import { isApiError } from '../../../../api/meta/status.ts';
import { resources } from '../../../../api/resources.ts';
import type { Log } from '../../../../base/log.ts';
import type { ApiClient } from '../../../../client/types.ts';
import type { PluginHandler, RegisteredPlugin } from '../../plugins/registrations.ts';
import type { CsiConnector, CsiNode, CsiNodeCapability, CsiNodeInfo } from './port.ts';

export interface RegisteredDriver {
  readonly name: string;
  readonly node: CsiNode;
  readonly capabilities: ReadonlySet<CsiNodeCapability>;
}

const NODE_ID_ANNOTATION = 'csi.volume.kubernetes.io/nodeid';
const CONFLICTS = 5;

export class CsiDrivers implements PluginHandler {
  readonly #connect: CsiConnector;
  readonly #nodeName: string;
  readonly #log: Log;
  readonly #drivers = new Map<string, RegisteredDriver>();
  #client: ApiClient | undefined;

  constructor(options: { readonly connect: CsiConnector; readonly nodeName: string; readonly log: Log }) {
    this.#connect = options.connect;
    this.#nodeName = options.nodeName;
    this.#log = options.log;
  }

  connect(client: ApiClient): void {
    this.#client = client;
  }

  /** Throws with upstream's words. */
  get(name: string): RegisteredDriver {
    const driver = this.#drivers.get(name);
    if (driver === undefined) throw new Error(`driver name ${name} not found in the list of registered CSI drivers`);
    return driver;
  }

  /** The cluster's object about the driver; undefined: it has none. */
  async object(name: string): Promise<CSIDriver | undefined> {
    try {
      return await this.#api().resource(resources.csiDrivers).get(name);
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  }

  async register({ name, socket, versions }: RegisteredPlugin): Promise<void> {
    if (!versions.some((version) => /^v?1\./.test(version))) {
      throw new Error(`CSI driver ${name}: supports versions ${versions.join(', ')}; this node needs 1.x`);
    }
    const node = this.#connect(socket);
    const capabilities = await node.capabilities();
    const info = await node.info();
    await this.#announce(name, info);
    this.#drivers.set(name, { name, node, capabilities });
    this.#log.info('CSI driver registered', { driver: name, nodeId: info.nodeId });
  }

  async deregister({ name }: RegisteredPlugin): Promise<void> {
    this.#drivers.delete(name);
    this.#log.info('CSI driver deregistered', { driver: name });
    await this.#changeCsiNode((drivers) => drivers.filter((driver) => driver.name !== name));
  }

  async #announce(name: string, info: CsiNodeInfo): Promise<void> {
    const nodes = this.#api().resource(resources.nodes);
    const node = await nodes.get(this.#nodeName);
    const ids = { ...readIds(node), [name]: info.nodeId };
    await nodes.patch(this.#nodeName, undefined, 'merge', {
      metadata: { annotations: { [NODE_ID_ANNOTATION]: JSON.stringify(ids) }, labels: info.topology },
    });
    const driver: CSINodeDriver = {
      name,
      nodeID: info.nodeId,
      topologyKeys: Object.keys(info.topology).sort(),
      ...(info.maxVolumes > 0 ? { allocatable: { count: info.maxVolumes } } : {}),
    };
    await this.#changeCsiNode((drivers) => [...drivers.filter((each) => each.name !== name), driver], node);
  }

  /** Reads and writes until no other writer comes between. */
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
    if (this.#client === undefined) throw new Error('there is no API server yet');
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

function readIds({ metadata }: Node): Readonly<Record<string, string>> {
  try {
    const ids: unknown = JSON.parse(metadata?.annotations?.[NODE_ID_ANNOTATION] ?? '{}');
    return typeof ids === 'object' && ids !== null ? (ids as Record<string, string>) : {};
  } catch {
    return {};
  }
}
