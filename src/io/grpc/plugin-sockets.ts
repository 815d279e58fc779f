import { lstat, mkdir, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { PluginSockets } from '../../components/kubelet/devices/port.ts';
import { connectDevicePlugin, serveRegistration } from './device-plugins.ts';
import { connectDraPlugin, notifyRegistration, readPluginInfo } from './dra-plugins.ts';
import { servePodResources } from './pod-resources.ts';

const MAX_SOCKETS = 256;

export function createPluginSockets({ clock, log }: { readonly clock: Clock; readonly log: Log }): PluginSockets {
  const prepared = async (path: string): Promise<string> => {
    await mkdir(dirname(path), { recursive: true, mode: 0o750 });
    return path;
  };
  return {
    serveRegistration: async (path, register) => serveRegistration(await prepared(path), register, log),
    servePodResources: async (path, source) => servePodResources(await prepared(path), source, log),
    devicePlugin: (socket) => connectDevicePlugin(socket, clock, log),
    draPlugin: (socket) => connectDraPlugin(socket, clock, log),
    pluginInfo: (socket) => readPluginInfo(socket, clock, log),
    notifyRegistration: (socket, error) => notifyRegistration(socket, error, clock, log),
    async sockets(directory) {
      const found = new Map<string, string>();
      for (const name of (await readdir(directory).catch(() => [])).sort().slice(0, MAX_SOCKETS)) {
        if (name.startsWith('.')) continue;
        const path = join(directory, name);
        const stats = await lstat(path).catch(() => undefined);
        if (stats?.isSocket() === true) found.set(path, `${stats.ino}/${stats.ctimeMs}`);
      }
      return found;
    },
  };
}
