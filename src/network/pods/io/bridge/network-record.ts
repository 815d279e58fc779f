/**
 * Record of the links, packet filter tables and routes that the instance of one root creates on its host. Removal uses
 * the record, because names and ranges alone do not identify an instance on a machine.
 */

import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type Decoded, decode, integer, list, object, text } from '../../../../base/decode.ts';
import { CodedError, messageOf } from '../../../../base/errors.ts';

/**
 * `tables`: names of packet filter tables, of any family. `routeProtocols`: rtnetlink(7) protocol numbers of the routes
 * to pods of other hosts. `clusterCidrs`: ranges that contain the destinations of these routes.
 */
const RECORD = object({
  links: list(text),
  tables: list(text),
  routeProtocols: list(integer),
  clusterCidrs: list(text),
});
export type HostNetworkRecord = Decoded<typeof RECORD>;

/** Adds missing entries to the file. Existing entries are kept, because an earlier start may have used other names. */
export async function recordHostNetwork(file: string, added: HostNetworkRecord): Promise<void> {
  const present = await readHostNetworkRecord(file);
  const union = <T>(left: readonly T[] = [], right: readonly T[] = []): T[] => [...new Set([...left, ...right])];
  const record: HostNetworkRecord = {
    links: union(present?.links, added.links),
    tables: union(present?.tables, added.tables),
    routeProtocols: union(present?.routeProtocols, added.routeProtocols),
    clusterCidrs: union(present?.clusterCidrs, added.clusterCidrs),
  };
  const json = `${JSON.stringify(record, undefined, 2)}\n`;
  if (present !== undefined && json === `${JSON.stringify(present, undefined, 2)}\n`) return;
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await writeFile(`${file}.new`, json, { mode: 0o600, flush: true });
  await rename(`${file}.new`, file);
}

/**
 * Reads the record. Resolves with undefined if there is no file. Throws CodedError 'bad-record' if it cannot be read or
 * parsed.
 */
export async function readHostNetworkRecord(file: string): Promise<HostNetworkRecord | undefined> {
  try {
    const parsed = decode(RECORD, JSON.parse(await readFile(file, 'utf8')), 'record');
    const { links, tables, routeProtocols, clusterCidrs } = parsed;
    return { links, tables, routeProtocols, clusterCidrs };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new CodedError('bad-record', `${file}: ${messageOf(error)}; remove the links and tables by hand`, {
      cause: error,
    });
  }
}
