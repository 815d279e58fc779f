/** Which catalogs of operators a master has, in an annotation of its Node. Written by the host process. */
import type { KubeObject } from '../../meta/object.ts';

/** JSON: names of directories below the host's directory of catalogs, with digests of their content. */
export const CATALOGS_ANNOTATION = 'hyperedge.dev/catalogs';

const DIGEST = /^sha256:[0-9a-f]{64}$/;

/** Undefined: absent or not of this form. */
export function catalogDigestsOf(node: KubeObject): ReadonlyMap<string, string> | undefined {
  try {
    const value: unknown = JSON.parse(node.metadata?.annotations?.[CATALOGS_ANNOTATION] ?? '');
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    return new Map(
      Object.entries(value).filter(
        (each): each is [string, string] => typeof each[1] === 'string' && DIGEST.test(each[1]),
      ),
    );
  } catch {
    return undefined;
  }
}
