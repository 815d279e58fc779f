import { inTurns } from '../../base/concurrency/in-turns.ts';
import { createReadBack } from '../../base/concurrency/read-back.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import { emptyNftState, type Family, guardTable, type NftOptions, NftTable, replaceTable } from './core/index.ts';
import type { PacketFilter } from './core/port.ts';
import type { ProxyConfig, ProxyMode } from './mode.ts';

interface Deps {
  readonly packetFilter: PacketFilter;
  readonly log: Log;
  readonly clock: Clock;
  readonly config: ProxyConfig;
}

const familyOf = (cidr: string): Family => (cidr.includes(':') ? 6 : 4);
const TABLE_FAMILIES: Readonly<Record<Family, string>> = { 4: 'ip', 6: 'ip6' };

/** Creates one table for each address family of the cluster's services. */
export function createFilterMode(deps: Deps): ProxyMode {
  const { table, clusterCidrs, serviceCidrs, reservedPorts, poolRanges = [] } = deps.config;
  const options = [...new Set(serviceCidrs.map(familyOf))].map(
    (family): NftOptions => ({
      table,
      family,
      clusterCidr: clusterCidrs.find((cidr) => familyOf(cidr) === family),
      reservedPorts,
      poolRanges: poolRanges.filter((range) => familyOf(range) === family),
    }),
  );
  const tables = options.map((each) => new NftTable(each));
  const routed = new Set<string>();
  const readBack = createReadBack({
    read: () => Promise.all(options.map(({ family }) => deps.packetFilter.outline(family, table))),
    onError: (error) => deps.log.v(2, 'service rules not read', { error: messageOf(error) }),
    clock: deps.clock,
  });
  let isDue = false;
  const apply = (program: (options: NftOptions) => string): Promise<void> =>
    deps.packetFilter.apply(options.map(program).join(''));
  /** Replaces the whole table when it is missing or its rules differ from the applied ones. */
  const compare = async (): Promise<void> => {
    routed.clear();
    if (!(await readBack.differs())) return;
    deps.log.warn('service rules changed by another program; they are restored', { table });
    for (const each of tables) each.reset();
  };
  /**
   * Program that copies the clients of affinity sets, which the kernel has added, from the former table to its
   * replacement.
   */
  const affinity = async (): Promise<string> => {
    const texts = tables.map(async (each, index) => {
      const family = options[index]?.family;
      if (!each.isReplaced || family === undefined || !each.state().get('sets')?.size) return '';
      return each.restoreAffinity(await deps.packetFilter.timedMembers(family, table));
    });
    return (await Promise.all(texts)).join('');
  };
  const lost = (error: unknown): string => {
    deps.log.warn('session affinity not kept', { table, error: messageOf(error) });
    return '';
  };
  const applyKeepingAffinity = async (program: string): Promise<void> => {
    const members = await affinity().catch(lost);
    if (members !== '')
      try {
        return await deps.packetFilter.apply(`${program}\n${members}`);
      } catch (error) {
        lost(error);
      }
    await deps.packetFilter.apply(program);
  };
  return {
    name: 'nftables',
    async prepare() {
      await apply(guardTable).catch((error: unknown) => {
        deps.log.warn('service rules of another version are replaced', { table, error: messageOf(error) });
        return apply((each) => replaceTable(emptyNftState, each));
      });
    },
    *change(services) {
      for (const [service, ports] of services) for (const each of tables) yield* each.setSteps(service, ports);
    },
    verify(damaged) {
      isDue = true;
      for (const [index, { family }] of options.entries())
        if (damaged.has(`${TABLE_FAMILIES[family]} ${table}`)) tables[index]?.reset();
    },
    async sync() {
      if (isDue) {
        isDue = false;
        await compare().catch((error: unknown) =>
          deps.log.v(2, 'service rules not compared', { table, error: messageOf(error) }),
        );
      }
      for (const cidr of serviceCidrs) {
        if (routed.has(cidr)) continue;
        await deps.packetFilter.routeServices(cidr).then(
          () => routed.add(cidr),
          // Only hosts without a default route need this route. The next change retries.
          (error: unknown) => deps.log.v(2, 'no route for service addresses yet', { cidr, error: messageOf(error) }),
        );
      }
      const programs: string[] = [];
      for (const each of tables) programs.push(await inTurns(each.programSteps(), deps.clock));
      const program = programs.filter((each) => each !== '').join('\n');
      if (program === '') return;
      readBack.applying();
      await applyKeepingAffinity(program).catch((error: unknown) => {
        // After a failure the state of the kernel is unknown, so the next program replaces each table.
        for (const each of tables) each.reset();
        throw error;
      });
      readBack.applied();
      deps.log.v(4, 'service rules applied', { lines: program.split('\n').length });
    },
    async stop() {
      readBack.stop();
      for (const each of tables) each.reset();
      await apply(({ family }) => {
        const name = `table ${TABLE_FAMILIES[family]} ${table}`;
        return `add ${name}\ndelete ${name}\n`;
      });
    },
  };
}
