/** Forwards streams between sockets in this process: services without a packet filter, and the API balancer. */
export { createTcpBalancing } from './balancer.ts';
export { createKeeper, requestKeeper, runKeeper } from './keeper.ts';
export { createReadinessProbe } from './ready-probe.ts';
