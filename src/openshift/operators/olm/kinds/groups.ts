/** Operator groups, operators and operator conditions. Source: operator-framework/api pkg/operators/{v1,v2}. */

import { fieldError } from '../../../../api/meta/field-error.ts';
import { isSet } from '../../../../api/meta/validation.ts';
import { ageColumn, nameColumn } from '../../../../api/printing/columns.ts';
import type { KindDefinition } from '../../../../api/registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../../api/registry/strategies.ts';
import { otherVersion } from '../../../../api/registry/versions.ts';
import { validateNameRule, validateOneOf } from '../../../../api/validation/scalars.ts';
import { isEmptySelector, validateLabelSelector } from '../../../../api/validation/selectors.ts';
import { dns1123LabelErrors } from '../../../../base/names.ts';
import { OLM_GROUP, type Operator, type OperatorCondition, type OperatorGroup } from './types.ts';

const SCHEMA = 'com.github.operator-framework.api.pkg.operators';
const STRATEGIES = ['Default', 'TechPreviewUnsafeFailForward'];

const group = specStatusStrategies<OperatorGroup>({
  validate: ({ spec = {} }) => [
    ...validateLabelSelector(spec.selector, 'spec.selector'),
    ...(spec.targetNamespaces ?? []).flatMap((each, index) =>
      // A single empty name means all namespaces. The status of the group uses the same convention.
      each === '' ? [] : validateNameRule(each, dns1123LabelErrors, `spec.targetNamespaces[${index}]`),
    ),
    ...(isSet(spec.upgradeStrategy) ? validateOneOf(spec.upgradeStrategy, STRATEGIES, 'spec.upgradeStrategy') : []),
    ...((spec.targetNamespaces ?? []).length > 0 && spec.selector !== undefined && !isEmptySelector(spec.selector)
      ? [fieldError.forbidden('spec.selector', 'may not be set beside targetNamespaces')]
      : []),
  ],
});

export const operatorGroups: KindDefinition<OperatorGroup> = {
  group: OLM_GROUP,
  version: 'v1',
  kind: 'OperatorGroup',
  plural: 'operatorgroups',
  singular: 'operatorgroup',
  listKind: 'OperatorGroupList',
  namespaced: true,
  shortNames: ['og'],
  categories: ['olm'],
  verbs: ALL_VERBS,
  schemaName: `${SCHEMA}.v1.OperatorGroup`,
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/operatorgroups',
  ...group,
  columns: [nameColumn, ageColumn],
};

export const operators: KindDefinition<Operator> = {
  group: OLM_GROUP,
  version: 'v1',
  kind: 'Operator',
  plural: 'operators',
  singular: 'operator',
  listKind: 'OperatorList',
  namespaced: false,
  categories: ['olm'],
  verbs: ALL_VERBS,
  schemaName: `${SCHEMA}.v1.Operator`,
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/operators',
  ...specStatusStrategies<Operator>({}),
  columns: [nameColumn, ageColumn],
};

export const operatorConditions: KindDefinition<OperatorCondition> = {
  group: OLM_GROUP,
  version: 'v2',
  kind: 'OperatorCondition',
  plural: 'operatorconditions',
  singular: 'operatorcondition',
  listKind: 'OperatorConditionList',
  namespaced: true,
  shortNames: ['condition'],
  categories: ['olm'],
  verbs: ALL_VERBS,
  schemaName: `${SCHEMA}.v2.OperatorCondition`,
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/operatorconditions',
  aliases: [otherVersion(OLM_GROUP, 'v1')],
  ...specStatusStrategies<OperatorCondition>({}),
  columns: [nameColumn, ageColumn],
};
