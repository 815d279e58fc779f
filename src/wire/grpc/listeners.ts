import type { RpcListener, RpcService } from './port.ts';

export interface BoundListeners extends RpcListener {
  /** Bound addresses in the order of the listeners; empty before `listen`. */
  readonly addresses: readonly { readonly host: string; readonly port: number }[];
}

/** Combines listeners: `listen` starts all, or none if one fails, and resolves with the first address. */
export function combineListeners(listeners: readonly [RpcListener, ...RpcListener[]]): BoundListeners {
  const addresses: { readonly host: string; readonly port: number }[] = [];
  const closeAll = async (graceMs: number): Promise<void> => {
    await Promise.all(listeners.map((each) => each.close(graceMs)));
  };
  return {
    addresses,
    listen: async (service: RpcService) => {
      const [first, ...others] = listeners;
      try {
        addresses.length = 0;
        addresses.push(await first.listen(service));
        for (const each of others) addresses.push(await each.listen(service));
      } catch (error) {
        await closeAll(0);
        throw error;
      }
      return addresses[0] as { readonly host: string; readonly port: number };
    },
    drain: async (mostMs) => {
      await Promise.all(listeners.map((each) => each.drain(mostMs)));
    },
    close: closeAll,
  };
}
