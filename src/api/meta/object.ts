import type { ObjectMeta as UpstreamObjectMeta } from 'kubernetes-types/meta/v1';
import { integerOf } from '../../base/json.ts';

/** metadata of an object; `name` and `uid` are present on everything read from the API. */
export type ObjectMeta = UpstreamObjectMeta;

/** Any API object: JSON as it travels, type information included. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata?: ObjectMeta;
}

/**
 * A free-form JSON object. Parsed documents have a null-safe shape: `__proto__` is an own property or absent, never a
 * prototype.
 */
export type JsonObject = { [field: string]: JsonValue };
export type JsonValue = string | number | bigint | boolean | null | JsonValue[] | JsonObject;

export interface GroupVersionKind {
  /** '' for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** The static description a client needs to address a kind. */
export interface ResourceType<T extends KubeObject = KubeObject> extends GroupVersionKind {
  /** Lower-case plural used in paths: `pods`. */
  readonly plural: string;
  readonly namespaced: boolean;
  /** Phantom: carries T, never set. */
  readonly _type?: T;
}

export interface ListMeta {
  resourceVersion?: string;
  continue?: string;
  remainingItemCount?: number;
}

export interface KubeList<T extends KubeObject> {
  apiVersion: string;
  kind: string;
  metadata: ListMeta;
  items: T[];
}

/** `group/version`, or `version` for the core group. */
export function apiVersionOf(gvk: { readonly group: string; readonly version: string }): string {
  return gvk.group === '' ? gvk.version : `${gvk.group}/${gvk.version}`;
}

/**
 * The generation after that of `object`. Clients may have said any; numbers beyond the safe ones are BigInts
 * (base/json.ts), which do not add to others.
 */
export function nextGeneration(object: KubeObject): number {
  return integerOf(BigInt.asIntN(64, BigInt(object.metadata?.generation ?? 0) + 1n)) as number;
}

/** `namespace/name`, or `name` for cluster-scoped objects: the key of informers and work queues. */
export function objectKey(object: KubeObject): string {
  const metadata = object.metadata;
  const name = metadata?.name ?? '';
  return metadata?.namespace === undefined || metadata.namespace === '' ? name : `${metadata.namespace}/${name}`;
}

export function splitKey(key: string): { namespace: string | undefined; name: string } {
  const slash = key.indexOf('/');
  return slash < 0
    ? { namespace: undefined, name: key }
    : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}
