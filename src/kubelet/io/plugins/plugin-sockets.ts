import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Log } from '../../../base/log.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { PluginSockets } from '../../devices/port.ts';
import { connectDevicePlugin, serveRegistration } from './device-plugins.ts';
import { connectDraPlugin } from './dra-plugins.ts';
import { servePodResources } from './pod-resources.ts';

export function createPluginSockets({ clock, log }: { readonly clock: Clock; readonly log: Log }): PluginSockets {
  const prepared = async (path: string): Promise<string> => {
    await mkdir(dirname(path), { recursive: true, mode: 0o750 });
    return path;
  };
  return {
    serveRegistration: async (path, register) => serveRegistration(await prepared(path), register, log),
    servePodResources: async (path, source) => servePodResources(await prepared(path), source, log),
    devicePlugin: (socket) => connectDevicePlugin(socket, clock, log),
    draPlugin: (socket, service) => connectDraPlugin(socket, service, clock, log),
  };
}
