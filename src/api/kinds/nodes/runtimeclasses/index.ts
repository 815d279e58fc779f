/** Runtime classes. Source: k8s.io/kubernetes/pkg/registry/node/runtimeclass, pkg/apis/node/validation. */

import { dns1123LabelErrors } from '../../../../base/names.ts';
import type { RuntimeClass } from '../../../generated/node/v1.ts';
import type { FieldError } from '../../../meta/field-error.ts';
import { validateImmutable, validateLabels } from '../../../meta/validation.ts';
import { deprecatedLabel } from '../../../podspec/checks/warnings.ts';
import { validateResourceQuantity } from '../../../podspec/containers/resources.ts';
import { validateTolerations } from '../../../podspec/placement.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS } from '../../../registry/strategies.ts';
import { sameShape } from '../../../registry/versions.ts';
import { validateNameRule } from '../../../validation/scalars.ts';

function validate(each: RuntimeClass): FieldError[] {
  return [
    ...validateNameRule(each.handler ?? '', dns1123LabelErrors, 'handler'),
    ...Object.entries(each.overhead?.podFixed ?? {}).flatMap(([name, amount]) =>
      validateResourceQuantity(name, amount, `overhead.podFixed[${name}]`),
    ),
    ...validateLabels(each.scheduling?.nodeSelector, 'scheduling.nodeSelector'),
    ...validateTolerations(each.scheduling?.tolerations, 'scheduling.tolerations'),
  ];
}

export const runtimeClasses: KindDefinition<RuntimeClass> = {
  group: 'node.k8s.io',
  version: 'v1',
  kind: 'RuntimeClass',
  plural: 'runtimeclasses',
  singular: 'runtimeclass',
  listKind: 'RuntimeClassList',
  namespaced: false,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.node.v1.RuntimeClass',
  storagePrefix: 'runtimeclasses',
  allowCreateOnUpdate: true,
  allowUnconditionalUpdate: false,
  aliases: [sameShape('node.k8s.io', 'v1beta1', '1.22', '1.25')],
  strategy: {
    validate,
    validateUpdate: (each, old) => validateImmutable(each.handler, old.handler, 'handler'),
    warnings: (each) =>
      Object.keys(each.scheduling?.nodeSelector ?? {}).flatMap((key) => {
        const why = deprecatedLabel(key);
        return why === undefined ? [] : [`scheduling.nodeSelector: ${why}`];
      }),
  },
  columns: [
    nameColumn,
    column<RuntimeClass>('Handler', 'Handler of the container runtime.', (each) => each.handler ?? ''),
    ageColumn,
  ],
};
