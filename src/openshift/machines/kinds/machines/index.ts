/** Machines. Source: openshift/api machine/v1beta1, pkg/webhooks of openshift/machine-api-operator. */

import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';
import { isSet } from '../../../../api/meta/validation.ts';
import { ageColumn, column, nameColumn } from '../../../../api/printing/columns.ts';
import type { KindDefinition } from '../../../../api/registry/definition.ts';
import { ALL_VERBS, metadataOf, specStatusStrategies } from '../../../../api/registry/strategies.ts';
import { validateNameRule, validateOneOf } from '../../../../api/validation/scalars.ts';
import { validateLabelSelector } from '../../../../api/validation/selectors.ts';
import { labelValueErrors, qualifiedNameErrors } from '../../../../base/names.ts';
import {
  type LifecycleHook,
  MACHINE_FINALIZER,
  MACHINE_GROUP,
  MACHINE_ROLES,
  MACHINE_VERSION,
  type Machine,
  type MachineSpec,
  PROVIDER_API_VERSION,
  PROVIDER_KIND,
  type ProviderSpec,
  STATE_ANNOTATION,
} from '../machine-types.ts';

const PROVIDER_FIELDS = ['apiVersion', 'kind', 'metadata', 'hostSelector', 'roles', 'pool'];
const TAINT_EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];
const MAX_HOOKS = 16;

/** Sets the type of the provider spec and the role labels, as the defaulting webhook of upstream does. */
export function setMachineDefaults(spec: MachineSpec | undefined): void {
  const value = spec?.providerSpec?.value;
  if (!isRecord(value)) return;
  value.apiVersion ||= PROVIDER_API_VERSION;
  value.kind ||= PROVIDER_KIND;
  value.roles ??= ['node'];
}

/** Validates the spec of a machine, or of the template of a MachineSet. `path` is `spec` or `spec.template.spec`. */
export function validateMachineSpec(spec: MachineSpec | undefined, path: string): FieldError[] {
  return [
    ...validateProvider(spec?.providerSpec?.value, `${path}.providerSpec.value`),
    ...validateHooks(spec?.lifecycleHooks?.preDrain, `${path}.lifecycleHooks.preDrain`),
    ...validateHooks(spec?.lifecycleHooks?.preTerminate, `${path}.lifecycleHooks.preTerminate`),
    ...(spec?.taints ?? []).flatMap(({ key, effect }, index) => [
      ...validateNameRule(key ?? '', qualifiedNameErrors, `${path}.taints[${index}].key`),
      ...validateOneOf(effect, TAINT_EFFECTS, `${path}.taints[${index}].effect`),
    ]),
  ];
}

function validateProvider(value: ProviderSpec | undefined, path: string): FieldError[] {
  if (!isRecord(value)) return [fieldError.required(path, 'a value must be provided')];
  const errors: FieldError[] = [];
  const unknown = Object.keys(value).filter((field) => !PROVIDER_FIELDS.includes(field));
  for (const field of unknown) errors.push(fieldError.invalid(`${path}.${field}`, '', 'unknown field; remove it'));
  if (value.apiVersion !== PROVIDER_API_VERSION)
    errors.push(fieldError.notSupported(`${path}.apiVersion`, value.apiVersion ?? '', [PROVIDER_API_VERSION]));
  if (value.kind !== PROVIDER_KIND)
    errors.push(fieldError.notSupported(`${path}.kind`, value.kind ?? '', [PROVIDER_KIND]));
  return [
    ...errors,
    ...validateRoles(value.roles, `${path}.roles`),
    ...(value.hostSelector === undefined ? [] : selectorErrors(value, `${path}.hostSelector`)),
    ...(value.pool === undefined ? [] : poolErrors(value.pool, `${path}.pool`)),
  ];
}

/** Validates hostSelector. Its types must be checked too, because the provider spec is arbitrary JSON. */
function selectorErrors({ hostSelector }: ProviderSpec, path: string): FieldError[] {
  const { matchLabels = {}, matchExpressions = [], ...rest } = isRecord(hostSelector) ? hostSelector : { other: '' };
  const isMap = isRecord(matchLabels) && Object.values(matchLabels).every((each) => typeof each === 'string');
  const isList =
    Array.isArray(matchExpressions) &&
    matchExpressions.every(
      (each) =>
        isRecord(each) &&
        typeof each['key'] === 'string' &&
        typeof each['operator'] === 'string' &&
        areTexts(each['values'] ?? []),
    );
  if (!isMap || !isList || Object.keys(rest).length > 0)
    return [fieldError.invalid(path, JSON.stringify(hostSelector), 'must be a label selector')];
  return validateLabelSelector(hostSelector, path);
}

function poolErrors(pool: unknown, path: string): FieldError[] {
  if (typeof pool !== 'string' || pool === '')
    return [fieldError.invalid(path, JSON.stringify(pool), 'must be the name of a pool, such as worker')];
  return validateNameRule(pool, labelValueErrors, path);
}

function validateRoles(roles: unknown, path: string): FieldError[] {
  if (!areTexts(roles) || roles.length === 0)
    return [fieldError.invalid(path, JSON.stringify(roles), `must be a list of some of ${MACHINE_ROLES.join(', ')}`)];
  const errors = roles.flatMap((role, index) => validateOneOf(role, MACHINE_ROLES, `${path}[${index}]`));
  if (!roles.includes('node')) errors.push(fieldError.invalid(path, roles, 'must include node'));
  if (roles.includes('etcd') && !roles.includes('master'))
    errors.push(fieldError.invalid(path, roles, 'must include master: a store member alone cannot join by token'));
  return errors;
}

function validateHooks(hooks: readonly LifecycleHook[] | undefined, path: string): FieldError[] {
  const names = new Set<string>();
  const errors = (hooks ?? []).flatMap(({ name, owner }, index) => {
    const at = `${path}[${index}]`;
    const twice = names.has(name ?? '') ? [fieldError.duplicate(`${at}.name`, name ?? '')] : [];
    names.add(name ?? '');
    return [
      ...twice,
      ...validateNameRule(name ?? '', qualifiedNameErrors, `${at}.name`),
      ...(isSet(owner) ? [] : [fieldError.required(`${at}.owner`)]),
    ];
  });
  if (names.size > MAX_HOOKS) errors.push(fieldError.tooMany(path, names.size, MAX_HOOKS));
  return errors;
}

/**
 * While a machine is being deleted, lifecycle hooks cannot be added, because the phase that they block may have passed.
 */
function validateUpdate(machine: Machine, old: Machine): FieldError[] {
  if (machine.metadata?.deletionTimestamp === undefined) return [];
  return (['preDrain', 'preTerminate'] as const).flatMap((kind) => {
    const before = JSON.stringify((old.spec?.lifecycleHooks?.[kind] ?? []).map(({ name, owner }) => [name, owner]));
    const added = (machine.spec?.lifecycleHooks?.[kind] ?? []).filter(
      ({ name, owner }) => !before.includes(JSON.stringify([name, owner])),
    );
    return added.length === 0
      ? []
      : [
          fieldError.forbidden(
            `spec.lifecycleHooks.${kind}`,
            `${kind} hooks are immutable when machine is marked for deletion: the following hooks are new or changed: ${JSON.stringify(added)}`,
          ),
        ];
  });
}

const areTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string');

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const { strategy, statusStrategy } = specStatusStrategies<Machine>({
  prepareForCreate(machine) {
    const metadata = metadataOf(machine);
    metadata.finalizers = [...new Set([...(metadata.finalizers ?? []), MACHINE_FINALIZER])];
  },
  validate: ({ spec }) => validateMachineSpec(spec, 'spec'),
  validateUpdate,
});

const labelColumn = (name: string, label: string) =>
  column<Machine>(name, `${name} of the machine.`, ({ metadata }) => metadata?.labels?.[label] ?? '');

export const machines: KindDefinition<Machine> = {
  group: MACHINE_GROUP,
  version: MACHINE_VERSION,
  kind: 'Machine',
  plural: 'machines',
  singular: 'machine',
  listKind: 'MachineList',
  namespaced: true,
  verbs: ALL_VERBS,
  schemaName: `com.github.openshift.api.machine.${MACHINE_VERSION}.Machine`,
  skeleton: { spec: {}, status: {} },
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/machines',
  setDefaults: ({ spec }) => setMachineDefaults(spec),
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    column<Machine>('Phase', 'Phase of the machine.', ({ status }) => status?.phase ?? ''),
    labelColumn('Type', 'machine.openshift.io/instance-type'),
    labelColumn('Region', 'machine.openshift.io/region'),
    labelColumn('Zone', 'machine.openshift.io/zone'),
    ageColumn,
    column<Machine>('Node', 'Node of the machine.', ({ status }) => status?.nodeRef?.name ?? '', { wide: true }),
    column<Machine>('ProviderID', 'Identity of the host.', ({ spec }) => spec?.providerID ?? '', { wide: true }),
    column<Machine>('State', 'State of the host.', ({ metadata }) => metadata?.annotations?.[STATE_ANNOTATION] ?? '', {
      wide: true,
    }),
  ],
};
