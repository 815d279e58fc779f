/**
 * Flow schemas. Source: k8s.io/kubernetes/pkg/registry/flowcontrol/flowschema, pkg/apis/flowcontrol/{v1,validation}.
 */
import type { FlowSchema } from '../../../generated/flowcontrol/v1.ts';
import { ageColumn, column, NONE, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, METADATA_AND_SPEC, restoreMetadata, specStatusStrategies } from '../../../registry/strategies.ts';
import { sameShape } from '../../../registry/versions.ts';
import { validateFlowSchema, validateFlowStatus } from './validation.ts';

const DEFAULT_PRECEDENCE = 1000;

const { strategy, statusStrategy } = specStatusStrategies<FlowSchema>({
  prepareForStatusUpdate: restoreMetadata,
  validate: validateFlowSchema,
  validateStatusUpdate: validateFlowStatus,
});

function missingText(schema: FlowSchema): string {
  return schema.status?.conditions?.find(({ type }) => type === 'Dangling')?.status ?? '?';
}

export const flowSchemas: KindDefinition<FlowSchema> = {
  group: 'flowcontrol.apiserver.k8s.io',
  version: 'v1',
  kind: 'FlowSchema',
  plural: 'flowschemas',
  singular: 'flowschema',
  listKind: 'FlowSchemaList',
  namespaced: false,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.flowcontrol.v1.FlowSchema',
  skeleton: { spec: { priorityLevelConfiguration: {} }, status: {} },
  storagePrefix: 'flowschemas',
  nameRule: 'dns1123Subdomain',
  aliases: [
    sameShape('flowcontrol.apiserver.k8s.io', 'v1beta3', '1.29', '1.32'),
    sameShape('flowcontrol.apiserver.k8s.io', 'v1beta2', '1.26', '1.29'),
    sameShape('flowcontrol.apiserver.k8s.io', 'v1beta1', '1.23', '1.26'),
  ],
  setDefaults(schema) {
    schema.spec ??= { priorityLevelConfiguration: { name: '' } };
    if ((schema.spec.matchingPrecedence ?? 0) === 0) schema.spec.matchingPrecedence = DEFAULT_PRECEDENCE;
  },
  strategy,
  statusStrategy,
  statusResetFields: METADATA_AND_SPEC,
  columns: [
    nameColumn,
    column<FlowSchema>(
      'PriorityLevel',
      'The priority level of the requests.',
      (schema) => schema.spec?.priorityLevelConfiguration?.name ?? '',
    ),
    column<FlowSchema>(
      'MatchingPrecedence',
      'Precedence; flow schemas with lower values are matched first.',
      (schema) => schema.spec?.matchingPrecedence ?? 0,
    ),
    column<FlowSchema>(
      'DistinguisherMethod',
      'Method that divides requests into flows.',
      (schema) => schema.spec?.distinguisherMethod?.type ?? NONE,
    ),
    ageColumn,
    column<FlowSchema>('MissingPL', 'Whether the priority level does not exist.', missingText),
  ],
};
