/** DRA plug-ins that have registered with the kubelet. Source: pkg/kubelet/cm/dra/plugin, KEP-4381. */
import type { Log } from '../../base/log.ts';
import { dns1123SubdomainErrors } from '../../base/names.ts';
import type { PluginHandler, RegisteredPlugin } from '../plugins/registrations.ts';
import { DRA_SERVICES, type DraPluginConnection, type DraService, type PluginSockets, RIG_DRIVER } from './port.ts';

const MAX_PLUGINS = 64;

interface Known {
  readonly driver: string;
  readonly socket: string;
  readonly connection: DraPluginConnection;
}

export interface DraPluginsOptions {
  readonly sockets: Pick<PluginSockets, 'draPlugin'>;
  readonly log: Log;
  /** Called when a driver's first plug-in registers or its last one disappears. */
  readonly onChanged: () => void;
}

export class DraPlugins implements PluginHandler {
  readonly #options: DraPluginsOptions;
  /** Plug-ins in order of registration. */
  #plugins: readonly Known[] = [];

  constructor(options: DraPluginsOptions) {
    this.#options = options;
  }

  /**
   * Connection to a driver. If the driver has several registered plug-ins, as during an update, the newest one is used.
   */
  plugin(driver: string): DraPluginConnection | undefined {
    return this.#plugins.findLast((each) => each.driver === driver)?.connection;
  }

  async register(plugin: RegisteredPlugin): Promise<void> {
    const { name: driver, socket, versions } = plugin;
    const service = serviceOf(versions);
    const problem = this.#problemOf(plugin, service);
    if (service === undefined || problem !== undefined) throw new Error(problem);
    this.#forget((each) => each.socket === socket);
    const { sockets, log, onChanged } = this.#options;
    this.#plugins = [...this.#plugins, { driver, socket, connection: sockets.draPlugin(socket, service) }];
    log.info('DRA plug-in registered', { driver, endpoint: socket, service });
    onChanged();
  }

  async deregister({ name: driver, socket }: RegisteredPlugin): Promise<void> {
    this.#forget((each) => each.driver === driver && each.socket === socket);
    this.#options.log.info('DRA plug-in unregistered', { driver, endpoint: socket });
    this.#options.onChanged();
  }

  stop(): void {
    this.#forget(() => true);
  }

  #forget(isMeant: (plugin: Known) => boolean): void {
    for (const each of this.#plugins) if (isMeant(each)) each.connection.close();
    this.#plugins = this.#plugins.filter((each) => !isMeant(each));
  }

  #problemOf({ name, versions, socket }: RegisteredPlugin, service: DraService | undefined): string | undefined {
    if (dns1123SubdomainErrors(name).length > 0 || name.length > 63)
      return `driver name ${JSON.stringify(name.slice(0, 64))} is not a DNS subdomain of at most 63 characters`;
    if (name === RIG_DRIVER) return `driver name ${name} is reserved for the fixtures of this node; use another name`;
    if (service === undefined)
      return `none of the services ${JSON.stringify(versions.slice(0, 8))} is supported; offer one of ${JSON.stringify(DRA_SERVICES)}`;
    if (!socket.startsWith('/')) return `endpoint ${JSON.stringify(socket.slice(0, 64))} is not an absolute path`;
    const other = this.#plugins.find((each) => each.socket === socket && each.driver !== name);
    if (other !== undefined) return `endpoint ${socket} is registered already for DRA driver ${other.driver}`;
    if (this.#plugins.length >= MAX_PLUGINS) return `${MAX_PLUGINS} plug-ins are registered already`;
    return undefined;
  }
}

/** First supported service in the driver's order of preference, as upstream selects it. */
const serviceOf = (versions: readonly string[]): DraService | undefined =>
  versions.flatMap((version) => DRA_SERVICES.filter((service) => service === version))[0];
