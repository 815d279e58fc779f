/** Addresses that count as a node's. A node writes its own `status.addresses`, so a report alone proves little. */
import type { Node } from 'kubernetes-types/core/v1';
import { canonicalAddress } from '../../../base/addresses.ts';
import { addressKind } from '../../../base/destinations.ts';

/** Annotations that a node cannot write: names of its approved serving certificate, and names by an administrator. */
const APPROVED = 'hyperedge.dev/approved-addresses';
const DECLARED = 'hyperedge.dev/serving-addresses';

export interface OwnAddresses {
  readonly internal: readonly string[];
  readonly external: readonly string[];
}

/**
 * Reported addresses in canonical form, without those that the node's records contradict. External addresses need a
 * record; internal ones of a node without records are taken as they are.
 */
export function ownAddressesOf({ metadata, status }: Node): OwnAddresses {
  const approved = metadata?.annotations?.[APPROVED];
  const records = [approved, metadata?.annotations?.[DECLARED]].filter((each) => each !== undefined);
  const proven = new Set(records.flatMap((each) => each.split(/[\s,]+/)).map((each) => canonicalAddress(each) ?? each));
  const of = (wanted: string): string[] =>
    (status?.addresses ?? []).flatMap(({ type, address }) => {
      const found = type === wanted ? canonicalAddress(address) : undefined;
      return found === undefined || addressKind(found) !== 'unicast' ? [] : [found];
    });
  return {
    internal: of('InternalIP').filter((each) => approved === undefined || proven.has(each)),
    external: of('ExternalIP').filter((each) => proven.has(each)),
  };
}
