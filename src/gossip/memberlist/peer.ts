import { lookup } from 'node:dns/promises';
import { isIPv6 } from 'node:net';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { PeerAddress } from '../core/port.ts';
import { canonicalIp } from './addresses.ts';

/**
 * Resolves `host`, `host:port` or `[address]:port` to an address in the family of `bindIp`. Throws CodedError
 * 'bad-peer'.
 */
export async function resolvePeer(peer: string, defaultPort: number, bindIp: string): Promise<PeerAddress> {
  const [, literal, name, digits] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(peer) ?? [];
  const host = literal ?? name;
  const port = digits === undefined ? defaultPort : Number(digits);
  if (host === undefined || port < 1 || port > 65_535)
    throw new CodedError('bad-peer', `"${peer}" is not an address; give one such as 10.0.0.2:7946`);
  try {
    const { address } = await lookup(host, { family: isIPv6(bindIp) ? 6 : 4 });
    return { ip: canonicalIp(address) ?? address, port };
  } catch (error) {
    throw new CodedError('bad-peer', `${peer}: ${messageOf(error)}`, { cause: error });
  }
}
