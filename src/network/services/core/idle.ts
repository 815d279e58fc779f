/**
 * Separate table for idled services. Packets to their addresses and node ports are dropped and recorded, so that
 * clients retransmit until the services have endpoints. Source: OpenShift's documentation, "Idling applications".
 */

import type { Family, ServicePort } from './service-port.ts';
import { WORDS } from './table-content.ts';

/** Sets of recorded destinations: by address, and by node port. */
export const REQUESTED = ['requested', 'requested_node_ports'] as const;
const REQUESTED_SECONDS = 30;
const MAX_REQUESTED = 1_024;
/** Priority of the chain: before the NAT of connection tracking and the rejection of services without endpoints. */
const PRIORITY = -160;

/** Keys in the table: `ADDRESS . PROTOCOL . PORT` for each address, and `PROTOCOL . PORT` for each node port. */
export function idleKeys(ports: readonly ServicePort[], family: Family): string[] {
  return ports
    .filter((each) => each.family === family)
    .flatMap(({ clusterIps, externalIps, protocol, port, nodePort }) => {
      const word = protocol.toLowerCase();
      const addresses = [...clusterIps, ...externalIps].map((address) => `${address} . ${word} . ${port}`);
      return nodePort === 0 ? addresses : [...addresses, `${word} . ${nodePort}`];
    });
}

const isNodePort = (key: string): boolean => key.split(' . ').length === 2;

/** Program that replaces the table `name`. If there are no keys, the table is deleted. */
export function idleTable(keys: readonly string[], family: Family, name: string): string {
  const { ip, address } = WORDS[family];
  const table = `${ip} ${name}`;
  const kinds = [
    {
      set: 'idle',
      requested: REQUESTED[0],
      type: `type ${address} . inet_proto . inet_service`,
      local: '',
      destination: `${ip} daddr . meta l4proto . th dport`,
      members: keys.filter((key) => !isNodePort(key)),
    },
    {
      set: 'idle_node_ports',
      requested: REQUESTED[1],
      type: 'type inet_proto . inet_service',
      local: 'fib daddr type local ',
      destination: 'meta l4proto . th dport',
      members: keys.filter(isNodePort),
    },
  ];
  const lines = [`add table ${table}`, `delete table ${table}`];
  if (keys.length > 0) {
    lines.push(`add table ${table}`);
    for (const hook of ['prerouting', 'output'])
      lines.push(`add chain ${table} idle_${hook} { type filter hook ${hook} priority ${PRIORITY}; policy accept; }`);
    for (const { set, requested, type, local, destination, members } of kinds)
      lines.push(
        `add set ${table} ${set} { ${type}; }`,
        `add set ${table} ${requested} { ${type}; flags dynamic,timeout; timeout ${REQUESTED_SECONDS}s; size ${MAX_REQUESTED}; }`,
        `add chain ${table} hold_${set}`,
        `add rule ${table} hold_${set} update @${requested} { ${destination} }`,
        `add rule ${table} hold_${set} drop`,
        ...['prerouting', 'output'].map(
          (hook) => `add rule ${table} idle_${hook} ${local}${destination} @${set} goto hold_${set}`,
        ),
        ...(members.length === 0 ? [] : [`add element ${table} ${set} { ${members.join(', ')} }`]),
      );
  }
  return `${lines.join('\n')}\n`;
}
