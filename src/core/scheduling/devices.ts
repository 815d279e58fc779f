/**
 * Devices for the claims of a pod on one node. Source: KEP-4381 (structured parameters), KEP-4816 (prioritized
 * alternatives), KEP-4815 (shared counters), KEP-5055 (taints); k8s.io/dynamic-resource-allocation/structured. Devices
 * that several claims may share are not allocated.
 */

import type { Node } from 'kubernetes-types/core/v1';
import type {
  AllocatedConfiguration,
  AllocationResult,
  Device,
  DeviceClass,
  DeviceTaint,
  DeviceToleration,
  ResourceClaim,
  ResourceSlice,
} from '../../api/devices/types.ts';
import { matchesTerm } from '../../api/podspec/node-terms.ts';
import { SharedCounters } from './shared-counters.ts';

export interface DeviceLister {
  claim(namespace: string, name: string): ResourceClaim | undefined;
  deviceClass(name: string): DeviceClass | undefined;
  /** Slices that may be about the node. */
  slicesFor(node: string): readonly ResourceSlice[];
  /** Allocated to a claim, or about to be. */
  isTaken(driver: string, pool: string, device: string): boolean;
  /** The claim's devices are being chosen for another pod. */
  isPending(claim: ResourceClaim): boolean;
  /** Whether the device meets a CEL selector; false as well when it cannot be evaluated. */
  meets(expression: string, driver: string, device: Device): boolean;
}

export type Allocation = NonNullable<NonNullable<ResourceClaim['status']>['allocation']>;

/** Upstream bounds the results of a claim. */
export const MAX_RESULTS = 32;
/** Choices that are tried before a node counts as unfit. */
const MAX_STEPS = 20_000;

interface Candidate {
  readonly key: string;
  readonly driver: string;
  readonly pool: string;
  readonly device: Device;
}

/** One device that is wanted, by any of several alternatives. */
interface Wish {
  readonly claim: number;
  readonly request: string;
  readonly alternatives: readonly Alternative[];
}

interface Alternative {
  readonly name: string;
  readonly deviceClass: DeviceClass | undefined;
  readonly selectors: readonly string[];
  readonly count: number | 'all';
  readonly adminAccess: boolean;
  readonly tolerations: readonly DeviceToleration[];
}

interface Chosen {
  readonly wish: Wish;
  readonly alternative: Alternative;
  readonly candidate: Candidate;
}

/** An allocation for each claim, or why there is none. */
export function allocateDevices(
  claims: readonly ResourceClaim[],
  node: Node,
  lister: DeviceLister,
): readonly Allocation[] | string {
  const counters = new SharedCounters();
  const candidates = candidatesOn(node, lister, counters);
  const wishes: Wish[] = [];
  for (const [claim, { spec }] of claims.entries()) {
    for (const request of spec?.devices?.requests ?? []) {
      const alternatives = (request.exactly === undefined ? (request.firstAvailable ?? []) : [request.exactly]).map(
        (each) => alternativeOf(each, request.name ?? '', lister),
      );
      wishes.push({ claim, request: request.name ?? '', alternatives });
    }
  }
  const search = new Search(claims, wishes, candidates, counters, lister);
  if (!search.place(0)) return search.why;
  return claims.map((claim, index) =>
    allocationOf(
      claim,
      search.chosen.filter(({ wish }) => wish.claim === index),
      node,
    ),
  );
}

class Search {
  readonly chosen: Chosen[] = [];
  why = 'cannot allocate all claims';
  readonly #claims: readonly ResourceClaim[];
  readonly #wishes: readonly Wish[];
  readonly #candidates: readonly Candidate[];
  readonly #counters: SharedCounters;
  readonly #lister: DeviceLister;
  readonly #taken = new Set<string>();
  #steps = 0;

  constructor(
    claims: readonly ResourceClaim[],
    wishes: readonly Wish[],
    candidates: readonly Candidate[],
    counters: SharedCounters,
    lister: DeviceLister,
  ) {
    this.#counters = counters;
    this.#claims = claims;
    this.#wishes = wishes;
    this.#candidates = candidates;
    this.#lister = lister;
  }

  place(index: number): boolean {
    const wish = this.#wishes[index];
    if (wish === undefined) return true;
    return wish.alternatives.some((alternative) => this.#placeAs(wish, alternative, index));
  }

  #placeAs(wish: Wish, alternative: Alternative, index: number): boolean {
    if (alternative.deviceClass === undefined) return false;
    const matching = this.#candidates.filter((each) => this.#matches(each, alternative));
    const free = matching.filter((each) => alternative.adminAccess || !this.#isTaken(each));
    const count = alternative.count === 'all' ? matching.length : alternative.count;
    if (count === 0 || count > MAX_RESULTS || free.length < count) {
      this.#explain(wish, matching.length, free.length, count);
      return false;
    }
    return this.#choose(wish, alternative, free, 0, count, index);
  }

  #choose(
    wish: Wish,
    alternative: Alternative,
    free: readonly Candidate[],
    from: number,
    left: number,
    index: number,
  ): boolean {
    if (left === 0) return this.place(index + 1);
    for (let at = from; at <= free.length - left; at += 1) {
      const candidate = free[at] as Candidate;
      this.#steps += 1;
      if (this.#steps > MAX_STEPS) return false;
      if (!alternative.adminAccess && this.#taken.has(candidate.key)) continue;
      const choice: Chosen = { wish, alternative, candidate };
      if (!this.#constrained(choice)) continue;
      if (!alternative.adminAccess && !this.#counters.hasRoom(candidate.device)) continue;
      this.chosen.push(choice);
      if (!alternative.adminAccess) this.#take(candidate);
      if (this.#choose(wish, alternative, free, at + 1, left - 1, index)) return true;
      this.chosen.pop();
      if (!alternative.adminAccess) this.#release(candidate);
    }
    return false;
  }

  #take({ key, device }: Candidate): void {
    this.#taken.add(key);
    this.#counters.take(device);
  }

  #release({ key, device }: Candidate): void {
    this.#taken.delete(key);
    this.#counters.release(device);
  }

  #isTaken({ key, driver, pool, device }: Candidate): boolean {
    return this.#taken.has(key) || this.#lister.isTaken(driver, pool, device.name ?? '');
  }

  #matches({ driver, device }: Candidate, { deviceClass, selectors, adminAccess, tolerations }: Alternative): boolean {
    const tolerated = adminAccess || (device.taints ?? []).every((taint) => isTolerated(taint, tolerations));
    const all = [...(deviceClass?.spec?.selectors ?? []).map(({ cel }) => cel?.expression ?? ''), ...selectors];
    return tolerated && all.every((expression) => this.#lister.meets(expression, driver, device));
  }

  /** Constraints of the claim that the device is under, against those that are chosen already. */
  #constrained({ wish, alternative, candidate }: Chosen): boolean {
    for (const constraint of this.#claims[wish.claim]?.spec?.devices?.constraints ?? []) {
      const { requests = [], matchAttribute, distinctAttribute } = constraint;
      const isUnder = (request: string, name: string): boolean =>
        requests.length === 0 || requests.includes(request) || requests.includes(`${request}/${name}`);
      if (!isUnder(wish.request, alternative.name)) continue;
      const others = this.chosen.filter(
        (each) => each.wish.claim === wish.claim && isUnder(each.wish.request, each.alternative.name),
      );
      const name = matchAttribute ?? distinctAttribute ?? '';
      const value = attributeOf(candidate, name);
      if (value === undefined) return false;
      const same = (each: Chosen): boolean => attributeOf(each.candidate, name) === value;
      if (matchAttribute !== undefined ? !others.every(same) : others.some(same)) return false;
    }
    return true;
  }

  #explain({ request }: Wish, matching: number, free: number, count: number): void {
    const detail =
      matching === 0
        ? `request "${request}": no device matches`
        : `request "${request}": ${matching - free} of ${matching} matching devices in use, ${Math.max(count, 1)} needed`;
    this.why = `cannot allocate all claims (${detail})`;
  }
}

interface RequestShape {
  readonly name?: string;
  readonly deviceClassName?: string;
  readonly selectors?: readonly { readonly cel?: { readonly expression?: string } }[];
  readonly allocationMode?: string;
  readonly count?: number;
  readonly adminAccess?: boolean;
  readonly tolerations?: readonly DeviceToleration[];
}

function alternativeOf(request: RequestShape, name: string, lister: DeviceLister): Alternative {
  return {
    name: request.name ?? name,
    deviceClass: lister.deviceClass(request.deviceClassName ?? ''),
    selectors: (request.selectors ?? []).map(({ cel }) => cel?.expression ?? ''),
    count: request.allocationMode === 'All' ? 'all' : (request.count ?? 1),
    adminAccess: request.adminAccess === true,
    tolerations: request.tolerations ?? [],
  };
}

/** Devices of complete pools of the newest generation that the node can use. */
function candidatesOn(node: Node, lister: DeviceLister, counters: SharedCounters): Candidate[] {
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
  for (const [key, slices] of pools) {
    if (slices.length < (slices[0]?.spec?.pool?.resourceSliceCount ?? 1)) continue;
    const { driver: owner = '', pool: { name: poolName = '' } = {} } = slices[0]?.spec ?? {};
    counters.addPool(key, slices, (device) => lister.isTaken(owner, poolName, device));
    for (const { spec } of slices) {
      const [driver, pool] = [spec?.driver ?? '', spec?.pool?.name ?? ''];
      for (const device of spec?.devices ?? []) {
        const reach = spec?.perDeviceNodeSelection === true ? device : spec;
        if (device.allowMultipleAllocations !== true && reaches(reach, node))
          candidates.push({ key: `${driver}/${pool}/${device.name}`, driver, pool, device });
      }
    }
  }
  return candidates;
}

function reaches(choice: Pick<Device, 'nodeName' | 'nodeSelector' | 'allNodes'> | undefined, node: Node): boolean {
  if (choice?.allNodes === true) return true;
  if ((choice?.nodeName ?? '') !== '') return choice?.nodeName === node.metadata?.name;
  return choice?.nodeSelector?.nodeSelectorTerms.some((term) => matchesTerm(term, node)) === true;
}

/** A name without a domain is one of the driver's. */
function attributeOf({ driver, device }: Candidate, name: string): string | undefined {
  const own = name.startsWith(`${driver}/`) ? name.slice(driver.length + 1) : undefined;
  const attributes = device.attributes ?? {};
  for (const key of own === undefined ? [name] : [own, name])
    if (Object.hasOwn(attributes, key)) return JSON.stringify(attributes[key]);
  return undefined;
}

const isTolerated = (taint: DeviceTaint, tolerations: readonly DeviceToleration[]): boolean =>
  (taint.effect !== 'NoSchedule' && taint.effect !== 'NoExecute') ||
  tolerations.some(
    ({ key = '', operator = 'Equal', value = '', effect = '' }) =>
      (effect === '' || effect === taint.effect) &&
      (key === '' ? operator === 'Exists' : key === taint.key) &&
      (operator === 'Exists' || value === (taint.value ?? '')),
  );

function allocationOf(claim: ResourceClaim, chosen: readonly Chosen[], node: Node): Allocation {
  const results = chosen.map(({ wish, alternative, candidate }): AllocationResult => {
    const sub = alternative.name === wish.request ? '' : `/${alternative.name}`;
    return {
      request: `${wish.request}${sub}`,
      driver: candidate.driver,
      pool: candidate.pool,
      device: candidate.device.name ?? '',
      ...(alternative.adminAccess ? { adminAccess: true } : {}),
      ...(alternative.tolerations.length === 0 ? {} : { tolerations: [...alternative.tolerations] }),
    };
  });
  const config: AllocatedConfiguration[] = [];
  for (const { wish, alternative } of new Map(chosen.map((each) => [each.wish, each])).values())
    for (const each of alternative.deviceClass?.spec?.config ?? [])
      config.push({ ...each, source: 'FromClass', requests: [wish.request] });
  for (const each of claim.spec?.devices?.config ?? []) config.push({ ...each, source: 'FromClaim' });
  return {
    devices: { results, ...(config.length === 0 ? {} : { config }) },
    nodeSelector: {
      nodeSelectorTerms: [
        { matchFields: [{ key: 'metadata.name', operator: 'In', values: [node.metadata?.name ?? ''] }] },
      ],
    },
  };
}
