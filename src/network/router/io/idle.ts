/**
 * Holds requests and connections for idled services, within limits, until servers are available. Source: OpenShift's
 * documentation, "Idling applications"; the limits follow its unidling proxy.
 */
import type { Backend } from '../core/port.ts';

const HOLD_MS = 120_000;
const TICK_MS = 5_000;
const MAX_HELD = 1_024;
const MAX_HELD_OF_BACKEND = 64;

interface Held {
  readonly id: string;
  readonly services: readonly string[];
  readonly untilMs: number;
  isReady(): boolean;
  settled(ready: boolean): void;
}

export class IdleBackends {
  readonly #needPods: (service: string) => void;
  readonly #nowMs: () => number;
  readonly #held = new Set<Held>();
  readonly #byBackend = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(needPods: (service: string) => void, nowMs: () => number) {
    this.#needPods = needPods;
    this.#nowMs = nowMs;
  }

  /**
   * Holds a request and calls `settled` once: with true when `isReady` returns true after a change of the routing
   * table, with false at the timeout. Returns a function that cancels the wait; undefined if the back end is not idle
   * or too many requests are held.
   */
  hold({ id, pools }: Backend, { isReady, settled }: Pick<Held, 'isReady' | 'settled'>): (() => void) | undefined {
    const services = pools.filter(({ idled, weight }) => idled === true && weight > 0).map(({ service }) => service);
    const count = this.#byBackend.get(id) ?? 0;
    if (services.length === 0 || this.#held.size >= MAX_HELD || count >= MAX_HELD_OF_BACKEND) return undefined;
    const held: Held = { id, services, untilMs: this.#nowMs() + HOLD_MS, isReady, settled };
    this.#held.add(held);
    this.#byBackend.set(id, count + 1);
    for (const service of services) this.#needPods(service);
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref();
    return () => void this.#forget(held);
  }

  /** Must be called after the routing table has been replaced. */
  changed(): void {
    for (const held of [...this.#held]) if (held.isReady() && this.#forget(held)) held.settled(true);
  }

  stop(): void {
    for (const held of [...this.#held]) if (this.#forget(held)) held.settled(false);
  }

  #tick(): void {
    const nowMs = this.#nowMs();
    const services = new Set<string>();
    for (const held of [...this.#held])
      if (nowMs < held.untilMs) for (const service of held.services) services.add(service);
      else if (this.#forget(held)) held.settled(false);
    for (const service of services) this.#needPods(service);
  }

  #forget(held: Held): boolean {
    if (!this.#held.delete(held)) return false;
    const left = (this.#byBackend.get(held.id) ?? 1) - 1;
    if (left <= 0) this.#byBackend.delete(held.id);
    else this.#byBackend.set(held.id, left);
    if (this.#held.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    return true;
  }
}

export const hasServers = ({ pools }: Backend): boolean =>
  pools.some(({ weight, endpoints }) => weight > 0 && endpoints.length > 0);
