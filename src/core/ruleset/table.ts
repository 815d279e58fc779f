/** The nft table of one family: what it should hold, service by service, and the program that brings it there. */
import { type Item, MAP_NAMES, type NftOptions, type NftState } from './content.ts';
import { endpointsOfShared, itemsOf, sharedChains } from './items.ts';
import { addAffinity, difference, needsReplace, replaceTable } from './nft.ts';
import { OwnedMap } from './owned-map.ts';
import type { TimedMembers } from './port.ts';
import type { ServicePort } from './service-port.ts';
import { UdpZones } from './zones.ts';

const NONE: readonly Item[] = [];
/** Of the chains that stand in the table before a service needs them. */
const FIRST_SPARE = 8;
const LAST_SPARE = 64;
const SPARE_OWNER = '';

export class NftTable {
  readonly #options: NftOptions;
  readonly #places = new Map<Item['place'], OwnedMap>(
    (['chains', 'sets', ...MAP_NAMES] as const).map((place) => [place, new OwnedMap()]),
  );
  readonly #itemsOf = new Map<string, readonly Item[]>();
  readonly #udpPorts = new Map<string, readonly string[]>();
  readonly #zones = new UdpZones();
  #isKnown = false;
  #isReplaced = false;
  /** Chains for service ports with so many endpoints stand in the table. */
  #spare = 0;

  constructor(options: NftOptions) {
    this.#options = options;
    this.#spareChains(FIRST_SPARE);
  }

  /** All ports of a service; those of other families are left out. */
  set(service: string, ports: readonly ServicePort[]): void {
    const own = ports.filter(({ family }) => family === this.#options.family);
    const items = own.flatMap((port) => itemsOf(port, this.#options, this.#zoneOf(port)));
    this.#followUdp(service, own);
    const kept = new Set<string>();
    for (const item of items) {
      const { place, key, value } = item;
      this.#makeRoom(endpointsOfShared(item) ?? 0, key);
      this.#places.get(place)?.add(key, service, value);
      kept.add(`${place} ${key}`);
    }
    for (const { place, key } of this.#itemsOf.get(service) ?? NONE)
      if (!kept.has(`${place} ${key}`)) this.#places.get(place)?.remove(key, service);
    if (items.length === 0) this.#itemsOf.delete(service);
    else this.#itemsOf.set(service, items);
  }

  /** The next program replaces the table, whatever it holds. */
  reset(): void {
    this.#isKnown = false;
  }

  /** Brings the table from what the last program left to the present; '' when nothing differs. Counts as applied. */
  program(): string {
    const before = new Map<Item['place'], ReadonlyMap<string, string>>();
    const after = new Map<Item['place'], ReadonlyMap<string, string>>();
    for (const [place, map] of this.#places) {
      const changes = map.take();
      before.set(place, changes.before);
      after.set(place, changes.after);
    }
    this.#isReplaced = !this.#isKnown || needsReplace(before, after);
    if (!this.#isReplaced) return difference(before, after, this.#options);
    this.#isKnown = true;
    return replaceTable(this.state(), this.#options);
  }

  /** True when the last program replaces the table, so that members that the kernel has added are lost. */
  get isReplaced(): boolean {
    return this.#isReplaced;
  }

  /** The program that restores the clients of session affinity after the last one, each with its remaining time. */
  restoreAffinity(members: TimedMembers): string {
    return addAffinity(this.state(), members, this.#options);
  }

  state(): NftState {
    return new Map([...this.#places].map(([place, { values }]) => [place, values]));
  }

  /**
   * nft 1.0.6 cannot read the maps of endpoints back ("conflicting protocols specified: ip vs. th"), so that a rule
   * that looks up in one can only come with the whole table.
   */
  #makeRoom(endpoints: number, chain: string): void {
    if (endpoints <= this.#spare || this.#places.get('chains')?.values.has(chain) === true) return;
    this.reset();
    if (endpoints <= LAST_SPARE) this.#spareChains(2 ** Math.ceil(Math.log2(endpoints)));
  }

  #spareChains(count: number): void {
    for (const { place, key, value } of sharedChains(count, this.#options))
      this.#places.get(place)?.add(key, SPARE_OWNER, value);
    this.#spare = count;
  }

  #zoneOf(port: ServicePort): number | undefined {
    return port.protocol === 'UDP' ? this.#zones.next(port) : undefined;
  }

  #followUdp(service: string, own: readonly ServicePort[]): void {
    const ids = own.filter(({ protocol }) => protocol === 'UDP').map(({ id }) => id);
    for (const id of this.#udpPorts.get(service) ?? []) if (!ids.includes(id)) this.#zones.delete(id);
    if (ids.length === 0) this.#udpPorts.delete(service);
    else this.#udpPorts.set(service, ids);
  }
}
