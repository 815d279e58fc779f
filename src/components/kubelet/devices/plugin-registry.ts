/** DRA plug-ins that offer a registration socket in `plugins_registry`. Source: pkg/kubelet/pluginmanager, KEP-4381. */

import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import { dns1123SubdomainErrors } from '../../../base/names.ts';
import type { DraPluginConnection, PluginInfo, PluginSockets } from './port.ts';

const DRA_TYPE = 'DRAPlugin';
const DRA_SERVICE = 'v1.DRAPlugin';
const MAX_PLUGINS = 64;

interface Known {
  readonly stamp: string;
  readonly driver?: string;
}

export class PluginRegistry {
  readonly #sockets: PluginSockets;
  readonly #directory: string;
  readonly #log: Log;
  readonly #known = new Map<string, Known>();
  readonly #plugins = new Map<string, { readonly path: string; readonly connection: DraPluginConnection }>();
  #scan: Promise<void> | undefined;

  constructor(sockets: PluginSockets, directory: string, log: Log) {
    this.#sockets = sockets;
    this.#directory = directory;
    this.#log = log;
  }

  plugin(driver: string): DraPluginConnection | undefined {
    return this.#plugins.get(driver)?.connection;
  }

  /** Registers what is new and forgets what is gone. Never rejects. */
  scan(): Promise<void> {
    this.#scan ??= this.#look()
      .catch((error: unknown) => this.#log.warn('plug-in registry not read', { error: messageOf(error) }))
      .finally(() => {
        this.#scan = undefined;
      });
    return this.#scan;
  }

  stop(): void {
    for (const { connection } of this.#plugins.values()) connection.close();
    this.#plugins.clear();
  }

  async #look(): Promise<void> {
    const found = await this.#sockets.sockets(this.#directory);
    for (const [path, { stamp, driver }] of this.#known) {
      if (found.get(path) === stamp) continue;
      this.#known.delete(path);
      const plugin = this.#plugins.get(driver ?? '');
      if (driver === undefined || plugin?.path !== path) continue;
      plugin.connection.close();
      this.#plugins.delete(driver);
      this.#log.info('DRA plug-in unregistered', { driver });
    }
    for (const [path, stamp] of found) if (!this.#known.has(path)) await this.#meet(path, stamp);
  }

  async #meet(path: string, stamp: string): Promise<void> {
    let info: PluginInfo;
    try {
      info = await this.#sockets.pluginInfo(path);
    } catch (error) {
      this.#log.v(2, 'plug-in does not answer', { path, error: messageOf(error) });
      return;
    }
    // CSI drivers register with the volume manager.
    if (info.type !== DRA_TYPE) {
      this.#known.set(path, { stamp });
      return;
    }
    const problem = this.#problemOf(info);
    this.#known.set(path, problem === undefined ? { stamp, driver: info.name } : { stamp });
    if (problem !== undefined) this.#log.warn('DRA plug-in refused', { path, error: problem });
    else {
      this.#plugins.get(info.name)?.connection.close();
      this.#plugins.set(info.name, { path, connection: this.#sockets.draPlugin(info.endpoint) });
      this.#log.info('DRA plug-in registered', { driver: info.name, endpoint: info.endpoint });
    }
    await this.#sockets
      .notifyRegistration(path, problem ?? '')
      .catch((error: unknown) => this.#log.warn('plug-in not notified', { path, error: messageOf(error) }));
  }

  #problemOf({ name, versions, endpoint }: PluginInfo): string | undefined {
    if (dns1123SubdomainErrors(name).length > 0 || name.length > 63)
      return `driver name ${JSON.stringify(name.slice(0, 64))} is not a DNS subdomain of at most 63 characters`;
    if (!versions.includes(DRA_SERVICE))
      return `none of the services ${JSON.stringify(versions.slice(0, 8))} is supported; offer "${DRA_SERVICE}"`;
    if (!endpoint.startsWith('/')) return `endpoint ${JSON.stringify(endpoint.slice(0, 64))} is not an absolute path`;
    if (this.#plugins.size >= MAX_PLUGINS) return `${MAX_PLUGINS} plug-ins are registered already`;
    return undefined;
  }
}
