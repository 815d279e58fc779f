/** The scale subresource: the number of replicas of an object as an object of its own. */
import type { Scale } from '../../../api/generated/autoscaling/v1.ts';
import { fieldError, invalid } from '../../../api/meta/field-error.ts';
import type { JsonValue, KubeObject } from '../../../api/meta/object.ts';
import type { ScaleMapping } from '../../../api/registry/definition.ts';
import { schemaOf } from '../../../api/schema/index.ts';
import { fieldOf, isObject, setFieldOf } from '../../../api/structural/schema.ts';

export const scaleKind = {
  apiVersion: 'autoscaling/v1',
  kind: 'Scale',
  schema: schemaOf({ group: 'autoscaling', version: 'v1', kind: 'Scale' }),
} as const;

export function scaleOf(mapping: ScaleMapping, object: KubeObject): Scale {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata ?? {};
  const replicas = numberAt(object, mapping.specReplicasPath);
  const selector = mapping.selector(object);
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: {
      ...(name === undefined ? {} : { name }),
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
    },
    spec: replicas === 0 ? {} : { replicas },
    status: { replicas: numberAt(object, mapping.statusReplicasPath), ...(selector === '' ? {} : { selector }) },
  };
}

/** Sets the number of replicas. Throws 'Invalid' for a negative number; for custom resources the schema decides. */
export function applyScale(mapping: ScaleMapping, object: KubeObject, scale: Scale, custom: boolean): void {
  const replicas = scale.spec?.replicas ?? 0;
  if (replicas < 0 && !custom) {
    throw invalid({ group: 'autoscaling', kind: 'Scale' }, object.metadata?.name ?? '', [
      fieldError.invalid('spec.replicas', replicas, 'must be greater than or equal to 0'),
    ]);
  }
  const path = mapping.specReplicasPath.split('.').filter((part) => part !== '');
  const last = path.pop();
  let target = object;
  for (const part of path) {
    const known = fieldOf(target, part);
    const below = isObject(known) ? known : {};
    if (below !== known) setFieldOf(target, part, below);
    target = below;
  }
  if (last !== undefined) setFieldOf(target, last, replicas);
}

function numberAt(object: KubeObject, path: string): number {
  let value: JsonValue | undefined = object;
  for (const part of path.split('.')) {
    if (part !== '') value = isObject(value) ? fieldOf(value, part) : undefined;
  }
  return typeof value === 'number' ? value : 0;
}
