/**
 * Fields that were written in another version of the kind: what an owner has is known in the version it wrote in, so
 * objects are converted to that version and compared there. Source: structured-merge-diff's merge.Updater.
 */
import type { SchemaNode } from '../../api/schema/node.ts';
import { type Comparison, compare } from './compare.ts';
import type { JsonObject, JsonValue } from './document.ts';
import { type FieldSet, intersection, isEmpty, unionAll } from './field-set.ts';
import type { ManagedFields } from './managed-fields.ts';
import { pruneUnowned } from './typed.ts';

/** Between the version that is written and others of the kind. Nothing that is given is changed. */
export interface Versions {
  /** Undefined: there is no such version any more. */
  to(object: JsonObject, apiVersion: string): InVersion | undefined;
  back(object: JsonObject, apiVersion: string): JsonObject;
}

interface InVersion {
  readonly object: JsonObject;
  readonly schema: SchemaNode | undefined;
}

/** What differs, in a version; undefined where the version is gone, and with it whatever was owned in it. */
export type ChangesIn = (apiVersion: string) => Comparison | undefined;

/**
 * `own`: the changes that count in the version that is written. Others are worked out when they are first asked for;
 * `counting` leaves what counts of them.
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

/** `merged` without the fields that `last` owned in its version and no manager owns now, in any version. */
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
    // What somebody has in this version comes back.
    if (!isEmpty(intersection(removed, ownedIn(managed, apiVersion)))) pruned = prune(all, removed, apiVersion);
  }
  return pruned;
}

function ownedIn(managed: ManagedFields, apiVersion: string): FieldSet {
  return unionAll([...managed.values()].filter((entry) => entry.apiVersion === apiVersion).map(({ fields }) => fields));
}
