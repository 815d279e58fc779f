export { emptyNftState, type NftOptions, type NftState } from './content.ts';
export type { ListeningPort } from './destinations.ts';
export { idleKeys, idleTable, REQUESTED } from './idle.ts';
export { guardTable, replaceTable } from './nft.ts';
export { ServicePlanner, type ServicePlannerOptions } from './planner.ts';
export type { Family, Protocol, ProxyEndpoint, ServicePort } from './service-port.ts';
export type { HealthCheck } from './services.ts';
export { NftTable } from './table.ts';
