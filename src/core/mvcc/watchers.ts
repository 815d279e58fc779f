import type { Change, DecidedRevision } from './machine.ts';
import { isDelete } from './version.ts';

export interface WatchTarget {
  readonly start: string;
  /** Undefined: no end. */
  readonly end: string | undefined;
  /** True when exactly one key is meant. */
  readonly single: boolean;
  /** The first revision that it is to hear of. */
  readonly next: number;
  readonly noPut: boolean;
  readonly noDelete: boolean;
}

/** The watches that are up to date, and which of them a published change concerns. */
export class Watchers<W extends WatchTarget> {
  readonly #byKey = new Map<string, Set<W>>();
  readonly #ranges = new Set<W>();

  add(watcher: W): void {
    if (!watcher.single) {
      this.#ranges.add(watcher);
      return;
    }
    const same = this.#byKey.get(watcher.start);
    if (same === undefined) this.#byKey.set(watcher.start, new Set([watcher]));
    else same.add(watcher);
  }

  remove(watcher: W): void {
    if (!watcher.single) {
      this.#ranges.delete(watcher);
      return;
    }
    const same = this.#byKey.get(watcher.start);
    if (same?.delete(watcher) && same.size === 0) this.#byKey.delete(watcher.start);
  }

  /** Per watch, the changes it is to hear of, in order. */
  match(revisions: readonly DecidedRevision[]): Map<W, Change[]> {
    const matched = new Map<W, Change[]>();
    if (this.#ranges.size === 0 && this.#byKey.size === 0) return matched;
    const note = (watcher: W, change: Change): void => {
      if (change.version.revision < watcher.next) return;
      if (isDelete(change.version) ? watcher.noDelete : watcher.noPut) return;
      const changes = matched.get(watcher);
      if (changes === undefined) matched.set(watcher, [change]);
      else changes.push(change);
    };
    for (const { changes } of revisions) {
      for (const change of changes) {
        const { key } = change.version;
        for (const watcher of this.#byKey.get(key) ?? []) note(watcher, change);
        for (const watcher of this.#ranges) {
          if (key >= watcher.start && (watcher.end === undefined || key < watcher.end)) note(watcher, change);
        }
      }
    }
    return matched;
  }
}
