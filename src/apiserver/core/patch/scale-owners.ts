/**
 * Converts the ownership of the replicas between an object and its Scale. Source: k8s.io/apimachinery's
 * managedfields.ScaleHandler.
 */

import { atOnce } from '../../../base/concurrency/steps.ts';
import type { JsonValue } from './document.ts';
import { EMPTY_SET, type FieldSet, fieldDifference, fieldElement, intersection, isEmpty } from './field-set.ts';
import {
  decodeManagedFields,
  encodeManagedFields,
  identityOf,
  type ManagedEntry,
  NO_MANAGED_FIELDS,
  withFields,
} from './managed-fields.ts';

const SCALE_VERSION = 'autoscaling/v1';
const IN_SCALE: FieldSet = { 'f:spec': { 'f:replicas': EMPTY_SET } };

/** The field at a path such as `.spec.replicas`, as a field set. */
function fieldAt(path: string): FieldSet {
  return path
    .split('.')
    .filter((name) => name !== '')
    .reduceRight<FieldSet>((below, name) => ({ [fieldElement(name)]: below }), EMPTY_SET);
}

function entriesOf(managedFields: JsonValue | undefined): readonly ManagedEntry[] {
  return [...(decodeManagedFields(managedFields, { stored: true }) ?? NO_MANAGED_FIELDS).values()];
}

const encoded = (entries: readonly ManagedEntry[]): JsonValue[] =>
  atOnce(encodeManagedFields(new Map(entries.map((entry) => [identityOf(entry), entry]))));

/** Identity of an owner without the version, which differs between the object and its Scale. */
const nameOf = ({ manager, operation, subresource }: ManagedEntry): string =>
  JSON.stringify([manager, operation, subresource]);

/** Managed fields of the Scale: the owners of the object's replicas. */
export function ownersOfScale(managedFields: JsonValue | undefined, path: string): JsonValue[] {
  const replicas = fieldAt(path);
  return encoded(
    entriesOf(managedFields)
      .filter(({ fields }) => !isEmpty(intersection(fields, replicas)))
      .map((entry) => ({ ...withFields(entry, IN_SCALE), apiVersion: SCALE_VERSION })),
  );
}

/** Managed fields of the object after a write of its Scale with `scaleFields`. `apiVersion`: version of the object. */
export function ownersAfterScale(
  managedFields: JsonValue | undefined,
  scaleFields: JsonValue | undefined,
  path: string,
  apiVersion: string,
): JsonValue[] {
  const replicas = fieldAt(path);
  const owners = new Map(entriesOf(scaleFields).map((entry) => [nameOf(entry), entry]));
  const kept: ManagedEntry[] = [];
  for (const entry of entriesOf(managedFields)) {
    const had = !isEmpty(intersection(entry.fields, replicas));
    // An owner that is still an owner in the Scale keeps the field; all others lose it.
    const fields = !had || owners.delete(nameOf(entry)) ? entry.fields : fieldDifference(entry.fields, replicas);
    if (!isEmpty(fields)) kept.push(withFields(entry, fields));
  }
  const added = [...owners.values()].map((entry) => ({ ...withFields(entry, replicas), apiVersion }));
  return encoded([...kept, ...added]);
}
