/**
 * Ownership of fields in other versions of the kind. The fields of an owner are known in the version in which the owner
 * wrote, so objects are converted to this version and compared there. Source: structured-merge-diff's merge.Updater.
 */
import type { SchemaNode } from '../../../api/schema/node.ts';
import { type Comparison, compare } from './compare.ts';
import type { JsonObject, JsonValue } from './document.ts';
import { type FieldSet, intersection, isEmpty, unionAll } from './field-set.ts';
import type { ManagedFields } from './managed-fields.ts';
import { pruneUnowned } from './typed.ts';

/** Conversion between the written version and other versions of the kind. Arguments are not changed. */
export interface Versions {
  /** Converts from the written version. Undefined if `apiVersion` does not exist any more. */
  to(object: JsonObject, apiVersion: string): InVersion | undefined;
  back(object: JsonObject, apiVersion: string): JsonObject;
}

interface InVersion {
  readonly object: JsonObject;
  readonly schema: SchemaNode | undefined;
}

/** Changed fields in a version. Undefined if the version does not exist any more, so that ownership in it is lost. */
export type ChangesIn = (apiVersion: string) => Comparison | undefined;

/**
 * `own`: the changes in the written version. Changes in other versions are computed on first use, and filtered by
 * `counting`.
 */
export function changesByVersion(
  facts: { readonly apiVersion: string; readonly versions?: Versions },
  own: Comparison,
  before: JsonObject,
  after: JsonObject,
  counting: (changes: Comparison) => Comparison,
): ChangesIn {
  const { apiVersion: written, versions } = facts;
  const known = new Map<string, Comparison | undefined>([[written, own]]);
  return (apiVersion) => {
    if (versions === undefined) return own;
    if (!known.has(apiVersion)) {
      const [from, to] = [versions.to(before, apiVersion), versions.to(after, apiVersion)];
      known.set(apiVersion, from && to && counting(compare(from.object, to.object, to.schema)));
    }
    return known.get(apiVersion);
  };
}

/** Removes from `merged` the fields that `last` owned in its version and that no manager owns in any version. */
export function prunedAcross(
  versions: Versions,
  merged: JsonObject,
  last: { readonly apiVersion: string; readonly fields: FieldSet },
  managed: ManagedFields,
): JsonValue {
  const start = versions.to(merged, last.apiVersion);
  if (start === undefined) return merged;
  const prune = ({ object, schema }: InVersion, fields: FieldSet, apiVersion: string): JsonObject =>
    versions.back(pruneUnowned(object, fields, ownedIn(managed, apiVersion), schema) as JsonObject, apiVersion);
  let pruned = prune(start, last.fields, last.apiVersion);
  for (const apiVersion of new Set([...managed.values()].map((entry) => entry.apiVersion))) {
    if (apiVersion === last.apiVersion) continue;
    const [all, left] = [versions.to(merged, apiVersion), versions.to(pruned, apiVersion)];
    if (all === undefined || left === undefined) continue;
    const { removed } = compare(all.object, left.object, all.schema);
    // Fields that a manager owns in this version are restored.
    if (!isEmpty(intersection(removed, ownedIn(managed, apiVersion)))) pruned = prune(all, removed, apiVersion);
  }
  return pruned;
}

function ownedIn(managed: ManagedFields, apiVersion: string): FieldSet {
  return unionAll([...managed.values()].filter((entry) => entry.apiVersion === apiVersion).map(({ fields }) => fields));
}
