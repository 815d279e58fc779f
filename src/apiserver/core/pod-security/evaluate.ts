/** Evaluates pods against a profile: all checks of its level in the requested version. */
import { BASELINE_CHECKS } from './baseline.ts';
import type { Check, PodLike, Violation } from './check.ts';
import type { LevelVersion } from './policy.ts';
import { RESTRICTED_CHECKS } from './restricted.ts';

/** Violations of the profile, in the order in which upstream reports them. */
export function evaluatePod({ level, version }: LevelVersion, pod: PodLike): readonly Violation[] {
  if (level === 'privileged') return [];
  const minor = version === 'latest' ? Number.POSITIVE_INFINITY : version;
  const inForce = (checks: readonly Check[]) =>
    checks.flatMap(({ id, versions }) => {
      const current = versions.findLast(({ since }) => since <= minor);
      return current === undefined ? [] : [{ id, ...current }];
    });
  const restricted = level === 'restricted' ? inForce(RESTRICTED_CHECKS) : [];
  const overridden = new Set(restricted.flatMap(({ overrides = [] }) => overrides));
  const checks = [...inForce(BASELINE_CHECKS).filter(({ id }) => !overridden.has(id)), ...restricted];
  return checks.map(({ check }) => check(pod)).filter((violation) => violation !== undefined);
}

/** Text such as `host namespaces (hostPID=true), privileged (…)`. */
export function detailsText(violations: readonly Violation[]): string {
  return violations.map(({ reason, detail }) => (detail === '' ? reason : `${reason} (${detail})`)).join(', ');
}
