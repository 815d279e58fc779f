/**
 * A message that waits to be piggybacked on outgoing packets, a limited number of times (SWIM §4.1, "infection-style
 * dissemination"). A message about a subject replaces the queued message about the same subject. The queue sends the
 * least transmitted message first; among equals, the newest.
 */
export interface Broadcast {
  /**
   * A later broadcast with the same subject replaces the queued one. Broadcasts without a subject are never replaced.
   */
  readonly subject: string | undefined;
  readonly bytes: Uint8Array;
  /**
   * Called once: with `true` after the last transmission, with `false` if a newer broadcast or a full queue has removed
   * this broadcast.
   */
  readonly done?: (sent: boolean) => void;
}

interface Entry extends Broadcast {
  readonly id: number;
  transmits: number;
}

export interface BroadcastLimits {
  readonly maxCount: number;
  readonly maxBytes: number;
}

export class BroadcastQueue {
  readonly #limits: BroadcastLimits;
  #entries: Entry[] = [];
  readonly #bySubject = new Map<string, Entry>();
  #bytes = 0;
  #nextId = 0;

  constructor(limits: BroadcastLimits) {
    this.#limits = limits;
  }

  get length(): number {
    return this.#entries.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Queues a broadcast. A full queue drops its most transmitted broadcast; among equals, the oldest one. */
  push(broadcast: Broadcast): void {
    if (broadcast.subject !== undefined) {
      const older = this.#bySubject.get(broadcast.subject);
      if (older !== undefined) this.#remove(older, 'dropped');
    }
    if (broadcast.bytes.length > this.#limits.maxBytes) {
      broadcast.done?.(false);
      return;
    }
    const entry: Entry = { ...broadcast, id: this.#nextId++, transmits: 0 };
    this.#entries.push(entry);
    this.#bytes += entry.bytes.length;
    if (entry.subject !== undefined) this.#bySubject.set(entry.subject, entry);
    while (this.#entries.length > this.#limits.maxCount || this.#bytes > this.#limits.maxBytes) {
      const victim = this.#mostSent(entry);
      if (victim === undefined) break;
      this.#remove(victim, 'dropped');
    }
  }

  /**
   * Takes broadcasts for one packet of `budget` bytes. `overhead`: bytes that each message needs in addition to its
   * length. Each broadcast that is taken counts as transmitted once, and leaves the queue after `transmitLimit`
   * transmissions.
   */
  take(overhead: number, budget: number, transmitLimit: number, maxMessages: number): Uint8Array[] {
    if (this.#entries.length === 0) return [];
    this.#entries.sort((a, b) => a.transmits - b.transmits || b.id - a.id);
    const selected: Uint8Array[] = [];
    const finished: Entry[] = [];
    let room = budget;
    for (const entry of this.#entries) {
      if (room <= overhead || selected.length >= maxMessages) break;
      const size = entry.bytes.length + overhead;
      if (size > room) continue;
      room -= size;
      selected.push(entry.bytes);
      entry.transmits++;
      if (entry.transmits >= transmitLimit) finished.push(entry);
    }
    for (const entry of finished) this.#remove(entry, 'sent');
    return selected;
  }

  clear(): void {
    for (const entry of [...this.#entries]) this.#remove(entry, 'dropped');
  }

  #mostSent(except: Entry): Entry | undefined {
    let victim: Entry | undefined;
    for (const entry of this.#entries) {
      if (entry === except) continue;
      const worse =
        victim === undefined ||
        entry.transmits > victim.transmits ||
        (entry.transmits === victim.transmits && entry.id < victim.id);
      if (worse) victim = entry;
    }
    return victim;
  }

  #remove(entry: Entry, outcome: 'sent' | 'dropped'): void {
    const index = this.#entries.indexOf(entry);
    if (index < 0) return;
    this.#entries.splice(index, 1);
    this.#bytes -= entry.bytes.length;
    if (entry.subject !== undefined && this.#bySubject.get(entry.subject) === entry)
      this.#bySubject.delete(entry.subject);
    entry.done?.(outcome === 'sent');
  }
}

/** Number of transmissions of each broadcast in a ring of `members` (memberlist's `retransmitLimit`). */
export function transmitLimit(multiplier: number, members: number): number {
  return multiplier * Math.ceil(Math.log10(members + 1));
}
