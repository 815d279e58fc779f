/** Builds a claim's allocation from the selected devices. Source: k8s.io/api/resource/v1 AllocationResult. */

import type { AllocatedConfiguration, AllocationResult, ResourceClaim } from '../../../api/devices/types.ts';
import type { Node, NodeSelector } from '../../../api/generated/core/v1.ts';
import { formatQuantity } from '../../../base/quantity.ts';
import { type Alternative, type Candidate, type Chosen, isShareable, type RequiredDevice } from './device-search.ts';

export type Allocation = NonNullable<NonNullable<ResourceClaim['status']>['allocation']>;

export function allocationOf(
  claim: ResourceClaim,
  chosen: readonly Chosen[],
  node: Node,
  newShareId: () => string,
): Allocation {
  const results = chosen.map((each): AllocationResult => {
    const { required, alternative, candidate } = each;
    return {
      request: requestOf(required, alternative),
      driver: candidate.driver,
      pool: candidate.pool,
      device: candidate.device.name ?? '',
      ...(alternative.adminAccess ? { adminAccess: true } : {}),
      ...(alternative.tolerations.length === 0 ? {} : { tolerations: [...alternative.tolerations] }),
      ...(isShareable(candidate) ? { shareID: newShareId(), ...consumedBy(each) } : {}),
      ...bindingOf(candidate),
    };
  });
  const config = configOf(claim, chosen);
  const nodeSelector = nodeSelectorOf(chosen, node);
  return {
    devices: { results, ...(config.length === 0 ? {} : { config }) },
    ...(nodeSelector === undefined ? {} : { nodeSelector }),
  };
}

/** Binding conditions of a device. The pod is not bound before they are true. Source: KEP-5007. */
function bindingOf({ device }: Candidate): Pick<AllocationResult, 'bindingConditions' | 'bindingFailureConditions'> {
  const { bindingConditions = [], bindingFailureConditions = [] } = device;
  return {
    ...(bindingConditions.length === 0 ? {} : { bindingConditions: [...bindingConditions] }),
    ...(bindingFailureConditions.length === 0 ? {} : { bindingFailureConditions: [...bindingFailureConditions] }),
  };
}

/** Node selector for the nodes that can access all chosen devices; undefined if every node can. */
function nodeSelectorOf(chosen: readonly Chosen[], node: Node): NodeSelector | undefined {
  const isLocal = chosen.some(
    ({ candidate: { device, reach } }) => (reach?.nodeName ?? '') !== '' || device.bindsToNode === true,
  );
  if (isLocal) {
    const here = { key: 'metadata.name', operator: 'In', values: [node.metadata?.name ?? ''] };
    return { nodeSelectorTerms: [{ matchFields: [here] }] };
  }
  // Node selectors of slices have exactly one term.
  const terms = chosen.flatMap(({ candidate: { reach } }) => reach?.nodeSelector?.nodeSelectorTerms.slice(0, 1) ?? []);
  const matchFields = distinct(terms.flatMap((term) => term.matchFields ?? []));
  const matchExpressions = distinct(terms.flatMap((term) => term.matchExpressions ?? []));
  if (matchFields.length === 0 && matchExpressions.length === 0) return undefined;
  const term = {
    ...(matchFields.length === 0 ? {} : { matchFields }),
    ...(matchExpressions.length === 0 ? {} : { matchExpressions }),
  };
  return { nodeSelectorTerms: [term] };
}

const distinct = <T>(items: readonly T[]): T[] => [
  ...new Map(items.map((item) => [JSON.stringify(item), item])).values(),
];

const requestOf = ({ request }: RequiredDevice, { name }: Alternative): string =>
  name === request ? request : `${request}/${name}`;

function consumedBy({ consumption }: Chosen): Pick<AllocationResult, 'consumedCapacity'> {
  if (consumption.size === 0) return {};
  const amounts = [...consumption].map(([name, amount]) => [name, formatQuantity(amount)] as const);
  return { consumedCapacity: Object.fromEntries(amounts) };
}

/**
 * Configuration of the allocation. The configuration of a device class is included once, for all requests of the class.
 */
function configOf({ spec }: ResourceClaim, chosen: readonly Chosen[]): AllocatedConfiguration[] {
  const requests = new Map(chosen.map((each) => [requestOf(each.required, each.alternative), each]));
  const byClass = Map.groupBy(requests, ([, { alternative }]) => alternative.deviceClass);
  const config = [...byClass].flatMap(([deviceClass, members]) =>
    (deviceClass?.spec?.config ?? []).map((each): AllocatedConfiguration => {
      return { ...each, source: 'FromClass', requests: members.map(([request]) => request) };
    }),
  );
  const isChosen = (name: string): boolean =>
    requests.has(name) || chosen.some(({ required }) => required.request === name);
  for (const each of spec?.devices?.config ?? [])
    if ((each.requests ?? []).length === 0 || each.requests?.some(isChosen) === true)
      config.push({ ...each, source: 'FromClaim' });
  return config;
}
