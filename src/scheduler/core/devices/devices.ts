/**
 * Allocates devices for the claims of a pod on one node. Source: KEP-4381 (structured parameters), KEP-4816
 * (prioritized alternatives), KEP-4815 (shared counters), KEP-5007 (binding conditions), KEP-5055 (taints), KEP-5075
 * (devices that several claims share); k8s.io/dynamic-resource-allocation/structured.
 */

import type { Amount, Device, DeviceToleration, ResourceClaim, ResourceSlice } from '../../../api/devices/types.ts';
import type { Node } from '../../../api/generated/core/v1.ts';
import { matchesTerm } from '../../../api/podspec/node-terms.ts';
import type { Amounts } from '../../../api/podspec/scheduling/node-resources.ts';
import { FIXTURE_PREFIX, RIG_GROUP } from '../../../rigs/kinds/rig-types.ts';
import type { NodeInfo } from '../node-info.ts';
import type { DeviceLister } from './device-lister.ts';
import { type Allocation, allocationOf } from './device-results.ts';
import { type Alternative, type Candidate, DeviceSearch, type RequiredDevice } from './device-search.ts';
import { SharedCounters } from './shared-counters.ts';

type NodeOfDevices = Pick<NodeInfo, 'node' | 'requested'>;

/** Returns an allocation for each claim in the order of `claims`, or the reason why there is none. */
export function allocateDevices(
  claims: readonly ResourceClaim[],
  where: NodeOfDevices,
  lister: DeviceLister,
): readonly Allocation[] | string {
  const { node } = where;
  const counters = new SharedCounters();
  const candidates = candidatesOn(where, lister, counters);
  const requiredDevices: RequiredDevice[] = [];
  for (const [claim, { spec }] of claims.entries()) {
    for (const request of spec?.devices?.requests ?? []) {
      const alternatives = (request.exactly === undefined ? (request.firstAvailable ?? []) : [request.exactly]).map(
        (each) => alternativeOf(each, request.name ?? '', lister),
      );
      requiredDevices.push({ claim, request: request.name ?? '', alternatives });
    }
  }
  const search = new DeviceSearch(claims, requiredDevices, candidates, counters, lister);
  if (!search.place(0)) return search.why;
  return claims.map((claim, index) => {
    const chosen = search.chosen.filter(({ required }) => required.claim === index);
    return allocationOf(claim, chosen, node, () => lister.newShareId());
  });
}

interface RequestShape {
  readonly name?: string;
  readonly deviceClassName?: string;
  readonly selectors?: readonly { readonly cel?: { readonly expression?: string } }[];
  readonly allocationMode?: string;
  readonly count?: number;
  readonly adminAccess?: boolean;
  readonly tolerations?: readonly DeviceToleration[];
  readonly capacity?: { readonly requests?: Readonly<Record<string, Amount>> };
}

function alternativeOf(request: RequestShape, name: string, lister: DeviceLister): Alternative {
  return {
    name: request.name ?? name,
    deviceClass: lister.deviceClass(request.deviceClassName ?? ''),
    selectors: (request.selectors ?? []).map(({ cel }) => cel?.expression ?? ''),
    count: request.allocationMode === 'All' ? 'all' : (request.count ?? 1),
    adminAccess: request.adminAccess === true,
    tolerations: request.tolerations ?? [],
    capacity: request.capacity?.requests ?? {},
  };
}

/**
 * Devices that the node can use, from the newest generation of each pool. Pools whose slices are incomplete are
 * excluded.
 */
function candidatesOn({ node, requested }: NodeOfDevices, lister: DeviceLister, counters: SharedCounters): Candidate[] {
  const pools = new Map<string, ResourceSlice[]>();
  for (const slice of lister.slicesFor(node.metadata?.name ?? '')) {
    const key = `${slice.spec?.driver}/${slice.spec?.pool?.name}`;
    const known = pools.get(key) ?? [];
    const generation = slice.spec?.pool?.generation ?? 0;
    const newest = known[0]?.spec?.pool?.generation ?? generation;
    if (generation > newest) pools.set(key, [slice]);
    else if (generation === newest) pools.set(key, [...known, slice]);
  }
  const candidates: Candidate[] = [];
  for (const [key, slices] of waitingLast(pools)) {
    if (slices.length < (slices[0]?.spec?.pool?.resourceSliceCount ?? 1)) continue;
    const { driver: owner = '', pool: { name: poolName = '' } = {} } = slices[0]?.spec ?? {};
    const inUse = (device: string): boolean =>
      lister.isAllocated(owner, poolName, device) || lister.consumed(owner, poolName, device) !== undefined;
    counters.addPool(key, slices, inUse);
    for (const { spec } of slices) {
      const [driver, pool] = [spec?.driver ?? '', spec?.pool?.name ?? ''];
      for (const device of spec?.devices ?? []) {
        const reach = spec?.perDeviceNodeSelection === true ? device : spec;
        if (!reaches(reach, node)) continue;
        const name = device.name ?? '';
        const consumed = lister.consumed(driver, pool, name);
        const withheld = lister.withheld(driver, name) ?? fixtureInUse(driver, device, requested);
        candidates.push({ key: `${driver}/${pool}/${name}`, driver, pool, device, reach, consumed, withheld });
      }
    }
  }
  return candidates;
}

/**
 * Sorts pools so that pools with binding conditions come last. They are used only if the other pools do not suffice.
 */
function waitingLast(pools: ReadonlyMap<string, ResourceSlice[]>): [string, ResourceSlice[]][] {
  const waits = ([, slices]: [string, ResourceSlice[]]): boolean =>
    slices.some(({ spec }) => spec?.devices?.some(({ bindingConditions = [] }) => bindingConditions.length > 0));
  return [...pools].sort((a, b) => Number(waits(a)) - Number(waits(b)));
}

/** Reason why a fixture cannot be allocated as a device: a pod already uses it as an extended resource of the node. */
function fixtureInUse(driver: string, { attributes }: Device, requested: Amounts): string | undefined {
  if (driver !== RIG_GROUP) return undefined;
  const fixture = attributes?.['fixture']?.['string'];
  const held = typeof fixture === 'string' && (requested.get(`${FIXTURE_PREFIX}${fixture}`) ?? 0) > 0;
  return held ? `fixture ${fixture} is in use as an extended resource` : undefined;
}

function reaches(choice: Pick<Device, 'nodeName' | 'nodeSelector' | 'allNodes'> | undefined, node: Node): boolean {
  if (choice?.allNodes === true) return true;
  if ((choice?.nodeName ?? '') !== '') return choice?.nodeName === node.metadata?.name;
  return choice?.nodeSelector?.nodeSelectorTerms.some((term) => matchesTerm(term, node)) === true;
}
