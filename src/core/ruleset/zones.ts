/** Connection tracking zones for UDP service ports whose endpoints have changed. */
import type { ServicePort } from './service-port.ts';

const MAX_ZONE = 65_535;
/** Ports of deleted services that are remembered: one that comes back begins where the old one ended. */
const MAX_GONE = 4_096;

/** Follows the ports of one table. Zones begin with the first loss of an endpoint; until then all flows stay. */
export class UdpZones {
  readonly #zones = new Map<string, number>();
  readonly #endpoints = new Map<string, ReadonlySet<string>>();

  /** The zones that hold with these ports; the same for a repetition. */
  next(ports: readonly ServicePort[]): ReadonlyMap<string, number> {
    const udp = ports.filter(({ protocol }) => protocol === 'UDP');
    for (const { id, endpoints, externalEndpoints } of udp) {
      const now = new Set([...endpoints, ...externalEndpoints].map(({ ip, port }) => `${ip} ${port}`));
      const before = this.#endpoints.get(id) ?? now;
      // Set again, so that the order is that of the last use.
      this.#endpoints.delete(id);
      this.#endpoints.set(id, now);
      if ([...before].every((each) => now.has(each))) continue;
      this.#zones.set(id, ((this.#zones.get(id) ?? 0) % MAX_ZONE) + 1);
    }
    for (const id of this.#endpoints.keys()) {
      if (this.#endpoints.size <= udp.length + MAX_GONE) break;
      this.#endpoints.delete(id);
      this.#zones.delete(id);
    }
    return new Map(this.#zones);
  }
}
