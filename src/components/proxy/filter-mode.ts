import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import {
  difference,
  emptyNftState,
  type Family,
  guardTable,
  type NftOptions,
  type NftState,
  needsReplace,
  nftState,
  replaceTable,
  type ServicePort,
  UdpZones,
} from '../../core/ruleset/index.ts';
import type { PacketFilter } from '../../core/ruleset/port.ts';
import type { ProxyConfig, ProxyMode } from './mode.ts';

interface Deps {
  readonly packetFilter: PacketFilter;
  readonly log: Log;
  readonly config: ProxyConfig;
}

const familyOf = (cidr: string): Family => (cidr.includes(':') ? 6 : 4);
const TABLE_FAMILIES: Readonly<Record<Family, string>> = { 4: 'ip', 6: 'ip6' };

/** One table for each family that the cluster's services have. */
export function createFilterMode(deps: Deps): ProxyMode {
  const { table, clusterCidrs, serviceCidrs, reservedPorts } = deps.config;
  const families = [...new Set(serviceCidrs.map(familyOf))];
  const zones = new Map(families.map((family) => [family, new UdpZones()]));
  const optionsOf = (family: Family, ports?: readonly ServicePort[]): NftOptions => ({
    table,
    family,
    clusterCidr: clusterCidrs.find((cidr) => familyOf(cidr) === family),
    reservedPorts,
    zones: zones.get(family)?.next((ports ?? []).filter((port) => port.family === family)) ?? new Map(),
  });
  /**
   * What the kernel holds as far as we know; absent after a failure or before the first time: replace everything.
   */
  const applied = new Map<Family, NftState>();
  const routed = new Set<string>();
  const apply = (program: (options: NftOptions) => string): Promise<void> =>
    deps.packetFilter.apply(families.map((family) => program(optionsOf(family))).join(''));
  return {
    name: 'nftables',
    async prepare() {
      await apply(guardTable).catch((error: unknown) => {
        deps.log.warn('service rules of another version are replaced', { table, error: messageOf(error) });
        return apply((options) => replaceTable(emptyNftState, options));
      });
    },
    async sync(ports) {
      for (const cidr of serviceCidrs) {
        if (routed.has(cidr)) continue;
        await deps.packetFilter.routeServices(cidr).then(
          () => routed.add(cidr),
          // Only hosts without a default route need it; the next change tries again.
          (error: unknown) => deps.log.v(2, 'no route for service addresses yet', { cidr, error: messageOf(error) }),
        );
      }
      const desired = new Map(families.map((family) => [family, nftState(ports, optionsOf(family, ports))]));
      const programs = [...desired].map(([family, state]) => {
        const current = applied.get(family);
        return current === undefined || needsReplace(current, state)
          ? replaceTable(state, optionsOf(family))
          : difference(current, state, optionsOf(family));
      });
      const program = programs.filter((each) => each !== '').join('\n');
      if (program === '') return;
      applied.clear();
      await deps.packetFilter.apply(program);
      for (const [family, state] of desired) applied.set(family, state);
      deps.log.v(4, 'service rules applied', { servicePorts: ports.length, lines: program.split('\n').length });
    },
    async stop() {
      applied.clear();
      await apply(({ family }) => {
        const name = `table ${TABLE_FAMILIES[family]} ${table}`;
        return `add ${name}\ndelete ${name}\n`;
      });
    },
  };
}
