/**
 * Priority classes. Source: k8s.io/kubernetes/pkg/registry/scheduling/priorityclass, pkg/apis/scheduling/validation.
 */
import type { PriorityClass } from '../../../generated/scheduling/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, metadataOf } from '../../../registry/strategies.ts';
import { sameShape } from '../../../registry/versions.ts';
import { validateOneOf } from '../../../validation/scalars.ts';

const SYSTEM_PREFIX = 'system-';
/** Highest value for user-defined classes. Higher values are reserved for system classes. */
export const HIGHEST_USER_PRIORITY = 1_000_000_000;
/** Classes that exist in every cluster, with their values. */
export const SYSTEM_CLASSES: Readonly<Record<string, number>> = {
  'system-cluster-critical': 2_000_000_000,
  'system-node-critical': 2_000_001_000,
};

function validate(priority: PriorityClass): FieldError[] {
  const errors: FieldError[] = [];
  const name = priority.metadata?.name ?? '';
  if (name.startsWith(SYSTEM_PREFIX)) {
    if (!Object.hasOwn(SYSTEM_CLASSES, name) || SYSTEM_CLASSES[name] !== priority.value) {
      errors.push(
        fieldError.forbidden(
          'metadata.name',
          `priority class names with '${SYSTEM_PREFIX}' prefix are reserved for system use only. error: ${name} is not a known system priority class`,
        ),
      );
    }
  } else if ((priority.value ?? 0) > HIGHEST_USER_PRIORITY) {
    errors.push(
      fieldError.forbidden('value', `maximum allowed value of a user defined priority is ${HIGHEST_USER_PRIORITY}`),
    );
  }
  errors.push(...validateOneOf(priority.preemptionPolicy, ['PreemptLowerPriority', 'Never'], 'preemptionPolicy'));
  return errors;
}

function validateUpdate(priority: PriorityClass, old: PriorityClass): FieldError[] {
  const errors: FieldError[] = [];
  if ((priority.value ?? 0) !== (old.value ?? 0)) {
    errors.push(fieldError.forbidden('value', 'may not be changed in an update.'));
  }
  if (priority.preemptionPolicy !== old.preemptionPolicy) {
    errors.push(fieldError.invalid('preemptionPolicy', priority.preemptionPolicy ?? '', 'field is immutable'));
  }
  return errors;
}

export const priorityClasses: KindDefinition<PriorityClass> = {
  group: 'scheduling.k8s.io',
  version: 'v1',
  kind: 'PriorityClass',
  plural: 'priorityclasses',
  singular: 'priorityclass',
  listKind: 'PriorityClassList',
  namespaced: false,
  shortNames: ['pc'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.scheduling.v1.PriorityClass',
  storagePrefix: 'priorityclasses',
  aliases: [sameShape('scheduling.k8s.io', 'v1beta1', '1.14', '1.22')],
  setDefaults(priority) {
    priority.preemptionPolicy ??= 'PreemptLowerPriority';
    priority.value ??= 0;
  },
  strategy: {
    prepareForCreate(priority) {
      metadataOf(priority).generation = 1;
    },
    validate,
    validateUpdate,
  },
  columns: [
    nameColumn,
    column<PriorityClass>('Value', 'The priority that pods of this class have.', (each) => each.value ?? 0, {
      type: 'integer',
    }),
    column<PriorityClass>(
      'Global-Default',
      'Whether pods without a class use this class.',
      (each) => each.globalDefault ?? false,
      { type: 'boolean' },
    ),
    ageColumn,
    column<PriorityClass>('PreemptionPolicy', 'Preemption policy of the pods.', (each) => each.preemptionPolicy ?? ''),
  ],
};
