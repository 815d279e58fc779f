/** All built-in kinds and how to find them. */
import type { GroupVersionKind, KubeObject } from '../meta/object.ts';
import type { KindDefinition } from './definition.ts';

export const builtinKinds: readonly KindDefinition[] = [];

/** A kind as one of its versions: `alias` is set when the version asked for is not the stored one, and converts. */
export interface KindMatch {
  readonly kind: KindDefinition;
  readonly alias?: KindAlias;
}

export type KindAlias = NonNullable<KindDefinition<KubeObject>['aliases']>[number];

/** Finds the kind that serves `gvk`, in whichever version. */
export function kindByGvk(gvk: GroupVersionKind): KindMatch | undefined {
  return byGvk().get(`${gvk.group}/${gvk.version}/${gvk.kind}`);
}

/** Finds the kind by its place in URLs. `group` is '' for the core group. */
export function kindByPath(group: string, version: string, plural: string): KindMatch | undefined {
  return byPath().get(`${group}/${version}/${plural}`);
}

const byGvk = lazily(() => index((match) => match.kind.kind));
const byPath = lazily(() => index((match) => match.kind.plural));

function index(lastSegment: (match: KindMatch) => string): ReadonlyMap<string, KindMatch> {
  const found = new Map<string, KindMatch>();
  for (const kind of builtinKinds) {
    for (const match of [{ kind }, ...(kind.aliases ?? []).map((alias) => ({ kind, alias }))] as KindMatch[]) {
      const { group, version } = match.alias ?? kind;
      found.set(`${group}/${version}/${lastSegment(match)}`, match);
    }
  }
  return found;
}

function lazily<T>(compute: () => T): () => T {
  let value: T | undefined;
  return () => {
    value ??= compute();
    return value;
  };
}
