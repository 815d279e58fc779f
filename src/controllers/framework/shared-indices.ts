/**
 * Indices of informers that several controllers share. An index has one owner, because a second function under the same
 * name would return the wrong objects to one of them.
 */
import type { KubeObject } from '../../api/meta/object.ts';
import type { Informer } from '../../client/types.ts';

interface SharedIndex {
  readonly owner: string;
  readonly valuesOf: unknown;
}

const added = new WeakMap<object, Map<string, SharedIndex>>();

/**
 * Adds an index. Any owner may add the same function again. Throws, with the names of both owners, if an index of this
 * name has a different function.
 */
export function addSharedIndex<T extends KubeObject>(
  informer: Informer<T>,
  name: string,
  valuesOf: (object: T) => readonly string[],
  owner: string,
): void {
  const indices = added.get(informer) ?? new Map<string, SharedIndex>();
  added.set(informer, indices);
  const known = indices.get(name);
  if (known === undefined) {
    informer.addIndex(name, valuesOf);
    indices.set(name, { owner, valuesOf });
  } else if (known.valuesOf !== valuesOf) {
    const of = `${informer.type.plural}: index "${name}"`;
    throw new Error(`${of} of ${owner} exists already for ${known.owner}; use another name, or the same function`);
  }
}
