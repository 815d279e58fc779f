import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import {
  difference,
  emptyNftState,
  guardTable,
  type NftState,
  needsReplace,
  nftState,
  replaceTable,
} from '../../core/ruleset/index.ts';
import type { PacketFilter } from '../../core/ruleset/port.ts';
import type { ProxyConfig, ProxyMode } from './mode.ts';

interface Deps {
  readonly packetFilter: PacketFilter;
  readonly log: Log;
  readonly config: ProxyConfig;
}

export function createFilterMode(deps: Deps): ProxyMode {
  const { table, clusterCidr, reservedPorts } = deps.config;
  const options = { table, clusterCidr, reservedPorts };
  /**
   * What the kernel holds as far as we know; undefined after a failure or before the first time: replace everything.
   */
  let applied: NftState | undefined;
  let routed = false;
  return {
    name: 'nftables',
    async prepare() {
      await deps.packetFilter.apply(guardTable(options)).catch((error: unknown) => {
        deps.log.warn('service rules of another version are replaced', { table, error: messageOf(error) });
        return deps.packetFilter.apply(replaceTable(emptyNftState, options));
      });
    },
    async sync(ports) {
      if (!routed) {
        await deps.packetFilter.routeServices(deps.config.serviceCidr).then(
          () => {
            routed = true;
          },
          // Only hosts without a default route need it; the next change tries again.
          (error: unknown) => deps.log.v(2, 'no route for service addresses yet', { error: messageOf(error) }),
        );
      }
      const desired = nftState(ports, options);
      const program =
        applied === undefined || needsReplace(applied, desired)
          ? replaceTable(desired, options)
          : difference(applied, desired, options);
      if (program === '') return;
      applied = undefined;
      await deps.packetFilter.apply(program);
      applied = desired;
      deps.log.v(4, 'service rules applied', { servicePorts: ports.length, lines: program.split('\n').length });
    },
    async stop() {
      applied = undefined;
      await deps.packetFilter.apply(`add table ip ${options.table}\ndelete table ip ${options.table}\n`);
    },
  };
}
