import { integerOf } from '../../base/json/json.ts';
import type { ObjectMeta as UpstreamObjectMeta } from '../generated/meta/v1.ts';

/** Metadata of an object. `name` and `uid` are set on every object that was read from the API. */
export type ObjectMeta = UpstreamObjectMeta;

/**
 * Any API object in JSON form, with apiVersion and kind. A type alias, because an interface is not assignable to
 * `JsonObject`.
 */
export type KubeObject = {
  apiVersion?: string;
  kind?: string;
  metadata?: ObjectMeta;
};

/** A JSON object. In parsed documents `__proto__` is an ordinary own property, never a prototype. */
export type JsonObject = { [field: string]: JsonValue };
export type JsonValue = string | number | bigint | boolean | null | JsonValue[] | JsonObject;

export interface GroupVersionKind {
  /** API group; '' for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** Static facts that a client needs to address a kind. */
export interface ResourceType<T extends KubeObject = KubeObject> extends GroupVersionKind {
  /** Lower-case plural in URL paths, for example `pods`. */
  readonly plural: string;
  readonly namespaced: boolean;
  /** Carries T for type inference. The property is never set. */
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
 * Returns the generation of `object` plus one. Clients can send any 64-bit generation; numbers outside the safe range
 * are BigInts (base/json/json.ts).
 */
export function nextGeneration(object: KubeObject): number {
  return integerOf(BigInt.asIntN(64, BigInt(object.metadata?.generation ?? 0) + 1n)) as number;
}

/** `namespace/name`, or `name` for cluster-scoped objects. Key in informers and work queues. */
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
