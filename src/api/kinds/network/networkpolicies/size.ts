import type { NetworkPolicySpec } from '../../../generated/networking/v1.ts';

/** Largest size of the network policies of a namespace that a node applies. */
export const MAX_POLICY_SIZE = 20_000;

/** Most policies with rules of a namespace that a node applies. A pod that they select needs a rule for each. */
export const MAX_POLICIES = 2_000;

/** Most addresses of pods that a node adds to the sets of a namespace's policies. */
export const MAX_MEMBERS = 250_000;

/** Number of rules and set elements of a policy on a node, without those of its pods. */
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
