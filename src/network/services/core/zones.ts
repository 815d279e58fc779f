/** Connection tracking zones for UDP service ports. */
import { connectionZone } from '../../../base/linux/connection-zone.ts';
import type { ServicePort } from './service-port.ts';

const MAX_ZONE = 65_535;
/**
 * Maximum number of deleted service ports whose zone is remembered. A port that is created again continues with its
 * remembered zone.
 */
const MAX_GONE = 4_096;

interface Followed {
  endpoints: ReadonlySet<string>;
  zone: number;
}

/**
 * Assigns connection tracking zones to the UDP ports of one table. A flow to a removed endpoint, or a flow that started
 * before its service had an endpoint, never ends while its client keeps sending. Therefore the port moves to another
 * zone, in which the flow counts as new. The initial zone is derived from the endpoints: after a restart of the
 * process, flows are kept if their endpoints are unchanged.
 */
export class UdpZones {
  readonly #ports = new Map<string, Followed>();
  /** Removed ports, in order of deletion. */
  readonly #removed = new Set<string>();

  /**
   * The zone for the current endpoints. The zone changes when an endpoint was removed or the first endpoint was added.
   */
  next({ id, endpoints, externalEndpoints }: ServicePort): number {
    const now = new Set([...endpoints, ...externalEndpoints].map(({ ip, port }) => `${ip} ${port}`));
    const zone = connectionZone(`${id} ${[...now].sort().join()}`);
    this.#removed.delete(id);
    const followed = this.#ports.get(id) ?? { endpoints: now, zone };
    this.#ports.set(id, followed);
    const isFirst = followed.endpoints.size === 0 && now.size > 0;
    if (isFirst || ![...followed.endpoints].every((each) => now.has(each)))
      followed.zone = zone === followed.zone ? (zone % MAX_ZONE) + 1 : zone;
    followed.endpoints = now;
    return followed.zone;
  }

  /** Records that the port is no longer forwarded. */
  delete(id: string): void {
    if (!this.#ports.has(id)) return;
    this.#removed.add(id);
    const [oldest] = this.#removed;
    if (this.#removed.size <= MAX_GONE || oldest === undefined) return;
    this.#removed.delete(oldest);
    this.#ports.delete(oldest);
  }
}
