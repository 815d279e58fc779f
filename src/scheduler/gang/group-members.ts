/** Index of pods by their pod group. */

import type { Pod } from '../../api/generated/core/v1.ts';
import { toUid, type Uid } from '../../base/brand.ts';
import { podGroupKey } from '../core/pod-group.ts';

export class GroupMembers {
  readonly #groups = new Map<string, Set<Uid>>();
  readonly #groupOf = new Map<Uid, string>();

  set(pod: Pod): void {
    const uid = toUid(pod.metadata?.uid);
    const key = podGroupKey(pod);
    if (this.#groupOf.get(uid) === key) return;
    this.remove(uid);
    if (key === undefined) return;
    this.#groupOf.set(uid, key);
    const members = this.#groups.get(key);
    if (members === undefined) this.#groups.set(key, new Set([uid]));
    else members.add(uid);
  }

  remove(uid: Uid): void {
    const key = this.#groupOf.get(uid);
    if (key === undefined) return;
    this.#groupOf.delete(uid);
    const members = this.#groups.get(key);
    members?.delete(uid);
    if (members?.size === 0) this.#groups.delete(key);
  }

  /** Pods of a group that have not terminated. */
  of(key: string): ReadonlySet<Uid> {
    return this.#groups.get(key) ?? new Set();
  }
}
