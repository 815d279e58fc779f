/**
 * Decides which requested names of a definition are accepted. Source:
 * k8s.io/apiextensions-apiserver/pkg/controller/status/naming_controller.go.
 */
import type { CustomResourceDefinition, CustomResourceDefinitionNames } from '../../../generated/apiextensions/v1.ts';
import type { DefinitionCondition } from './conditions.ts';

export interface NamingResult {
  readonly accepted: CustomResourceDefinitionNames;
  readonly condition: DefinitionCondition;
  /** New Established condition. Undefined: the condition stays unchanged. */
  readonly established: DefinitionCondition | undefined;
}

/**
 * Computes the accepted names and conditions. `others` are the accepted names of other definitions in the same group. A
 * name stays with the definition for which it was accepted first.
 */
export function acceptNames(
  definition: CustomResourceDefinition,
  others: readonly (CustomResourceDefinitionNames | undefined)[],
  established: boolean,
): NamingResult {
  const resources = new Set<string>();
  const kinds = new Set<string>();
  for (const names of others) {
    if (names === undefined) continue;
    for (const name of [names.plural, names.singular, ...(names.shortNames ?? [])]) if (name) resources.add(name);
    for (const name of [names.kind, names.listKind]) if (name) kinds.add(name);
  }
  const requested = definition.spec.names;
  const had = definition.status?.acceptedNames;
  const accepted: CustomResourceDefinitionNames = { plural: had?.plural ?? '', kind: had?.kind ?? '', ...had };
  const conflicts: { reason: string; message: string }[] = [];
  const claim = (used: ReadonlySet<string>, name: string, own: string | undefined, reason: string): boolean => {
    if (name !== '' && name === own) return true;
    if (!used.has(name)) return true;
    conflicts.push({ reason, message: `${JSON.stringify(name)} is already in use` });
    return false;
  };
  if (claim(resources, requested.plural, had?.plural, 'PluralConflict')) accepted.plural = requested.plural;
  if (claim(resources, requested.singular ?? '', had?.singular, 'SingularConflict'))
    accepted.singular = requested.singular ?? '';
  const short = requested.shortNames ?? [];
  if (
    short.every((name) =>
      claim(resources, name, had?.shortNames?.includes(name) === true ? name : undefined, 'ShortNamesConflict'),
    )
  ) {
    if (short.length > 0) accepted.shortNames = [...short];
    else delete accepted.shortNames;
  }
  if (claim(kinds, requested.kind, had?.kind, 'KindConflict')) accepted.kind = requested.kind;
  if (claim(kinds, requested.listKind ?? '', had?.listKind, 'ListKindConflict'))
    accepted.listKind = requested.listKind ?? '';
  if ((requested.categories ?? []).length > 0) accepted.categories = [...(requested.categories ?? [])];
  else delete accepted.categories;
  const [conflict] = conflicts;
  if (conflict !== undefined) {
    return {
      accepted,
      condition: { type: 'NamesAccepted', status: 'False', ...conflict },
      established: established
        ? undefined
        : { type: 'Established', status: 'False', reason: 'NotAccepted', message: 'not all names are accepted' },
    };
  }
  return {
    accepted,
    condition: { type: 'NamesAccepted', status: 'True', reason: 'NoConflicts', message: 'no conflicts found' },
    established: established
      ? undefined
      : {
          type: 'Established',
          status: 'True',
          reason: 'InitialNamesAccepted',
          message: 'the initial names have been accepted',
        },
  };
}

/** Compares versions in the order of discovery: v10, v2, v1, v11beta2, v10beta3, v12alpha1, then all others by name. */
export function compareVersions(a: string, b: string): number {
  const left = /^v(\d{1,9})(?:(alpha|beta)(\d{1,9}))?$/.exec(a);
  const right = /^v(\d{1,9})(?:(alpha|beta)(\d{1,9}))?$/.exec(b);
  if (left === null || right === null) {
    if (left === null && right === null) return a < b ? -1 : a > b ? 1 : 0;
    return left === null ? 1 : -1;
  }
  const rank = (stage: string | undefined): number => (stage === undefined ? 0 : stage === 'beta' ? 1 : 2);
  return (
    rank(left[2]) - rank(right[2]) || Number(right[1]) - Number(left[1]) || Number(right[3] ?? 0) - Number(left[3] ?? 0)
  );
}
