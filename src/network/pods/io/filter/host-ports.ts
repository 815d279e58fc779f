import { isIP } from 'node:net';
import type { ReservedPort } from '../../../../api/kinds/nodes/nodes/host-ports.ts';
import type { PortMapping } from '../../../../runtime/port.ts';
import { RuntimeError } from '../../../../runtime/port.ts';
import type { Attachment } from '../bridge/attachments.ts';
import { collides, isReserved } from './filter.ts';
import { isInUse } from './sockets.ts';

export const nameOf = ({ hostPort, protocol }: PortMapping): string => `${hostPort}/${protocol}`;

/** Checks the host ports that a pod requests. Throws RuntimeErrors for ports that are not available. */
export function checkHostPorts(
  wanted: readonly PortMapping[],
  others: readonly Attachment[],
  reservedPorts: readonly ReservedPort[],
): void {
  for (const mapping of wanted) {
    if (mapping.hostIp !== '' && isIP(mapping.hostIp) === 0)
      throw new RuntimeError('network', `host port address "${mapping.hostIp}" is not an IP address`);
    if (isReserved(mapping, reservedPorts))
      throw new RuntimeError('network', `host port ${nameOf(mapping)} is a port of this host itself`);
    if (others.some(({ portMappings }) => portMappings.some((each) => collides(each, mapping))))
      throw new RuntimeError('network', `host port ${nameOf(mapping)} is in use by another pod`);
  }
}

export async function firstInUse(
  mappings: readonly PortMapping[],
  serviceCidrs: readonly string[],
): Promise<PortMapping | undefined> {
  for (const mapping of mappings) if (await isInUse(mapping, serviceCidrs)) return mapping;
  return undefined;
}
