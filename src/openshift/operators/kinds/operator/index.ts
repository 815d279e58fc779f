/**
 * Kinds of operator.openshift.io, which configure the operators of cluster components. Each kind has one object.
 * Source: openshift/api operator/v1 of release 4.10; MachineConfiguration of release 4.17.
 */
import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';
import { ageColumn, column, nameColumn } from '../../../../api/printing/columns.ts';
import type { Column, KindDefinition } from '../../../../api/registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../../api/registry/strategies.ts';
import { validateMachineConfiguration } from './disruption.ts';
import type { OperatorObject, StaticPodOperator } from './types.ts';
import { validateOperator, validateReported, validateStaticPodOperator } from './validation.ts';

export type * from './types.ts';

export const OPERATOR_GROUP = 'operator.openshift.io';

interface Differences {
  readonly plural?: string;
  /** The only allowed name of an object (default: `cluster`). If set to undefined, any name is allowed. */
  readonly name?: string | undefined;
  readonly namespaced?: true;
  readonly columns?: readonly Column<OperatorObject>[];
  readonly validate?: (object: OperatorObject) => FieldError[];
  readonly validateUpdate?: (object: OperatorObject, old: OperatorObject) => FieldError[];
}

function operator(kind: string, differences: Differences = {}): KindDefinition<OperatorObject> {
  const { plural = `${kind.toLowerCase()}s`, columns = [nameColumn, ageColumn], validateUpdate } = differences;
  const only = 'name' in differences ? differences.name : 'cluster';
  const { strategy, statusStrategy } = specStatusStrategies<OperatorObject>({
    validateCreate: ({ metadata }) =>
      only === undefined || metadata?.name === only
        ? []
        : [fieldError.invalid('metadata.name', metadata?.name ?? '', `must be ${only}`)],
    validate: differences.validate ?? ((object) => validateOperator(object)),
    ...(validateUpdate === undefined ? {} : { validateUpdate }),
  });
  return {
    group: OPERATOR_GROUP,
    version: 'v1',
    kind,
    plural,
    singular: kind.toLowerCase(),
    listKind: `${kind}List`,
    namespaced: differences.namespaced === true,
    verbs: ALL_VERBS,
    schemaName: `com.github.openshift.api.operator.v1.${kind}`,
    returnsDeleted: 'undocumented',
    storagePrefix: `${OPERATOR_GROUP}/${plural}`,
    strategy,
    statusStrategy,
    columns,
  };
}

const REVISION_COLUMNS: readonly Column<StaticPodOperator>[] = [
  nameColumn,
  column<StaticPodOperator>('Revision', 'The newest revision.', ({ status }) => status?.latestAvailableRevision ?? 0),
  column<StaticPodOperator>('Nodes', 'Masters that run the newest revision, of all masters.', ({ status }) => {
    const nodes = status?.nodeStatuses ?? [];
    const latest = nodes.filter(({ currentRevision }) => currentRevision === status?.latestAvailableRevision);
    return `${latest.length}/${nodes.length}`;
  }),
  column<StaticPodOperator>(
    'Message',
    'Current progress or last failure.',
    ({ status }) =>
      status?.conditions?.find(
        (each) => each.status === 'True' && (each.type.endsWith('Degraded') || each.type.endsWith('Progressing')),
      )?.message ?? '',
    { wide: true },
  ),
  ageColumn,
];

/** Kind of a static pod operator. `overridable`: field of unsupportedConfigOverrides with the component's flags. */
const staticPod = (kind: string, overridable?: string) =>
  operator(kind, {
    columns: REVISION_COLUMNS as readonly Column<OperatorObject>[],
    validate: validateStaticPodOperator(overridable, kind !== 'KubeScheduler'),
  });

const reported = (kind: string, differences: Differences = {}) =>
  operator(kind, { validateUpdate: validateReported, ...differences });

export const operatorKinds: readonly KindDefinition[] = [
  reported('Authentication'),
  reported('Config'),
  reported('DNS', { plural: 'dnses', name: 'default' }),
  staticPod('Etcd'),
  reported('IngressController', { name: undefined, namespaced: true }),
  staticPod('KubeAPIServer', 'apiServerArguments'),
  staticPod('KubeControllerManager'),
  staticPod('KubeScheduler'),
  operator('MachineConfiguration', { validate: validateMachineConfiguration }),
  reported('Network'),
  reported('Storage'),
];
