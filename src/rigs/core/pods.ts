/** Pods that use rigs: the claim they reference and the fixtures they request. */
import type { Pod } from '../../api/generated/core/v1.ts';
import { isPodTerminal } from '../../controllers/framework/core/pods.ts';
import { CLAIM_ANNOTATION, FIXTURE_PREFIX, GATE_PREFIX, type Rig } from '../kinds/rig-types.ts';

/** Name of the claim that the pod references in its namespace, if any. */
export const claimNameOf = ({ metadata }: Pod): string | undefined => metadata?.annotations?.[CLAIM_ANNOTATION];

export const gateOf = (claim: string): string => `${GATE_PREFIX}${claim}`;

export function isGated({ spec }: Pod, claim: string): boolean {
  return (spec?.schedulingGates ?? []).some(({ name }) => name === gateOf(claim));
}

/** Names of the fixtures that containers or init containers of the pod request. */
export function fixturesOf({ spec }: Pod): ReadonlySet<string> {
  const fixtures = new Set<string>();
  for (const { resources } of [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])]) {
    for (const name of [...Object.keys(resources?.limits ?? {}), ...Object.keys(resources?.requests ?? {})])
      if (name.startsWith(FIXTURE_PREFIX)) fixtures.add(name.slice(FIXTURE_PREFIX.length));
  }
  return fixtures;
}

/** Maps the name of each fixture to the names of the rigs that contain it. */
export function rigsByFixture(rigs: readonly Rig[]): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  for (const { metadata, spec } of rigs) {
    for (const { fixture = '' } of spec?.fixtures ?? []) {
      const owners = found.get(fixture) ?? new Set();
      owners.add(metadata?.name ?? '');
      found.set(fixture, owners);
    }
  }
  return found;
}

/** Fixtures that the pod requests and that belong to rigs other than `rig`. */
export function foreignFixtures(
  pod: Pod,
  rig: string | undefined,
  owners: ReadonlyMap<string, ReadonlySet<string>>,
): string[] {
  return [...fixturesOf(pod)].filter((fixture) => {
    const of = owners.get(fixture);
    return of !== undefined && (rig === undefined || !of.has(rig));
  });
}

/** Whether the pod may run: it is not gated and has not finished. */
export function isUsing(pod: Pod): boolean {
  const claim = claimNameOf(pod);
  return !isPodTerminal(pod) && (claim === undefined || !isGated(pod, claim));
}
