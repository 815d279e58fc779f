/**
 * Kinds of config.openshift.io, the cluster configuration. Each kind has one object, named `cluster`. Source:
 * openshift/api config/v1 of release 4.10, and openshift-kube-apiserver/admission/customresourcevalidation of
 * openshift/kubernetes.
 */
import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';
import type { KubeObject } from '../../../../api/meta/object.ts';
import { ageColumn, column, nameColumn } from '../../../../api/printing/columns.ts';
import { since } from '../../../../api/printing/duration.ts';
import type { Column, KindDefinition } from '../../../../api/registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../../api/registry/strategies.ts';
import { validateSettings } from './settings.ts';
import type { OperandVersion, OperatorCondition, UpdateHistory } from './types.ts';

export const CONFIG_GROUP = 'config.openshift.io';
export const CONFIG_NAME = 'cluster';

interface Conditioned extends KubeObject {
  spec?: object;
  status?: {
    conditions?: readonly Partial<OperatorCondition>[];
    versions?: readonly Partial<OperandVersion>[];
    history?: readonly Partial<UpdateHistory>[];
  };
}

interface Differences {
  readonly plural?: string;
  readonly singular?: string;
  readonly shortNames?: readonly string[];
  /** The only allowed name of an object (default: `cluster`). If set to undefined, any name is allowed. */
  readonly name?: string | undefined;
  readonly columns?: readonly Column<Conditioned>[];
  readonly validate?: (object: Conditioned) => FieldError[];
}

function config(kind: string, differences: Differences = {}): KindDefinition<Conditioned> {
  const { plural = `${kind.toLowerCase()}s`, shortNames, columns = [nameColumn, ageColumn], validate } = differences;
  const only = 'name' in differences ? differences.name : CONFIG_NAME;
  const rules = {
    validateCreate: ({ metadata }: Conditioned): FieldError[] =>
      only === undefined || metadata?.name === only
        ? []
        : [fieldError.invalid('metadata.name', metadata?.name ?? '', `must be ${only}`)],
    validate: (object: Conditioned, old?: Conditioned): FieldError[] => [
      ...validateSettings(kind, object.spec, old?.spec),
      ...(validate?.(object) ?? []),
    ],
  };
  const { strategy, statusStrategy } = specStatusStrategies<Conditioned>(rules);
  return {
    group: CONFIG_GROUP,
    version: 'v1',
    kind,
    plural,
    singular: kind.toLowerCase(),
    listKind: `${kind}List`,
    namespaced: false,
    ...(shortNames === undefined ? {} : { shortNames }),
    verbs: ALL_VERBS,
    schemaName: `com.github.openshift.api.config.v1.${kind}`,
    returnsDeleted: 'undocumented',
    storagePrefix: `${CONFIG_GROUP}/${plural}`,
    // The Build kind has no status.
    ...(kind === 'Build' ? { strategy: rules } : { strategy, statusStrategy }),
    columns,
  };
}

const conditionOf = ({ status }: Conditioned, type: string): Partial<OperatorCondition> | undefined =>
  status?.conditions?.find((each) => each.type === type);

const statusColumn = (type: string): Column<Conditioned> =>
  column(type, `Whether it is ${type.toLowerCase()}.`, (object) => conditionOf(object, type)?.status ?? '');

const sinceColumn = (type: string): Column<Conditioned> =>
  column('Since', 'Time since the last change of the condition.', (object, nowMs) => {
    const at = conditionOf(object, type)?.lastTransitionTime;
    return at === undefined ? '' : since(at, nowMs);
  });

/**
 * Message of Available if its status is not True. Otherwise the message of Degraded or Progressing if one of them is
 * True; empty if neither is.
 */
const messageColumn: Column<Conditioned> = column('Message', 'Message of the condition.', (object) => {
  const available = conditionOf(object, 'Available');
  if (available !== undefined && available.status !== 'True') return available.message ?? '';
  const shown = ['Degraded', 'Progressing'].map((type) => conditionOf(object, type));
  return shown.find((each) => each?.status === 'True')?.message ?? '';
});

export const clusterOperators = config('ClusterOperator', {
  name: undefined,
  shortNames: ['co'],
  columns: [
    nameColumn,
    column<Conditioned>(
      'Version',
      'The version of the operator.',
      ({ status }) => status?.versions?.find(({ name }) => name === 'operator')?.version ?? '',
    ),
    statusColumn('Available'),
    statusColumn('Progressing'),
    statusColumn('Degraded'),
    sinceColumn('Available'),
    messageColumn,
  ],
});

export const clusterVersions = config('ClusterVersion', {
  name: 'version',
  columns: [
    nameColumn,
    column<Conditioned>(
      'Version',
      'The last completed version.',
      ({ status }) => status?.history?.find(({ state }) => state === 'Completed')?.version ?? '',
    ),
    statusColumn('Available'),
    statusColumn('Progressing'),
    sinceColumn('Progressing'),
    column<Conditioned>(
      'Status',
      'State of the update.',
      (object) => conditionOf(object, 'Progressing')?.message ?? '',
    ),
  ],
});

/** Rejects control characters in the message for project requests, because clients print the message in a terminal. */
function validateProject({ spec }: Conditioned): FieldError[] {
  const { projectRequestMessage: message = '' } = (spec ?? {}) as { projectRequestMessage?: string };
  const isPlain = [...message].every((each) => each >= ' ' || each === '\n' || each === '\t');
  return isPlain
    ? []
    : [fieldError.invalid('spec.projectRequestMessage', message, 'must not contain control characters; remove them')];
}

export const schedulers = config('Scheduler');

export const configKinds: readonly KindDefinition[] = [
  config('APIServer'),
  config('Authentication'),
  config('Build'),
  clusterOperators,
  clusterVersions,
  config('Console'),
  config('DNS', { plural: 'dnses' }),
  config('FeatureGate'),
  config('Image'),
  config('Infrastructure'),
  config('Ingress', { plural: 'ingresses' }),
  config('Network'),
  config('OAuth'),
  config('OperatorHub'),
  config('Project', { validate: validateProject }),
  config('Proxy', { plural: 'proxies' }),
  schedulers,
];
