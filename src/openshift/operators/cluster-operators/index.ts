export { type HostProber, startHostProber } from './host-prober.ts';
export { runClusterOperator } from './leader.ts';
