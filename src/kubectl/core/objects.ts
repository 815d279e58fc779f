/** Objects in manifests and their names in messages. */
import { ClientError } from './errors.ts';

/** An object of any kind; its fields are checked by the server. */
export interface AnyObject {
  apiVersion?: string;
  kind?: string;
  metadata?: {
    name?: string;
    generateName?: string;
    namespace?: string;
    uid?: string;
    resourceVersion?: string;
    generation?: number;
    creationTimestamp?: string;
    deletionTimestamp?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    finalizers?: string[];
    ownerReferences?: { apiVersion?: string; kind?: string; name?: string; uid?: string; controller?: boolean }[];
    managedFields?: ManagedFields[];
  };
  items?: AnyObject[];
  [field: string]: unknown;
}

export interface ManagedFields {
  manager?: string;
  operation?: string;
  apiVersion?: string;
  time?: string;
  fieldsType?: string;
  fieldsV1?: Record<string, unknown>;
  subresource?: string;
}

/** Annotation with the manifest of the last client-side apply. */
export const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Objects of a document; items of a List object are returned separately. Throws ClientError with the source and the
 * missing field.
 */
export function objectsIn(document: unknown, source: string): AnyObject[] {
  if (document === null || document === undefined) return [];
  if (!isObject(document)) throw new ClientError(`error parsing ${source}: the document must be a mapping`);
  const object: AnyObject = document;
  if (typeof object.kind !== 'string' || object.kind === '')
    throw new ClientError(`unable to decode "${source}": Object 'Kind' is missing in '${JSON.stringify(document)}'`);
  if (typeof object.apiVersion !== 'string' || object.apiVersion === '')
    throw new ClientError(
      `error validating "${source}": error validating data: apiVersion not set; if you choose to ignore these errors, turn validation off with --validate=false`,
    );
  if (object.kind.endsWith('List') && Array.isArray(object.items))
    return object.items.flatMap((item) => objectsIn(item, source));
  if (object.metadata !== undefined && object.metadata !== null && !isObject(object.metadata))
    throw new ClientError(`error parsing ${source}: metadata must be a mapping`);
  return [object];
}

/** Reads a field by its path; undefined if any part is missing. */
export function fieldAt(object: unknown, ...path: readonly (string | number)[]): unknown {
  let value: unknown = object;
  for (const key of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as Record<string | number, unknown>)[key];
  }
  return value;
}

/** Like `at`, for lists; empty if the field is not a list. */
export function listAt(object: unknown, ...path: readonly (string | number)[]): readonly Record<string, unknown>[] {
  const value = fieldAt(object, ...path);
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Like `at`, for texts; empty if the field is missing. */
export function textAt(object: unknown, ...path: readonly (string | number)[]): string {
  const value = fieldAt(object, ...path);
  return typeof value === 'string'
    ? value
    : typeof value === 'number' || typeof value === 'boolean'
      ? String(value)
      : '';
}

/** Like `at`, for numbers; `fallback` if the field is not a number. */
export function numberAt(object: unknown, fallback: number, ...path: readonly (string | number)[]): number {
  const value = fieldAt(object, ...path);
  return typeof value === 'number' ? value : fallback;
}

/** Like `at`, for mappings of texts; empty if the field is not a mapping. */
export function mapAt(object: unknown, ...path: readonly (string | number)[]): Readonly<Record<string, string>> {
  const value = fieldAt(object, ...path);
  return isObject(value) ? (value as Record<string, string>) : {};
}

/** The object without its managed fields. */
export function withoutManagedFields<T extends AnyObject>(object: T): T {
  if (object.metadata?.managedFields === undefined) return object;
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}
