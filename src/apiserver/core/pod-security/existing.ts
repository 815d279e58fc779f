/**
 * Checks existing pods when their namespace gets a stricter profile. Violating pods are not deleted; the response to
 * the request that changes the namespace contains warnings.
 */
import type { PodLike } from './check.ts';
import { evaluatePod } from './evaluate.ts';
import { type LevelVersion, levelVersionText } from './policy.ts';

export const MAX_EXISTING_PODS = 3000;

/** Violations of the existing pods. Pods with the same violations share one warning. */
export class ExistingPods {
  readonly #enforce: LevelVersion;
  readonly #found = new Map<string, { first: string; count: number }>();
  #checked = 0;

  constructor(enforce: LevelVersion) {
    this.#enforce = enforce;
  }

  get checked(): number {
    return this.#checked;
  }

  check(name: string, pod: PodLike): void {
    this.#checked++;
    const violations = evaluatePod(this.#enforce, pod);
    if (violations.length === 0) return;
    const reasons = violations.map(({ reason }) => reason).join(', ');
    const entry = this.#found.get(reasons) ?? { first: name, count: 0 };
    if (name < entry.first) entry.first = name;
    entry.count++;
    this.#found.set(reasons, entry);
  }

  /** Texts of the warnings. `total`: number of pods, including unchecked pods. */
  warnings(namespace: string, total: number): string[] {
    const warnings: string[] = [];
    if (this.#checked < total) {
      warnings.push(
        `new PodSecurity enforce level only checked against the first ${this.#checked} of ${total} existing pods`,
      );
    }
    if (this.#found.size > 0) {
      const level = JSON.stringify(levelVersionText(this.#enforce));
      warnings.push(
        `existing pods in namespace ${JSON.stringify(namespace)} violate the new PodSecurity enforce level ${level}`,
      );
    }
    const each = [...this.#found].map(
      ([reasons, { first, count }]) => `${first}${otherPodsSuffix(count - 1)}: ${reasons}`,
    );
    return [...warnings, ...each.sort()];
  }
}

function otherPodsSuffix(count: number): string {
  if (count === 0) return '';
  return count === 1 ? ' (and 1 other pod)' : ` (and ${count} other pods)`;
}
