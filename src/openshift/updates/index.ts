export { UpdateAgent } from './agent.ts';
export { runGuard } from './guard.ts';
export { startPeerProbes } from './peer-probes.ts';
