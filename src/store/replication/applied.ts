import type { AppliedChanges, LeaseRecord } from '../disk/port.ts';

/**
 * Changes of leases, auth and membership that applied entries made and that are not on disk yet. Changes of keys are
 * not collected, because the log itself stores them.
 */
export class AppliedState {
  #leases = new Map<bigint, LeaseRecord | undefined>();
  #documents = new Map<string, Uint8Array>();
  #handed: AppliedChanges | undefined;
  #dirty = false;
  compacted = 0;
  /** Applied index on disk. */
  stored = 0;

  get dirty(): boolean {
    return this.#dirty;
  }

  granted(lease: LeaseRecord): void {
    this.#leases.set(lease.id, lease);
    this.#dirty = true;
  }

  revoked(id: bigint): void {
    this.#leases.set(id, undefined);
    this.#dirty = true;
  }

  document(name: string, value: Uint8Array): void {
    this.#documents.set(name, value);
    this.#dirty = true;
  }

  compactedAt(revision: number): void {
    this.compacted = revision;
    this.#dirty = true;
  }

  /** Returns the changes up to `index` for writing. */
  take(index: number): AppliedChanges {
    const granted: LeaseRecord[] = [];
    const revoked: bigint[] = [];
    for (const [id, lease] of this.#leases) {
      if (lease === undefined) revoked.push(id);
      else granted.push(lease);
    }
    const changes: AppliedChanges = {
      index,
      compacted: this.compacted,
      leasesGranted: granted,
      leasesRevoked: revoked,
      documents: this.#documents,
    };
    this.#leases = new Map();
    this.#documents = new Map();
    this.#dirty = false;
    this.#handed = changes;
    return changes;
  }

  written(changes: AppliedChanges): void {
    if (this.#handed === changes) this.#handed = undefined;
    this.stored = Math.max(this.stored, changes.index);
  }

  /** Resets the changes after a snapshot was installed. */
  reset(index: number, compacted: number): void {
    this.#leases.clear();
    this.#documents.clear();
    this.#dirty = false;
    this.compacted = compacted;
    this.stored = index;
  }
}
