/** Custom resource definitions. Source: k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition. */
import { timestamp } from '../../../../base/time/timestamps.ts';
import type { CustomResourceDefinition } from '../../../generated/apiextensions/v1.ts';
import { createdAtColumn, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import {
  ALL_VERBS,
  bumpGeneration,
  keepGeneration,
  metadataOf,
  restoreMetadata,
  restorePart,
} from '../../../registry/strategies.ts';
import { setCondition } from './conditions.ts';
import { olderDefinition } from './v1beta1.ts';
import { protectedGroupErrors, validateDefinition, validateDefinitionUpdate } from './validation.ts';

/** Finalizer that keeps a deleted definition until its last custom resource is deleted. */
export const CLEANUP_FINALIZER = 'customresourcecleanup.apiextensions.k8s.io';

const WEBHOOK_PORT = 443;

function setDefaults(definition: CustomResourceDefinition): void {
  const { spec } = definition;
  if (spec === undefined) return;
  const { names } = spec;
  if (names !== undefined) {
    if ((names.singular ?? '') === '') names.singular = (names.kind ?? '').toLowerCase();
    if ((names.listKind ?? '') === '' && (names.kind ?? '') !== '') names.listKind = `${names.kind}List`;
  }
  spec.conversion ??= { strategy: 'None' };
  const service = spec.conversion.webhook?.clientConfig?.service;
  if (service !== undefined) service.port ??= WEBHOOK_PORT;
  if (spec.preserveUnknownFields === false) delete spec.preserveUnknownFields;
}

/** Adds the storage version to `status.storedVersions`. */
function noteStorageVersion(definition: CustomResourceDefinition): void {
  const storage = definition.spec?.versions?.find((each) => each.storage)?.name;
  definition.status ??= {};
  definition.status.storedVersions ??= [];
  if (storage !== undefined && !definition.status.storedVersions.includes(storage)) {
    definition.status.storedVersions.push(storage);
  }
}

function acceptedNames(definition: CustomResourceDefinition): void {
  definition.status ??= {};
  // Initial status until the naming controller accepts the names. As upstream, the empty fields are present.
  if (definition.status.conditions === undefined) Object.assign(definition.status, { conditions: null });
  definition.status.acceptedNames ??= { plural: '', kind: '' };
}

export const customResourceDefinitions: KindDefinition<CustomResourceDefinition> = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  singular: 'customresourcedefinition',
  listKind: 'CustomResourceDefinitionList',
  namespaced: false,
  shortNames: ['crd', 'crds'],
  categories: ['api-extensions'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition',
  skeleton: {
    spec: { names: {}, versions: null },
    status: { acceptedNames: {}, conditions: null, storedVersions: null },
  },
  storagePrefix: 'apiextensions.k8s.io/customresourcedefinitions',
  aliases: [olderDefinition],
  allowUnconditionalUpdate: false,
  setDefaults,
  prepareForDelete(definition, nowMs) {
    const metadata = metadataOf(definition);
    const finalizers = metadata.finalizers ?? [];
    if (!finalizers.includes(CLEANUP_FINALIZER)) metadata.finalizers = [...finalizers, CLEANUP_FINALIZER];
    setCondition(
      definition,
      {
        type: 'Terminating',
        status: 'True',
        reason: 'InstanceDeletionPending',
        message: 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon',
      },
      timestamp(nowMs),
    );
  },
  strategy: {
    prepareForCreate(definition) {
      metadataOf(definition).generation = 1;
      delete definition.status;
      noteStorageVersion(definition);
      acceptedNames(definition);
    },
    prepareForUpdate(definition, old) {
      restorePart(definition, old, 'status');
      noteStorageVersion(definition);
      bumpGeneration(definition, old);
    },
    validate: validateDefinition,
    validateUpdate: (definition, old) => [
      ...validateDefinitionUpdate(definition, old),
      // Earlier releases did not check the group, so the check does not apply to stored definitions that violate it.
      ...(protectedGroupErrors(old).length === 0 ? protectedGroupErrors(definition) : []),
    ],
    validateCreate: protectedGroupErrors,
  },
  statusStrategy: {
    prepareForUpdate(definition, old) {
      restorePart(definition, old, 'spec');
      restoreMetadata(definition, old);
      keepGeneration(definition, old);
    },
    validate: (definition) => validateDefinition(definition).filter((each) => each.field.startsWith('status.')),
  },
  columns: [nameColumn, createdAtColumn],
};
