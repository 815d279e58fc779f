/** Write strategy of an object, of its status or of another subresource. Undefined if the kind has no such endpoint. */
import type { KubeObject } from '../../../api/meta/object.ts';
import type { WriteStrategy } from '../../../api/registry/definition.ts';
import type { ServedKind } from '../../pipeline/kinds.ts';

export function strategyAt(kind: ServedKind, subresource: string): WriteStrategy<KubeObject> | undefined {
  const { definition } = kind;
  if (subresource === '') return definition.strategy;
  if (subresource === 'status') return definition.statusStrategy;
  const others = definition.subresourceStrategies ?? {};
  return Object.hasOwn(others, subresource) ? others[subresource] : undefined;
}

/** Reports whether the kind has a subresource of this name. '' is the object itself. */
export function hasSubresource(kind: ServedKind, subresource: string): boolean {
  const { scale, extraSubresources = [] } = kind.definition;
  if (strategyAt(kind, subresource) !== undefined || (subresource === 'scale' && scale !== undefined)) return true;
  return extraSubresources.some((each) => each.name === subresource);
}
