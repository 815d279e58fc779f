/** A claim's allocation of the devices that were chosen for it. Source: k8s.io/api/resource/v1 AllocationResult. */
import type { Node } from 'kubernetes-types/core/v1';
import type { AllocatedConfiguration, AllocationResult, ResourceClaim } from '../../api/devices/types.ts';
import { formatQuantity } from '../../base/quantity.ts';
import { type Alternative, type Chosen, isShareable, type Wish } from './device-search.ts';

export type Allocation = NonNullable<NonNullable<ResourceClaim['status']>['allocation']>;

export function allocationOf(
  claim: ResourceClaim,
  chosen: readonly Chosen[],
  node: Node,
  newShareId: () => string,
): Allocation {
  const results = chosen.map((each): AllocationResult => {
    const { wish, alternative, candidate } = each;
    return {
      request: requestOf(wish, alternative),
      driver: candidate.driver,
      pool: candidate.pool,
      device: candidate.device.name ?? '',
      ...(alternative.adminAccess ? { adminAccess: true } : {}),
      ...(alternative.tolerations.length === 0 ? {} : { tolerations: [...alternative.tolerations] }),
      ...(isShareable(candidate) ? { shareID: newShareId(), ...consumedBy(each) } : {}),
    };
  });
  const config = configOf(claim, chosen);
  return {
    devices: { results, ...(config.length === 0 ? {} : { config }) },
    nodeSelector: {
      nodeSelectorTerms: [
        { matchFields: [{ key: 'metadata.name', operator: 'In', values: [node.metadata?.name ?? ''] }] },
      ],
    },
  };
}

const requestOf = ({ request }: Wish, { name }: Alternative): string =>
  name === request ? request : `${request}/${name}`;

function consumedBy({ consumption }: Chosen): Pick<AllocationResult, 'consumedCapacity'> {
  if (consumption.size === 0) return {};
  const amounts = [...consumption].map(([name, amount]) => [name, formatQuantity(amount)] as const);
  return { consumedCapacity: Object.fromEntries(amounts) };
}

/** Configuration of a class stands once, for all requests of the class. */
function configOf({ spec }: ResourceClaim, chosen: readonly Chosen[]): AllocatedConfiguration[] {
  const requests = new Map(chosen.map((each) => [requestOf(each.wish, each.alternative), each]));
  const byClass = Map.groupBy(requests, ([, { alternative }]) => alternative.deviceClass);
  const config = [...byClass].flatMap(([deviceClass, members]) =>
    (deviceClass?.spec?.config ?? []).map((each): AllocatedConfiguration => {
      return { ...each, source: 'FromClass', requests: members.map(([request]) => request) };
    }),
  );
  const isChosen = (name: string): boolean => requests.has(name) || chosen.some(({ wish }) => wish.request === name);
  for (const each of spec?.devices?.config ?? [])
    if ((each.requests ?? []).length === 0 || each.requests?.some(isChosen) === true)
      config.push({ ...each, source: 'FromClaim' });
  return config;
}
