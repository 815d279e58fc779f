/** Pods that use rigs: which claim they name, and which fixtures they ask for. */
import type { Pod } from 'kubernetes-types/core/v1';
import { CLAIM_ANNOTATION, FIXTURE_PREFIX, GATE_PREFIX, type Rig } from '../../../api/rigs/types.ts';
import { isPodTerminal } from '../pods.ts';

/** The claim of the pod's namespace that the pod names; undefined: none. */
export const claimNameOf = ({ metadata }: Pod): string | undefined => metadata?.annotations?.[CLAIM_ANNOTATION];

export const gateOf = (claim: string): string => `${GATE_PREFIX}${claim}`;

export function isGated({ spec }: Pod, claim: string): boolean {
  return (spec?.schedulingGates ?? []).some(({ name }) => name === gateOf(claim));
}

/** Names of fixtures that any container of the pod asks for. */
export function fixturesOf({ spec }: Pod): ReadonlySet<string> {
  const fixtures = new Set<string>();
  for (const { resources } of [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])]) {
    for (const name of [...Object.keys(resources?.limits ?? {}), ...Object.keys(resources?.requests ?? {})])
      if (name.startsWith(FIXTURE_PREFIX)) fixtures.add(name.slice(FIXTURE_PREFIX.length));
  }
  return fixtures;
}

/** The rig that a fixture belongs to, by name of the fixture. */
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

/** Fixtures that the pod asks for and that belong to other rigs than `rig`. */
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

/** It may run: it is past its gate and has not ended. */
export function isUsing(pod: Pod): boolean {
  const claim = claimNameOf(pod);
  return !isPodTerminal(pod) && (claim === undefined || !isGated(pod, claim));
}
