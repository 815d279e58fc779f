/** The nft table of one family: its desired contents by service, and the program that applies them. */
import { atOnce, type Steps } from '../../../base/concurrency/steps.ts';
import { addAffinity, differenceSteps, needsReplace, replaceSteps } from './nft.ts';
import { OwnedMap } from './owned-map.ts';
import type { TimedMembers } from './port.ts';
import type { ServicePort } from './service-port.ts';
import { type Item, MAP_NAMES, type NftOptions, type NftState } from './table-content.ts';
import { endpointsOfShared, itemsOf, sharedChains } from './table-items.ts';
import { UdpZones } from './zones.ts';

const NONE: readonly Item[] = [];
/** Smallest and largest number of endpoints up to which shared chains are created before a service needs them. */
const FIRST_SPARE = 8;
const LAST_SPARE = 64;
const SPARE_OWNER = '';
const ITEMS_AT_ONCE = 500;

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
  /** Number of endpoints up to which shared chains exist in the table. */
  #spare = 0;

  constructor(options: NftOptions) {
    this.#options = options;
    this.#spareChains(FIRST_SPARE);
  }

  set(service: string, ports: readonly ServicePort[]): void {
    atOnce(this.setSteps(service, ports));
  }

  /**
   * Sets all ports of a service in steps. Ports of the other family are ignored. No other method may be called before
   * the last step.
   */
  *setSteps(service: string, ports: readonly ServicePort[]): Steps<void> {
    const own = ports.filter(({ family }) => family === this.#options.family);
    const items: Item[] = [];
    const kept = new Set<string>();
    for (const port of own) {
      for (const item of itemsOf(port, this.#options, this.#zoneOf(port))) {
        const { place, key, value } = item;
        this.#makeRoom(endpointsOfShared(item) ?? 0, key);
        this.#places.get(place)?.add(key, service, value);
        kept.add(`${place} ${key}`);
        items.push(item);
        if (items.length % ITEMS_AT_ONCE === 0) yield;
      }
      yield;
    }
    this.#followUdp(service, own);
    for (const [index, { place, key }] of (this.#itemsOf.get(service) ?? NONE).entries()) {
      if (!kept.has(`${place} ${key}`)) this.#places.get(place)?.remove(key, service);
      if (index % ITEMS_AT_ONCE === 0) yield;
    }
    if (items.length === 0) this.#itemsOf.delete(service);
    else this.#itemsOf.set(service, items);
  }

  /** Makes the next program replace the whole table. */
  reset(): void {
    this.#isKnown = false;
  }

  program(): string {
    return atOnce(this.programSteps());
  }

  /**
   * Returns the program that changes the table since the last returned program, which the caller must have applied; ''
   * if nothing differs. No other method may be called before the last step.
   */
  *programSteps(): Steps<string> {
    const before = new Map<Item['place'], ReadonlyMap<string, string>>();
    const after = new Map<Item['place'], ReadonlyMap<string, string>>();
    for (const [place, map] of this.#places) {
      const changes = map.take();
      before.set(place, changes.before);
      after.set(place, changes.after);
      yield;
    }
    this.#isReplaced = !this.#isKnown || needsReplace(before, after);
    if (!this.#isReplaced) return yield* differenceSteps(before, after, this.#options);
    this.#isKnown = true;
    return yield* replaceSteps(this.state(), this.#options);
  }

  /** Whether the last program replaces the table, so that members added by the kernel are lost. */
  get isReplaced(): boolean {
    return this.#isReplaced;
  }

  /**
   * Program that restores the session affinity of clients with its remaining time. It is applied after the last
   * program.
   */
  restoreAffinity(members: TimedMembers): string {
    return addAffinity(this.state(), members, this.#options);
  }

  state(): NftState {
    return new Map([...this.#places].map(([place, { values }]) => [place, values]));
  }

  /**
   * Creates shared chains for more endpoints. A chain with a lookup in an endpoint map can be added only by replacing
   * the table, because nft 1.0.6 cannot list these maps ("conflicting protocols specified: ip vs. th").
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
