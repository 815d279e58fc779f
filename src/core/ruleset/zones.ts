/** Connection tracking zones for UDP service ports. */
import { connectionZone } from '../../base/connection-zone.ts';
import type { ServicePort } from './service-port.ts';

const MAX_ZONE = 65_535;
/** Ports of deleted services that are remembered: one that comes back begins where the old one ended. */
const MAX_GONE = 4_096;

interface Followed {
  endpoints: ReadonlySet<string>;
  zone: number;
}

/**
 * Follows the ports of one table. A flow that is sent to an endpoint which was removed, or that began before its
 * service had an endpoint, never ends while its client keeps sending, so the port moves to another zone, where the flow
 * is new. The first zone follows from the endpoints: a restart of the process keeps flows whose endpoints are the same,
 * and leaves those of an earlier state.
 */
export class UdpZones {
  readonly #ports = new Map<string, Followed>();
  /** In the order in which they were deleted. */
  readonly #gone = new Set<string>();

  /** The zone that holds with these endpoints; the same for a repetition. */
  next({ id, endpoints, externalEndpoints }: ServicePort): number {
    const now = new Set([...endpoints, ...externalEndpoints].map(({ ip, port }) => `${ip} ${port}`));
    const zone = connectionZone(`${id} ${[...now].sort().join()}`);
    this.#gone.delete(id);
    const followed = this.#ports.get(id) ?? { endpoints: now, zone };
    this.#ports.set(id, followed);
    const isFirst = followed.endpoints.size === 0 && now.size > 0;
    if (isFirst || ![...followed.endpoints].every((each) => now.has(each)))
      followed.zone = zone === followed.zone ? (zone % MAX_ZONE) + 1 : zone;
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
