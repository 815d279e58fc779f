/** Sets of machines. Source: openshift/api machine/v1beta1, pkg/webhooks of openshift/machine-api-operator. */

import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';
import { validateImmutable } from '../../../../api/meta/validation.ts';
import { ageColumn, column, nameColumn, selectorText } from '../../../../api/printing/columns.ts';
import type { KindDefinition } from '../../../../api/registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../../api/registry/strategies.ts';
import { validateNonNegative, validateOneOf } from '../../../../api/validation/scalars.ts';
import { isEmptySelector, validateLabelSelector } from '../../../../api/validation/selectors.ts';
import { labelSelectorOf, matchesLabels } from '../../../../base/selector.ts';
import { DELETE_POLICIES, MACHINE_GROUP, MACHINE_VERSION, type MachineSet } from '../machine-types.ts';
import { setMachineDefaults, validateMachineSpec } from '../machines/index.ts';

function validate({ spec }: MachineSet): FieldError[] {
  const errors = [
    ...validateNonNegative(spec?.replicas, 'spec.replicas'),
    ...validateNonNegative(spec?.minReadySeconds, 'spec.minReadySeconds'),
    ...validateOneOf(spec?.deletePolicy, DELETE_POLICIES, 'spec.deletePolicy'),
    ...validateLabelSelector(spec?.selector, 'spec.selector'),
    ...validateMachineSpec(spec?.template?.spec, 'spec.template.spec'),
  ];
  if (isEmptySelector(spec?.selector))
    errors.push(fieldError.required('spec.selector', 'an empty selector would match all machines'));
  else if (errors.length === 0 && !matchesLabels(labelSelectorOf(spec?.selector), spec?.template?.metadata?.labels))
    errors.push(
      fieldError.invalid(
        'spec.template.metadata.labels',
        JSON.stringify(spec?.template?.metadata?.labels ?? {}),
        '`selector` does not match template `labels`',
      ),
    );
  return errors;
}

const { strategy, statusStrategy } = specStatusStrategies<MachineSet>({
  initialStatus: () => ({ replicas: 0 }),
  validate,
  validateUpdate: (set, old) => validateImmutable(set.spec?.selector, old.spec?.selector, 'spec.selector'),
});

const count = (name: string, description: string, read: (set: MachineSet) => number | undefined) =>
  column<MachineSet>(name, description, (set) => read(set) ?? 0, { type: 'integer' });

export const machineSets: KindDefinition<MachineSet> = {
  group: MACHINE_GROUP,
  version: MACHINE_VERSION,
  kind: 'MachineSet',
  plural: 'machinesets',
  singular: 'machineset',
  listKind: 'MachineSetList',
  namespaced: true,
  verbs: ALL_VERBS,
  schemaName: `com.github.openshift.api.machine.${MACHINE_VERSION}.MachineSet`,
  skeleton: { spec: { selector: {}, template: { metadata: {}, spec: {} } }, status: {} },
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/machinesets',
  setDefaults: ({ spec }) => {
    if (spec === undefined) return;
    spec.replicas ??= 1;
    spec.deletePolicy ||= 'Random';
    setMachineDefaults(spec.template?.spec);
  },
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    count('Desired', 'Desired number of machines.', ({ spec }) => spec?.replicas),
    count('Current', 'Current number of machines.', ({ status }) => status?.replicas),
    count('Ready', 'Number of machines whose Node is Ready.', ({ status }) => status?.readyReplicas),
    count(
      'Available',
      'Number of available machines (Ready for at least minReadySeconds).',
      ({ status }) => status?.availableReplicas,
    ),
    ageColumn,
  ],
  scale: {
    specReplicasPath: '.spec.replicas',
    statusReplicasPath: '.status.replicas',
    selector(object) {
      const text = selectorText((object as MachineSet).spec?.selector);
      return text === '<none>' ? '' : text;
    },
  },
};
