import type { NetworkPolicySpec } from '../../../generated/networking/v1.ts';

/** Maximum sum of `policySize` of the policies in a namespace that a node applies. */
export const MAX_POLICY_SIZE = 20_000;

/**
 * Maximum number of policies with rules in a namespace that a node applies. A selected pod needs a rule for each
 * policy.
 */
export const MAX_POLICIES = 2_000;

/** Maximum number of pod addresses that a node adds to the nftables sets for the policies of a namespace. */
export const MAX_MEMBERS = 250_000;

/** Number of rules and set elements that a policy needs on a node, without the elements for addresses of pods. */
export function policySize({ ingress = [], egress = [] }: NetworkPolicySpec): number {
  const rules = [
    ...ingress.map(({ from = [], ports = [] }) => ({ peers: from, ports })),
    ...egress.map(({ to = [], ports = [] }) => ({ peers: to, ports })),
  ];
  let size = 0;
  for (const { peers, ports } of rules) {
    const excepted = peers.reduce((sum, { ipBlock }) => sum + (ipBlock?.except?.length ?? 0), 0);
    // Each named port needs a rule for each peer.
    const names = ports.filter(({ port }) => typeof port === 'string').length;
    size += (Math.max(1, peers.length) + excepted) * (1 + names) + ports.length;
  }
  return size;
}
