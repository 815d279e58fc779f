/** Restricts the VXLAN devices of a host to frames from hosts of its cluster. */
import { isIP } from 'node:net';
import { messageOf } from '../../../../base/errors.ts';
import { ownTransaction } from '../../../../base/linux/nftables-mark.ts';
import { command } from '../command.ts';
import { VXLAN_ID, VXLAN_PORT } from './filter.ts';

/** Position and value of the VXLAN network identifier, counted from the UDP header. Source: RFC 7348 §5. */
const IDENTIFIER = `@th,96,24 ${VXLAN_ID}`;
const MAX_LISTING = 16 * 1024 * 1024;

/**
 * Returns a function that restricts the VXLAN devices to frames from these hosts and restores a changed table. If the
 * hosts are undefined, the function removes the table. Throws RuntimeError 'network'.
 */
export function createTunnelGuard(nft: string, name: string): (hosts: readonly string[] | undefined) => Promise<void> {
  const table = `inet ${name}`;
  let applied: string | undefined;
  /** Listing of the table after it was applied. */
  let listing: string | undefined;
  return async (hosts) => {
    if (hosts === undefined) {
      if (applied === '') return;
      await command(nft, ['-f', '-'], ownTransaction(`add table ${table}\ndelete table ${table}\n`));
      applied = '';
      return;
    }
    const text = program(table, hosts);
    // After a failed listing the state of the table is unknown, so it counts as unchanged.
    if (text === applied && (await list(nft, name).catch(() => listing)) === listing) return;
    applied = undefined;
    await command(nft, ['-f', '-'], ownTransaction(text));
    listing = await list(nft, name);
    applied = text;
  };
}

/** Lists the table; '' if the table does not exist. */
async function list(nft: string, name: string): Promise<string> {
  return command(nft, ['list', 'table', 'inet', name], '', MAX_LISTING).catch((error: unknown) => {
    if (/No such file or directory/.test(messageOf(error))) return '';
    throw error;
  });
}

function program(table: string, hosts: readonly string[]): string {
  const set = (family: 4 | 6): string => {
    const own = hosts.filter((host) => isIP(host) === family).sort();
    const elements = own.length === 0 ? '' : `elements = { ${own.join(', ')} }; `;
    return `  set hosts${family} { type ipv${family}_addr; ${elements}}`;
  };
  return [
    `add table ${table}`,
    `delete table ${table}`,
    `table ${table} {`,
    set(4),
    set(6),
    '  chain input {',
    '    type filter hook input priority -5; policy accept',
    ...(['ip', 'ip6'] as const).map(
      (ip) => `    udp dport ${VXLAN_PORT} ${IDENTIFIER} ${ip} saddr != @hosts${ip === 'ip' ? 4 : 6} drop`,
    ),
    '  }',
    '}',
    '',
  ].join('\n');
}
