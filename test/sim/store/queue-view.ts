import type { Checkers } from './checkers.ts';

/** Key of a client in a queue, as last written. */
export interface Standing {
  readonly key: string;
  readonly create: number;
  readonly mod: number;
  readonly value: string;
}

/** The first client in the queue of a lock or election at each revision, reconstructed from the visible history. */
export class QueueView {
  readonly #steps: Array<{ readonly revision: number; readonly first: Standing | undefined }> = [];
  readonly #written = new Map<string, Set<number>>();

  constructor(checkers: Checkers, prefix: string) {
    const standing = new Map<string, Standing>();
    for (const [revision, events] of [...checkers.history].sort(([a], [b]) => a - b)) {
      const about = events.filter(({ key }) => key.startsWith(prefix));
      for (const { key, deleted, create, value } of about) {
        if (deleted) standing.delete(key);
        else {
          standing.set(key, { key, create, mod: revision, value });
          const written = this.#written.get(key) ?? new Set();
          this.#written.set(key, written.add(revision));
        }
      }
      if (about.length === 0) continue;
      let first: Standing | undefined;
      for (const each of standing.values()) if (first === undefined || each.create < first.create) first = each;
      this.#steps.push({ revision, first });
    }
  }

  firstAt(revision: number): Standing | undefined {
    return this.#steps.findLast((step) => step.revision <= revision)?.first;
  }

  /** Whether this was the key and value of the first client at any time. */
  wasFirst(output: Standing): boolean {
    return this.#steps.some(({ first }) => first !== undefined && same(first, output));
  }

  wasWritten(key: string, revision: number): boolean {
    return this.#written.get(key)?.has(revision) ?? false;
  }
}

export function same(one: Standing | undefined, other: Standing | undefined): boolean {
  return one?.key === other?.key && one?.mod === other?.mod && one?.value === other?.value;
}
