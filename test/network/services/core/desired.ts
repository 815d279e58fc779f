/** Plans all objects at once and returns the result, for tests. */
import type { Node, Service } from '../../../../src/api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../../src/api/generated/discovery/v1.ts';
import type { HealthCheck, ServicePort } from '../../../../src/network/services/core/index.ts';
import {
  type NftOptions,
  type NftState,
  NftTable,
  ServicePlanner,
} from '../../../../src/network/services/core/index.ts';
import type { ServicePlannerOptions } from '../../../../src/network/services/core/planner.ts';
import type { RefusedAddress } from '../../../../src/network/services/core/services.ts';

export interface DesiredInput extends ServicePlannerOptions {
  readonly services: readonly Service[];
  readonly slices: readonly EndpointSlice[];
  readonly nodes: readonly Node[];
  readonly hostAddresses: readonly string[];
}

export interface Desired {
  readonly ports: readonly ServicePort[];
  readonly refused: readonly RefusedAddress[];
  readonly healthChecks: readonly HealthCheck[];
}

export function desiredServicePorts(input: DesiredInput): Desired {
  const planner = new ServicePlanner(input);
  planner.setHostAddresses(input.hostAddresses);
  for (const node of input.nodes) planner.setNode(node);
  for (const service of input.services) planner.setService(service);
  for (const slice of input.slices) planner.setSlice(slice);
  const { refused } = planner.changes();
  return { ports: planner.ports(), refused, healthChecks: planner.healthChecks() };
}

export function nftState(ports: readonly ServicePort[], options: NftOptions): NftState {
  const table = new NftTable(options);
  for (const [service, own] of byService(ports)) table.set(service, own);
  return table.state();
}

export function byService(ports: readonly ServicePort[]): Map<string, ServicePort[]> {
  const found = new Map<string, ServicePort[]>();
  for (const port of ports) {
    const [service = ''] = port.id.split(':');
    found.set(service, [...(found.get(service) ?? []), port]);
  }
  return found;
}
