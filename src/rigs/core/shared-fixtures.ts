/** Rigs that must not be granted at the same time, because they have a fixture in common. */
import { POWER_ACTIONS, type Rig } from '../kinds/rig-types.ts';

/** Names of the other rigs with which each rig shares a fixture that only one holder can use. */
export function rigsWithSharedFixtures(rigs: ReadonlyMap<string, Rig>): ReadonlyMap<string, ReadonlySet<string>> {
  const owners = new Map<string, string[]>();
  for (const [name, rig] of rigs)
    for (const fixture of exclusiveFixtures(rig)) owners.set(fixture, [...(owners.get(fixture) ?? []), name]);
  const shared = new Map<string, Set<string>>();
  for (const names of owners.values()) {
    for (const name of names.length > 1 ? names : []) {
      const others = shared.get(name) ?? new Set();
      for (const other of names) if (other !== name) others.add(other);
      shared.set(name, others);
    }
  }
  return shared;
}

/**
 * Fixtures of the rig, except relay boards that switch its power. The rigs of a board use different channels, which
 * only the host switches.
 */
function exclusiveFixtures({ spec }: Rig): ReadonlySet<string> {
  const relays = new Set(POWER_ACTIONS.flatMap((action) => spec?.power?.[action]?.fixture ?? []));
  return new Set(
    (spec?.fixtures ?? []).flatMap(({ name = '', fixture = '' }) =>
      relays.has(name) && spec?.console?.fixture !== name ? [] : [fixture],
    ),
  );
}
