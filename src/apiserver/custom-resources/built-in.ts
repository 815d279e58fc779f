/** Rejects custom resource definitions that have the name of a built-in kind, because they would have no effect. */
import type { CustomResourceDefinition } from '../../api/generated/apiextensions/v1.ts';
import { type FieldError, fieldError } from '../../api/meta/field-error.ts';
import type { KindDefinition } from '../../api/registry/definition.ts';
import { servedAs } from '../../api/registry/versions.ts';

/** Adds the check against `served` to the kind CustomResourceDefinition. Other kinds are returned unchanged. */
export function refuseBuiltIn(kind: KindDefinition, served: readonly KindDefinition[]): KindDefinition {
  if (kind.group !== 'apiextensions.k8s.io' || kind.kind !== 'CustomResourceDefinition') return kind;
  const { strategy } = kind;
  return {
    ...kind,
    strategy: {
      ...strategy,
      validateCreate: (object, ...rest) => [
        ...(strategy.validateCreate?.(object, ...rest) ?? []),
        ...builtInErrors(object as CustomResourceDefinition, served),
      ],
    },
  };
}

function builtInErrors({ spec }: CustomResourceDefinition, served: readonly KindDefinition[]): FieldError[] {
  const { group = '', names } = spec ?? {};
  for (const kind of served) {
    for (const alias of [undefined, ...(kind.aliases ?? [])]) {
      const { group: own, version } = alias ?? kind;
      const presented = servedAs(kind, alias);
      const isInUse = presented.plural === names?.plural || presented.kind === names?.kind;
      if (own !== group || !isInUse || kind.unserved?.has(`${group}/${version}`) === true) continue;
      const place = `${presented.plural}.${group}/${version}`;
      const why = `${place} is built into this server; use it without a definition, or switch the version off with --runtime-config=${group}/${version}=false`;
      return [fieldError.invalid('spec.names.plural', names?.plural, why)];
    }
  }
  return [];
}
