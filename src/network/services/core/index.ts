export type { ListeningPort } from './destinations.ts';
export { idleKeys, idleTable, REQUESTED } from './idle.ts';
export { guardTable, replaceTable } from './nft.ts';
export { NftTable } from './nft-table.ts';
export { ServicePlanner, type ServicePlannerOptions } from './planner.ts';
export type { Family, Protocol, ProxyEndpoint, ServicePort } from './service-port.ts';
export type { HealthCheck } from './services.ts';
export { emptyNftState, type NftOptions, type NftState } from './table-content.ts';
