/** Plans a table from lists of objects, to print it once. */
import type { Service } from '../../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../api/generated/discovery/v1.ts';
import { type HaproxyFiles, haproxyConfig } from './haproxy.ts';
import { planRouting, type RoutingInput } from './plan.ts';

const SERVICE_NAME = 'kubernetes.io/service-name';

export function objectsByService(
  services: readonly Service[],
  slices: readonly EndpointSlice[],
): Pick<RoutingInput, 'service' | 'slices'> {
  const byKey = new Map(services.map((each) => [`${each.metadata?.namespace}/${each.metadata?.name}`, each]));
  const byService = Map.groupBy(
    slices,
    ({ metadata }) => `${metadata?.namespace}/${metadata?.labels?.[SERVICE_NAME] ?? ''}`,
  );
  return { service: (key) => byKey.get(key), slices: (key) => byService.get(key) ?? [] };
}

export const printedRoutes = (input: RoutingInput, files: HaproxyFiles): string =>
  haproxyConfig(planRouting(input).table, input.ports, files);
