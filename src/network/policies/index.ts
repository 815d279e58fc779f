export { type AttachedPod, createNetworkPolicies, type NetworkPolicies } from './network-policies.ts';
