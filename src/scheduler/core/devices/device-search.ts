/** Searches for devices that satisfy all requests of a pod's claims together. */
import type {
  Amount,
  Device,
  DeviceClass,
  DeviceTaint,
  DeviceToleration,
  ResourceClaim,
} from '../../../api/devices/types.ts';
import type { DeviceLister } from './device-lister.ts';
import { CapacityShares, type Consumed, type Consumption, consumptionOf } from './shared-capacity.ts';
import type { SharedCounters } from './shared-counters.ts';

/** Maximum number of devices per claim. It is the same in upstream. */
const MAX_RESULTS = 32;
/** Number of choices after which the search is given up. The node then counts as unsuitable. */
const MAX_STEPS = 20_000;

export interface Candidate {
  readonly key: string;
  readonly driver: string;
  readonly pool: string;
  readonly device: Device;
  /** Nodes that can use the device, as its slice or the device specifies. */
  readonly reach: Pick<Device, 'nodeName' | 'nodeSelector' | 'allNodes'> | undefined;
  readonly consumed: Consumed | undefined;
  /** Reason why the device cannot be allocated; undefined if it can. */
  readonly withheld: string | undefined;
}

/** One required device. Any of the alternatives satisfies the requirement. */
export interface RequiredDevice {
  readonly claim: number;
  readonly request: string;
  readonly alternatives: readonly Alternative[];
}

export interface Alternative {
  readonly name: string;
  readonly deviceClass: DeviceClass | undefined;
  readonly selectors: readonly string[];
  readonly count: number | 'all';
  readonly adminAccess: boolean;
  readonly tolerations: readonly DeviceToleration[];
  readonly capacity: Readonly<Record<string, Amount>>;
}

interface Match {
  readonly candidate: Candidate;
  readonly consumption: Consumption;
  /** Whether the remaining capacity suffices, given the shares of other claims. */
  readonly hasRoom: boolean;
}

export interface Chosen extends Match {
  readonly required: RequiredDevice;
  readonly alternative: Alternative;
}

export const isShareable = ({ device }: Candidate): boolean => device.allowMultipleAllocations === true;

export class DeviceSearch {
  readonly chosen: Chosen[] = [];
  why = 'cannot allocate all claims';
  readonly #claims: readonly ResourceClaim[];
  readonly #requiredDevices: readonly RequiredDevice[];
  readonly #candidates: readonly Candidate[];
  readonly #counters: SharedCounters;
  readonly #lister: DeviceLister;
  readonly #shares = new CapacityShares();
  readonly #matches = new Map<Alternative, readonly Match[]>();
  #steps = 0;

  constructor(
    claims: readonly ResourceClaim[],
    requiredDevices: readonly RequiredDevice[],
    candidates: readonly Candidate[],
    counters: SharedCounters,
    lister: DeviceLister,
  ) {
    this.#counters = counters;
    this.#claims = claims;
    this.#requiredDevices = requiredDevices;
    this.#candidates = candidates;
    this.#lister = lister;
  }

  place(index: number): boolean {
    const required = this.#requiredDevices[index];
    if (required === undefined) return true;
    return required.alternatives.some((alternative) => this.#placeAs(required, alternative, index));
  }

  #placeAs(required: RequiredDevice, alternative: Alternative, index: number): boolean {
    if (alternative.deviceClass === undefined) return false;
    const matching = this.#matchesOf(alternative);
    const roomy = matching.filter(({ hasRoom }) => hasRoom);
    const free = roomy.filter(({ candidate }) => this.#isFree(candidate, required, alternative));
    const count = alternative.count === 'all' ? roomy.length : alternative.count;
    const results = this.chosen.reduce((sum, each) => (each.required.claim === required.claim ? sum + 1 : sum), count);
    if (count === 0 || results > MAX_RESULTS || free.length < count) {
      this.#explain(required, matching, free.length, count);
      return false;
    }
    return this.#choose(required, alternative, free, 0, count, index);
  }

  #choose(
    required: RequiredDevice,
    alternative: Alternative,
    free: readonly Match[],
    from: number,
    left: number,
    index: number,
  ): boolean {
    if (left === 0) return this.place(index + 1);
    for (let at = from; at <= free.length - left; at += 1) {
      const match = free[at] as Match;
      this.#steps += 1;
      if (this.#steps > MAX_STEPS) return false;
      const choice: Chosen = { required, alternative, ...match };
      if (!this.#isFree(match.candidate, required, alternative) || !this.#constrained(choice)) continue;
      if (!this.#shares.hasRoom(match.candidate, match.consumption)) continue;
      const undo = this.#take(choice);
      if (undo === undefined) continue;
      if (this.#choose(required, alternative, free, at + 1, left - 1, index)) return true;
      undo();
    }
    return false;
  }

  /**
   * Adds the device to the selection. Returns a function that removes it, or undefined if shared counters are
   * exhausted.
   */
  #take(choice: Chosen): (() => void) | undefined {
    const { candidate, consumption, alternative } = choice;
    const { device } = candidate;
    const shareable = isShareable(candidate);
    // Only the first share of a device consumes its counters.
    const counted = !alternative.adminAccess && !(shareable && this.#shares.isShared(candidate));
    if (counted && !this.#counters.hasRoom(device)) return undefined;
    this.chosen.push(choice);
    if (counted) this.#counters.take(device);
    if (shareable) this.#shares.take(candidate, consumption);
    return () => {
      this.chosen.pop();
      if (counted) this.#counters.release(device);
      if (shareable) this.#shares.release(candidate);
    };
  }

  /**
   * Whether the device can be used. A request with administrative access can use a device that is allocated to another
   * claim, but not twice in one claim.
   */
  #isFree(candidate: Candidate, { claim }: RequiredDevice, { adminAccess }: Alternative): boolean {
    const { key, driver, pool, device, withheld } = candidate;
    if (!adminAccess && withheld !== undefined) return false;
    if (!adminAccess && this.#lister.isAllocated(driver, pool, device.name ?? '')) return false;
    if (isShareable(candidate)) return true;
    if (!adminAccess && candidate.consumed !== undefined) return false;
    return !this.chosen.some(
      (each) =>
        each.candidate.key === key &&
        (adminAccess ? each.required.claim === claim : each.required.claim === claim || !each.alternative.adminAccess),
    );
  }

  /** Devices that match the request. Whether they are free is not checked. */
  #matchesOf(alternative: Alternative): readonly Match[] {
    const known = this.#matches.get(alternative);
    if (known !== undefined) return known;
    const matches = this.#candidates.flatMap((candidate): Match[] => {
      const consumption = consumptionOf(candidate.device, alternative.capacity);
      if (consumption === undefined || !this.#meets(candidate, alternative)) return [];
      const shares = new CapacityShares();
      if (!shares.hasRoom({ ...candidate, consumed: undefined }, consumption)) return [];
      return [{ candidate, consumption, hasRoom: shares.hasRoom(candidate, consumption) }];
    });
    this.#matches.set(alternative, matches);
    return matches;
  }

  #meets({ driver, device }: Candidate, { deviceClass, selectors, adminAccess, tolerations }: Alternative): boolean {
    const tolerated = adminAccess || (device.taints ?? []).every((taint) => isTolerated(taint, tolerations));
    const all = [...(deviceClass?.spec?.selectors ?? []).map(({ cel }) => cel?.expression ?? ''), ...selectors];
    return tolerated && all.every((expression) => this.#lister.meets(expression, driver, device));
  }

  /** Whether the device satisfies the constraints of the claim, given the devices selected so far. */
  #constrained({ required, alternative, candidate }: Chosen): boolean {
    for (const constraint of this.#claims[required.claim]?.spec?.devices?.constraints ?? []) {
      const { requests = [], matchAttribute, distinctAttribute } = constraint;
      const isUnder = (request: string, name: string): boolean =>
        requests.length === 0 || requests.includes(request) || requests.includes(`${request}/${name}`);
      if (!isUnder(required.request, alternative.name)) continue;
      const others = this.chosen.filter(
        (each) => each.required.claim === required.claim && isUnder(each.required.request, each.alternative.name),
      );
      const name = matchAttribute ?? distinctAttribute ?? '';
      const value = attributeOf(candidate, name);
      if (value === undefined) return false;
      const same = (each: Chosen): boolean => attributeOf(each.candidate, name) === value;
      if (matchAttribute !== undefined ? !others.every(same) : others.some(same)) return false;
    }
    return true;
  }

  #explain({ request }: RequiredDevice, matching: readonly Match[], free: number, count: number): void {
    const total = matching.length;
    const withheld = matching.find(({ candidate }) => candidate.withheld !== undefined)?.candidate.withheld;
    const detail =
      total === 0
        ? `request "${request}": no device matches`
        : `request "${request}": ${total - free} of ${total} matching devices in use, ${Math.max(count, 1)} needed`;
    this.why = `cannot allocate all claims (${detail}${withheld === undefined ? '' : `; ${withheld}`})`;
  }
}

/** Value of an attribute. A name without a domain belongs to the domain of the driver. */
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
