/** Addresses that count as a node's. A node writes its own `status.addresses`, so a report alone proves little. */
import type { Node } from 'kubernetes-types/core/v1';
import { canonicalAddress } from '../../../base/addresses.ts';
import { addressKind } from '../../../base/destinations.ts';
import { APPROVED_ANNOTATION, DECLARED_ANNOTATION, namesIn } from './serving-addresses.ts';

export interface OwnAddresses {
  readonly internal: readonly string[];
  readonly external: readonly string[];
}

/**
 * Reported addresses in canonical form, without those that the node's records contradict. External addresses need a
 * record; internal ones of a node without records are taken as they are.
 */
export function ownAddressesOf(node: Node): OwnAddresses {
  const approved = namesIn(node, APPROVED_ANNOTATION);
  const records = [...(approved ?? []), ...(namesIn(node, DECLARED_ANNOTATION) ?? [])];
  const proven = new Set(records.map((each) => canonicalAddress(each) ?? each));
  const of = (wanted: string): string[] =>
    (node.status?.addresses ?? []).flatMap(({ type, address }) => {
      const found = type === wanted ? canonicalAddress(address) : undefined;
      return found === undefined || addressKind(found) !== 'unicast' ? [] : [found];
    });
  return {
    internal: of('InternalIP').filter((each) => approved === undefined || proven.has(each)),
    external: of('ExternalIP').filter((each) => proven.has(each)),
  };
}
