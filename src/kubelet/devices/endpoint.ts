/** Connection to one device plug-in. Validates everything that the plug-in sends. */
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { AllocateAnswer, DevicePluginConnection, ListedDevice, PluginOptions } from './port.ts';
import { checkAnswer, checkDevices, checkPreferred } from './validate-plugin.ts';

/** Source of a resource's devices: a plug-in, or this node itself. */
export interface DeviceEndpoint {
  readonly preStartRequired: boolean;
  /** Selects `size` of the available devices: those that the plug-in prefers, otherwise the first ones. */
  choose(available: readonly string[], size: number): Promise<readonly string[]>;
  allocate(ids: readonly string[]): Promise<AllocateAnswer>;
  preStart(ids: readonly string[]): Promise<void>;
  stop(): void;
}

export interface PluginEvents {
  listed(devices: readonly ListedDevice[]): void;
  /** Called when the connection ends. `refused`: the plug-in violated a limit of the protocol. */
  ended(why: string, refused: boolean): void;
}

export function pluginEndpoint(
  resource: string,
  connection: DevicePluginConnection,
  { preStartRequired, preferredAllocation }: PluginOptions,
  events: PluginEvents,
  log: Log,
): DeviceEndpoint {
  connection.watch({
    listed: (devices) => {
      try {
        checkDevices(devices);
      } catch (error) {
        connection.close();
        events.ended(messageOf(error), true);
        return;
      }
      events.listed(devices);
    },
    ended: (error) => events.ended(error.message, false),
  });
  return {
    preStartRequired,
    async choose(available, size) {
      const first = available.slice(0, size);
      if (!preferredAllocation || available.length === size) return first;
      try {
        const preferred = await connection.preferred(available, size);
        checkPreferred(preferred, new Set(available), size);
        return preferred;
      } catch (error) {
        log.warn('preferred allocation of device plug-in not used', { resource, error: messageOf(error) });
        return first;
      }
    },
    async allocate(ids) {
      try {
        return checkAnswer(await connection.allocate(ids));
      } catch (error) {
        throw new Error(`Allocate failed due to ${resource}: ${messageOf(error)}, which is unexpected`, {
          cause: error,
        });
      }
    },
    preStart: (ids) => connection.preStart(ids),
    stop: () => connection.close(),
  };
}
