/**
 * A table of its own for services that are idled: packets to their addresses are dropped and the addresses noted, so
 * that clients send again until the services have endpoints. Source: OpenShift's documentation, "Idling applications".
 */
import type { Service } from 'kubernetes-types/core/v1';
import { isIdled } from '../../api/kinds/services/idling.ts';
import { ipFamilyOf } from '../../base/addresses.ts';
import { WORDS } from './content.ts';
import type { Family } from './service-port.ts';
import { clusterIpsOf, isForwarded, protocolOf } from './services.ts';

/** The set of what was asked for. */
export const ASKED = 'asked';
const ASKED_SECONDS = 30;
const MAX_ASKED = 1_024;
/** Before connection tracking's NAT and before the refusal of services without endpoints. */
const PRIORITY = -160;

/** `ADDRESS . PROTOCOL . PORT` of the service's own addresses; none where it is not idled. */
export function idleKeys(service: Service, family: Family): string[] {
  const { spec } = service;
  if (spec === undefined || !isIdled(service) || !isForwarded(service)) return [];
  const addresses = clusterIpsOf(spec).filter((each) => ipFamilyOf(each) === family);
  return addresses.flatMap((address) =>
    (spec.ports ?? []).map((port) => `${address} . ${protocolOf(port).toLowerCase()} . ${port.port}`),
  );
}

/** Replaces the table `name`; without keys there is none. */
export function idleTable(keys: readonly string[], family: Family, name: string): string {
  const { ip, address } = WORDS[family];
  const table = `${ip} ${name}`;
  const type = `type ${address} . inet_proto . inet_service`;
  const destination = `${ip} daddr . meta l4proto . th dport`;
  const lines = [`add table ${table}`, `delete table ${table}`];
  if (keys.length > 0)
    lines.push(
      `add table ${table}`,
      `add set ${table} idle { ${type}; }`,
      `add set ${table} ${ASKED} { ${type}; flags dynamic,timeout; timeout ${ASKED_SECONDS}s; size ${MAX_ASKED}; }`,
      `add chain ${table} hold`,
      `add rule ${table} hold update @${ASKED} { ${destination} }`,
      `add rule ${table} hold drop`,
      ...['prerouting', 'output'].flatMap((hook) => [
        `add chain ${table} idle_${hook} { type filter hook ${hook} priority ${PRIORITY}; policy accept; }`,
        `add rule ${table} idle_${hook} ${destination} @idle goto hold`,
      ]),
      `add element ${table} idle { ${keys.join(', ')} }`,
    );
  return `${lines.join('\n')}\n`;
}
