/**
 * Addresses that are accepted as a node's own. A node writes its own `status.addresses`, so the status alone is not
 * trusted.
 */

import { canonicalAddress } from '../../../../base/addresses/addresses.ts';
import { addressKind } from '../../../../base/addresses/destinations.ts';
import type { Node } from '../../../generated/core/v1.ts';
import { APPROVED_ANNOTATION, DECLARED_ANNOTATION, namesIn } from './serving-addresses.ts';

export interface OwnAddresses {
  readonly internal: readonly string[];
  readonly external: readonly string[];
}

/**
 * Addresses in the status that the node's records contain, in canonical form. A Node of an earlier release has no
 * record until the controllers write one; until then, its internal addresses are accepted.
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
