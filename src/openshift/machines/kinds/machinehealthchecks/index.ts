/** Health checks of machines. Source: openshift/api machine/v1beta1, its defaults and patterns. */

import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';
import { isSet } from '../../../../api/meta/validation.ts';
import { column, nameColumn } from '../../../../api/printing/columns.ts';
import type { KindDefinition } from '../../../../api/registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../../api/registry/strategies.ts';
import { validateCountOrPercent, validateOneOf } from '../../../../api/validation/scalars.ts';
import { validateLabelSelector } from '../../../../api/validation/selectors.ts';
import { parseDuration } from '../../../../base/time/duration.ts';
import { MACHINE_GROUP, MACHINE_VERSION, type MachineHealthCheck } from '../machine-types.ts';

function validateDuration(text: string | undefined, path: string): FieldError[] {
  const ms = text === '0' ? 0 : parseDuration(text ?? '');
  return ms === undefined || ms < 0
    ? [fieldError.invalid(path, text ?? '', 'must be a duration such as 5m or 300s')]
    : [];
}

function validate({ spec }: MachineHealthCheck): FieldError[] {
  const conditions = spec?.unhealthyConditions ?? [];
  const errors = [
    ...(spec?.selector === undefined ? [fieldError.required('spec.selector')] : []),
    ...validateLabelSelector(spec?.selector, 'spec.selector'),
    ...validateCountOrPercent(spec?.maxUnhealthy, 'spec.maxUnhealthy'),
    ...validateDuration(spec?.nodeStartupTimeout, 'spec.nodeStartupTimeout'),
    ...conditions.flatMap(({ type, status, timeout }, index) => {
      const at = `spec.unhealthyConditions[${index}]`;
      return [
        ...(isSet(type) ? [] : [fieldError.required(`${at}.type`)]),
        ...validateOneOf(status, ['True', 'False', 'Unknown'], `${at}.status`),
        ...validateDuration(timeout, `${at}.timeout`),
      ];
    }),
  ];
  if (conditions.length === 0)
    errors.push(fieldError.required('spec.unhealthyConditions', 'must have at least one condition'));
  if (spec?.remediationTemplate !== undefined)
    errors.push(
      fieldError.forbidden('spec.remediationTemplate', 'machines are remediated by deletion; remove the field'),
    );
  return errors;
}

const { strategy, statusStrategy } = specStatusStrategies<MachineHealthCheck>({ validate });

const count = (name: string, description: string, read: (check: MachineHealthCheck) => number | string | undefined) =>
  column<MachineHealthCheck>(name, description, (check) => read(check) ?? '');

export const machineHealthChecks: KindDefinition<MachineHealthCheck> = {
  group: MACHINE_GROUP,
  version: MACHINE_VERSION,
  kind: 'MachineHealthCheck',
  plural: 'machinehealthchecks',
  singular: 'machinehealthcheck',
  listKind: 'MachineHealthCheckList',
  namespaced: true,
  shortNames: ['mhc', 'mhcs'],
  verbs: ALL_VERBS,
  schemaName: `com.github.openshift.api.machine.${MACHINE_VERSION}.MachineHealthCheck`,
  skeleton: { spec: {}, status: {} },
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/machinehealthchecks',
  setDefaults: ({ spec }) => {
    if (spec === undefined) return;
    spec.maxUnhealthy ??= '100%';
    spec.nodeStartupTimeout ||= '10m';
  },
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    count('MaxUnhealthy', 'Maximum number of unhealthy machines.', ({ spec }) => spec?.maxUnhealthy),
    count('ExpectedMachines', 'Machines that are watched.', ({ status }) => status?.expectedMachines),
    count('CurrentHealthy', 'Number of healthy machines.', ({ status }) => status?.currentHealthy),
  ],
};
