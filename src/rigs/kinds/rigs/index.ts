/** Rigs for hardware-in-the-loop tests: fixtures of one node that are granted together. */

import { type FieldError, fieldError } from '../../../api/meta/field-error.ts';
import { isSet } from '../../../api/meta/validation.ts';
import { ageColumn, column, NONE, nameColumn } from '../../../api/printing/columns.ts';
import { humanDuration } from '../../../api/printing/duration.ts';
import type { KindDefinition } from '../../../api/registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../api/registry/strategies.ts';
import { validateNameRule, validateOneOf, validateRange } from '../../../api/validation/scalars.ts';
import { dns1123LabelErrors, dns1123SubdomainErrors } from '../../../base/names.ts';
import { parseDuration } from '../../../base/time/duration.ts';
import {
  DEFAULT_LEASE,
  HISTORY_LIMITS,
  POWER_ACTIONS,
  RIG_GROUP,
  RIG_VERSION,
  type Rig,
  type RigPowerAction,
  USE_ENDS,
} from '../rig-types.ts';

const ROLES = ['board', 'serial', 'relay', 'gpio', 'can', 'video', 'block', 'net', 'other'];
const MAX_FIXTURES = 32;
const MIN_LEASE_MS = 1_000;
const MAX_LEASE_MS = 30 * 24 * 3_600_000;
const MAX_CHANNEL = 16;
const MAX_BAUD = 12_000_000;
/** Pattern of fixture names, as in the bootstrap file. */
const FIXTURE = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/** Validates a lease duration: one second to 30 days. */
export function validateLease(text: string | undefined, path: string): FieldError[] {
  if (!isSet(text)) return [];
  const ms = parseDuration(text);
  if (ms === undefined) return [fieldError.invalid(path, text, 'must be a duration such as 30m or 2h')];
  return ms < MIN_LEASE_MS || ms > MAX_LEASE_MS ? [fieldError.invalid(path, text, 'must be between 1s and 720h')] : [];
}

function validate({ spec = {} }: Rig): FieldError[] {
  const fixtures = spec.fixtures ?? [];
  const errors: FieldError[] = [];
  if (isSet(spec.node)) errors.push(...validateNameRule(spec.node, dns1123SubdomainErrors, 'spec.node'));
  if (fixtures.length === 0) errors.push(fieldError.required('spec.fixtures', 'a rig has at least one fixture'));
  if (fixtures.length > MAX_FIXTURES) errors.push(fieldError.tooMany('spec.fixtures', fixtures.length, MAX_FIXTURES));
  const names = new Set<string>();
  const used = new Set<string>();
  for (const [index, { name = '', fixture = '', role }] of fixtures.entries()) {
    const at = `spec.fixtures[${index}]`;
    errors.push(...validateNameRule(name, dns1123LabelErrors, `${at}.name`));
    if (names.has(name)) errors.push(fieldError.duplicate(`${at}.name`, name));
    if (!FIXTURE.test(fixture))
      errors.push(fieldError.invalid(`${at}.fixture`, fixture, 'must be the name of a fixture, such as ftdi-A50285BI'));
    if (used.has(fixture)) errors.push(fieldError.duplicate(`${at}.fixture`, fixture));
    if (isSet(role)) errors.push(...validateOneOf(role, ROLES, `${at}.role`));
    names.add(name);
    used.add(fixture);
  }
  errors.push(...validateLease(spec.maxLease, 'spec.maxLease'));
  if (spec.console !== undefined) {
    errors.push(...validateReference(spec.console.fixture, names, 'spec.console.fixture'));
    errors.push(...validateRange(spec.console.baudRate ?? 1, 1, MAX_BAUD, 'spec.console.baudRate'));
  }
  for (const action of POWER_ACTIONS) {
    const found = spec.power?.[action];
    if (found !== undefined) errors.push(...validateAction(found, names, `spec.power.${action}`));
  }
  return errors;
}

function validateAction(
  { command, fixture, channel }: RigPowerAction,
  names: ReadonlySet<string>,
  at: string,
): FieldError[] {
  if (isSet(command) === isSet(fixture))
    return [fieldError.invalid(at, command ?? '', 'must have either a command or a fixture')];
  if (isSet(command))
    return FIXTURE.test(command)
      ? []
      : [fieldError.invalid(`${at}.command`, command, 'must be the name of an entry of rigPower')];
  return [
    ...validateReference(fixture, names, `${at}.fixture`),
    ...validateRange(channel ?? 1, 1, MAX_CHANNEL, `${at}.channel`),
  ];
}

function validateReference(name: string | undefined, names: ReadonlySet<string>, at: string): FieldError[] {
  if (!isSet(name)) return [fieldError.required(at)];
  return names.has(name) ? [] : [fieldError.invalid(at, name, 'must be the name of a fixture of this rig')];
}

function validateHistory({ status }: Rig): FieldError[] {
  const history = status?.history ?? [];
  const { entries, characters } = HISTORY_LIMITS;
  const errors: FieldError[] = [];
  if (history.length > entries) errors.push(fieldError.tooMany('status.history', history.length, entries));
  for (const [index, use] of history.slice(0, entries).entries()) {
    const at = `status.history[${index}]`;
    for (const field of ['namespace', 'name', 'uid', 'requester', 'node'] as const)
      if ((use[field]?.length ?? 0) > characters)
        errors.push(fieldError.invalid(`${at}.${field}`, '', `may not be more than ${characters} characters`));
    if (isSet(use.reason)) errors.push(...validateOneOf(use.reason, USE_ENDS, `${at}.reason`));
  }
  return errors;
}

const { strategy, statusStrategy } = specStatusStrategies<Rig>({ validate, validateStatusUpdate: validateHistory });

/** Remaining time until `time`; `<none>` if `time` is not set. */
export function until(time: string | undefined, nowMs: number): string {
  return isSet(time) ? humanDuration(Math.max(0, Date.parse(time) - nowMs)) : NONE;
}

const holderText = ({ status }: Rig): string =>
  status?.holder === undefined ? NONE : `${status.holder.namespace}/${status.holder.name}`;

export const rigs: KindDefinition<Rig> = {
  group: RIG_GROUP,
  version: RIG_VERSION,
  kind: 'Rig',
  plural: 'rigs',
  singular: 'rig',
  listKind: 'RigList',
  namespaced: false,
  verbs: ALL_VERBS,
  schemaName: `dev.hyperedge.rig.${RIG_VERSION}.Rig`,
  skeleton: { spec: {}, status: {} },
  returnsDeleted: 'undocumented',
  storagePrefix: `${RIG_GROUP}/rigs`,
  setDefaults: ({ spec }) => {
    if (spec === undefined) return;
    spec.maxLease ||= DEFAULT_LEASE;
    if (spec.console !== undefined) spec.console.baudRate ??= 115_200;
  },
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    column<Rig>('Node', 'Node that has the fixtures.', ({ spec, status }) => status?.node ?? spec?.node ?? NONE),
    column<Rig>('Holder', 'Claim to which the rig is granted.', holderText),
    column<Rig>('Queue', 'Claims that wait.', ({ status }) => status?.queue ?? 0, { type: 'integer' }),
    column<Rig>('Expires', 'Time until the lease ends.', ({ status }, nowMs) => until(status?.expiresAt, nowMs)),
    ageColumn,
  ],
  extraSubresources: [
    { name: 'console', kind: 'PodAttachOptions', group: '', version: 'v1', verbs: ['create', 'get'] },
    { name: 'power', kind: 'Status', group: '', version: 'v1', verbs: ['create'] },
    { name: 'recordings', kind: 'RigRecordingList', verbs: ['get'] },
  ],
};
