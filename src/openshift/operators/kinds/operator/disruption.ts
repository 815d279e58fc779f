/** Validation of node disruption policies. Source: the CEL rules of openshift/api operator/v1 of release 4.17. */
import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';
import type { DisruptionAction, DisruptionPolicies, MachineConfiguration } from './types.ts';
import { validateOperator } from './validation.ts';

const ACTIONS = ['None', 'Drain', 'Reload', 'Restart', 'DaemonReload', 'Reboot'];
/** Actions that must be the only action of a policy. */
const ALONE = ['None', 'Reboot'];
const UNIT =
  /^[a-zA-Z0-9:._\\@-]+\.(service|socket|device|mount|automount|swap|target|path|timer|snapshot|slice|scope)$/;
const UNIT_RULE =
  'must be of the form NAME.TYPE, TYPE one of service, socket, device, mount, automount, swap, target, path, timer, snapshot, slice, scope';
const MAX_UNIT = 255;
const MAX_POLICIES = 50;
const MAX_ACTIONS = 10;

export function validateMachineConfiguration(object: MachineConfiguration): FieldError[] {
  return [
    ...validateOperator(object, ['Managed', 'Unmanaged']),
    ...validateDisruptionPolicies('spec.nodeDisruptionPolicy', object.spec?.nodeDisruptionPolicy ?? {}),
  ];
}

function validateDisruptionPolicies(
  field: string,
  { files = [], units = [], sshkey }: DisruptionPolicies,
): FieldError[] {
  const errors: FieldError[] = [];
  for (const [name, list] of [
    ['files', files],
    ['units', units],
  ] as const) {
    if (list.length > MAX_POLICIES) errors.push(fieldError.tooMany(`${field}.${name}`, list.length, MAX_POLICIES));
  }
  for (const [index, { path = '', actions }] of files.entries()) {
    const at = `${field}.files[${index}]`;
    if (!isFilePath(path)) errors.push(fieldError.invalid(`${at}.path`, path, 'must be the absolute path of a file'));
    if (files.findIndex((each) => each.path === path) < index) errors.push(fieldError.duplicate(`${at}.path`, path));
    errors.push(...validateActions(`${at}.actions`, actions));
  }
  for (const [index, { name = '', actions }] of units.entries()) {
    const at = `${field}.units[${index}]`;
    errors.push(...unitName(`${at}.name`, name));
    if (units.findIndex((each) => each.name === name) < index) errors.push(fieldError.duplicate(`${at}.name`, name));
    errors.push(...validateActions(`${at}.actions`, actions));
  }
  if (sshkey !== undefined) errors.push(...validateActions(`${field}.sshkey.actions`, sshkey.actions));
  return errors;
}

function isFilePath(path: string): boolean {
  return path.startsWith('/') && !path.endsWith('/') && !path.includes('\0') && !path.split('/').includes('..');
}

function unitName(field: string, name: string): FieldError[] {
  if (name.length <= MAX_UNIT && UNIT.test(name)) return [];
  return [fieldError.invalid(field, name, UNIT_RULE)];
}

function validateActions(field: string, actions: readonly DisruptionAction[] | undefined = []): FieldError[] {
  if (actions.length === 0) return [fieldError.required(field, 'at least one action')];
  if (actions.length > MAX_ACTIONS) return [fieldError.tooMany(field, actions.length, MAX_ACTIONS)];
  const errors = actions.flatMap((action, index) => validateAction(`${field}[${index}]`, action));
  for (const alone of ALONE) {
    if (actions.length > 1 && actions.some(({ type }) => type === alone)) {
      errors.push(
        fieldError.invalid(
          field,
          actions.map(({ type }) => type).join(','),
          `${alone} action can only be specified standalone, as it will override any other actions`,
        ),
      );
    }
  }
  return errors;
}

function validateAction(field: string, { type = '', reload, restart }: DisruptionAction): FieldError[] {
  if (!ACTIONS.includes(type)) return [fieldError.notSupported(`${field}.type`, type, ACTIONS)];
  return [
    ...service(`${field}.reload`, reload, type === 'Reload'),
    ...service(`${field}.restart`, restart, type === 'Restart'),
  ];
}

function service(field: string, given: { serviceName?: string } | undefined, isWanted: boolean): FieldError[] {
  const type = field.endsWith('.reload') ? 'Reload' : 'Restart';
  if (given === undefined)
    return isWanted ? [fieldError.required(field, `required when type is ${type}, and forbidden otherwise`)] : [];
  if (!isWanted) return [fieldError.forbidden(field, `required when type is ${type}, and forbidden otherwise`)];
  return unitName(`${field}.serviceName`, given.serviceName ?? '');
}
