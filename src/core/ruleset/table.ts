/** The nft table of one family: what it should hold, service by service, and the program that brings it there. */
import { type Item, MAP_NAMES, type NftOptions, type NftState } from './content.ts';
import { itemsOf } from './items.ts';
import { difference, needsReplace, replaceTable } from './nft.ts';
import { OwnedMap } from './owned-map.ts';
import type { ServicePort } from './service-port.ts';
import { UdpZones } from './zones.ts';

const NONE: readonly Item[] = [];

export class NftTable {
  readonly #options: NftOptions;
  readonly #places = new Map<Item['place'], OwnedMap>(
    (['chains', 'sets', ...MAP_NAMES] as const).map((place) => [place, new OwnedMap()]),
  );
  readonly #itemsOf = new Map<string, readonly Item[]>();
  readonly #udpPorts = new Map<string, readonly string[]>();
  readonly #zones = new UdpZones();
  #isKnown = false;

  constructor(options: NftOptions) {
    this.#options = options;
  }

  /** All ports of a service; those of other families are left out. */
  set(service: string, ports: readonly ServicePort[]): void {
    const own = ports.filter(({ family }) => family === this.#options.family);
    const items = own.flatMap((port) => itemsOf(port, this.#options, this.#zoneOf(port)));
    this.#followUdp(service, own);
    const kept = new Set<string>();
    for (const { place, key, value } of items) {
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
    if (this.#isKnown && !needsReplace(before, after)) return difference(before, after, this.#options);
    this.#isKnown = true;
    return replaceTable(this.state(), this.#options);
  }

  state(): NftState {
    return new Map([...this.#places].map(([place, { values }]) => [place, values]));
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
