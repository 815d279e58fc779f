import type { Log } from '../../base/log.ts';
import { chooseNodeIps, hostAddresses, podLinksOf } from '../config/node-addresses.ts';
import type { NodeConfig } from '../config/node-config.ts';
import type { Settings } from '../config/settings.ts';

/** Addresses of this host as its Node reports them. Detected addresses are updated when they change. */
export interface NodeAddresses {
  /** The primary address first. */
  readonly current: () => readonly string[];
  /** Reads the addresses of the host's links again. */
  refresh(): Promise<readonly string[]>;
  onChange(handler: () => void): void;
}

export function createNodeAddresses(settings: Settings, nodeConfig: NodeConfig, log: Log): NodeAddresses {
  const given = nodeConfig.nodeIP ?? settings.nodeIpGiven;
  const podLinks = podLinksOf(settings.network.bridge, settings.podNetwork.tunnelNames);
  const handlers: (() => void)[] = [];
  const { ipFamilies } = settings;
  const vip = settings.vip === undefined ? [] : [settings.vip.address];
  const shared = [...vip, ...settings.serviceLoadBalancer.addresses];
  const choice = { ipFamilies, given, podLinks, serviceCidrs: settings.network.serviceCidrs, shared };
  let current: readonly string[] =
    given === undefined
      ? settings.nodeIps
      : [given, ...settings.nodeIps.filter((each) => family(each) !== family(given))];
  return {
    current: () => current,
    refresh: async () => {
      const found = chooseNodeIps(await hostAddresses(), { ...choice, previous: current });
      // A lost address is kept until its family has another address, because an unplugged cable does not change the
      // address.
      const next = [...found, ...current.filter((each) => !found.some((other) => family(other) === family(each)))];
      next.sort((left, right) => ipFamilies.indexOf(`IPv${family(left)}`) - ipFamilies.indexOf(`IPv${family(right)}`));
      if (settings.nodeIpIsBridge || next.join() === current.join()) return current;
      log.info('host address changed', { from: current.join(), to: next.join() });
      current = next;
      for (const handler of handlers) handler();
      return current;
    },
    onChange: (handler) => {
      handlers.push(handler);
    },
  };
}

const family = (address: string): 4 | 6 => (address.includes(':') ? 6 : 4);
