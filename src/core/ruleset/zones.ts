/** Connection tracking zones for UDP service ports whose endpoints have changed. */
import type { ServicePort } from './service-port.ts';

const MAX_ZONE = 65_535;
/** Ports of deleted services that are remembered: one that comes back begins where the old one ended. */
const MAX_GONE = 4_096;

interface Followed {
  endpoints: ReadonlySet<string>;
  zone: number | undefined;
}

/**
 * Follows the ports of one table. Zones begin with the first loss of an endpoint; until then all flows stay. A flow
 * that is sent to an endpoint which is gone never ends while its client keeps sending, so the port moves to another
 * zone, where the flow is new.
 */
export class UdpZones {
  readonly #ports = new Map<string, Followed>();
  /** In the order in which they were deleted. */
  readonly #gone = new Set<string>();

  /** The zone that holds with these endpoints; the same for a repetition; undefined: the default zone. */
  next({ id, endpoints, externalEndpoints }: ServicePort): number | undefined {
    const now = new Set([...endpoints, ...externalEndpoints].map(({ ip, port }) => `${ip} ${port}`));
    this.#gone.delete(id);
    const followed = this.#ports.get(id) ?? { endpoints: now, zone: undefined };
    this.#ports.set(id, followed);
    if (![...followed.endpoints].every((each) => now.has(each))) followed.zone = ((followed.zone ?? 0) % MAX_ZONE) + 1;
    followed.endpoints = now;
    return followed.zone;
  }

  /** The port is not forwarded any more. */
  delete(id: string): void {
    if (!this.#ports.has(id)) return;
    this.#gone.add(id);
    const [oldest] = this.#gone;
    if (this.#gone.size <= MAX_GONE || oldest === undefined) return;
    this.#gone.delete(oldest);
    this.#ports.delete(oldest);
  }
}
