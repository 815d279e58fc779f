/**
 * Plans the record of a node's addresses. Service load balancers, ingress status and routes to pods use only recorded
 * addresses and those that an administrator has declared.
 */
import type { Node } from '../../../api/generated/core/v1.ts';
import { APPROVED_ANNOTATION, DECLARED_ANNOTATION, namesIn } from '../../../api/kinds/nodes/nodes/serving-addresses.ts';
import { canonicalAddress, peerAddress } from '../../../base/addresses/addresses.ts';
import { addressKind } from '../../../base/addresses/destinations.ts';
import { namesRejection, type ServingEvidence } from './serving-names.ts';

export interface AddressRecordPlan {
  /** New record; undefined if the present record is kept. */
  readonly record: string | undefined;
  /** Reason why the node's primary address is not trusted. */
  readonly problem: string | undefined;
}

const NOTHING: AddressRecordPlan = { record: undefined, problem: undefined };

/**
 * Plans the record. `ringAddress` is the address of the node's host in the gossip ring. It proves an address only for
 * nodes without a record, which were registered by an earlier release.
 */
export function planAddressRecord(
  node: Node,
  evidence: ServingEvidence,
  ringAddress: string | undefined,
): AddressRecordPlan {
  const approved = namesIn(node, APPROVED_ANNOTATION);
  const reported = (node.status?.addresses ?? []).flatMap(({ type, address }) => {
    const found = type === 'InternalIP' ? canonicalAddress(address) : undefined;
    return found === undefined || addressKind(found) !== 'unicast' ? [] : [found];
  });
  const [primary] = reported;
  if (primary === undefined) return NOTHING;
  const known = [...(approved ?? []), ...(namesIn(node, DECLARED_ANNOTATION) ?? [])].map(peerAddress);
  if (approved !== undefined && known.includes(primary)) return NOTHING;
  const { source } = evidence;
  const facts: ServingEvidence = {
    ...evidence,
    inventory: [...evidence.inventory, ...(approved === undefined && ringAddress !== undefined ? [ringAddress] : [])],
    // An API server's own host is the only one that can connect from its address, so this address does not block the
    // node.
    apiServers: evidence.apiServers.filter((each) => each !== source),
  };
  const objections = reported.map((ip) => namesRejection(node, { dnsNames: [], ipAddresses: [ip] }, facts));
  const proven = reported.filter((_, index) => objections[index] === undefined);
  if (proven.length > 0) {
    const names = (approved ?? []).filter((each) => canonicalAddress(each) === undefined);
    return { record: [...names, ...proven].join(','), problem: undefined };
  }
  // A connection over loopback proves no address. The host of a master records its own addresses.
  if (source === undefined || addressKind(source) === 'loopback') return NOTHING;
  return { record: approved === undefined ? '' : undefined, problem: objections[0] };
}
