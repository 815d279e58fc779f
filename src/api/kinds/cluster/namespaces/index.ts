/** Namespaces. Source: k8s.io/kubernetes/pkg/registry/core/namespace. */

import { qualifiedNameErrors } from '../../../../base/names.ts';
import type { Namespace } from '../../../generated/core/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet } from '../../../meta/validation.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, metadataOf, restorePart, specStatusStrategies } from '../../../registry/strategies.ts';
import { project, validateProjectUpdate } from './project.ts';

const NAME_LABEL = 'kubernetes.io/metadata.name';
const FINALIZER = 'kubernetes';
const STANDARD_FINALIZERS: readonly string[] = [FINALIZER, 'orphan', 'foregroundDeletion'];

const { strategy, statusStrategy } = specStatusStrategies<Namespace>({
  generations: false,
  initialStatus: () => ({ phase: 'Active' }),
  prepareForCreate(namespace) {
    namespace.spec ??= {};
    const finalizers = namespace.spec.finalizers ?? [];
    if (!finalizers.includes(FINALIZER)) namespace.spec.finalizers = [...finalizers, FINALIZER];
  },
  prepareForUpdate(namespace, old) {
    // Finalizers can only be changed through the finalize subresource.
    restorePart(namespace, old, 'spec');
  },
  validate: (namespace) => validateFinalizers(namespace),
  validateStatusUpdate(namespace) {
    const phase = namespace.status?.phase;
    if (namespace.metadata?.deletionTimestamp === undefined) {
      return phase === 'Active'
        ? []
        : [fieldError.invalid('status.Phase', phase ?? '', "may only be 'Active' if `deletionTimestamp` is empty")];
    }
    return phase === 'Terminating'
      ? []
      : [
          fieldError.invalid(
            'status.Phase',
            phase ?? '',
            "may only be 'Terminating' if `deletionTimestamp` is not empty",
          ),
        ];
  },
});

function validateFinalizers(namespace: Namespace): FieldError[] {
  const at = 'spec.finalizers';
  return (namespace.spec?.finalizers ?? []).flatMap((finalizer) => {
    const errors = qualifiedNameErrors(finalizer).map((message) => fieldError.invalid(at, finalizer, message));
    if (errors.length > 0 || finalizer.includes('/') || STANDARD_FINALIZERS.includes(finalizer)) return errors;
    const unknown = 'name is neither a standard finalizer name nor is it fully qualified';
    return [fieldError.invalid(at, finalizer, unknown)];
  });
}

export const namespaces: KindDefinition<Namespace> = {
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  singular: 'namespace',
  listKind: 'NamespaceList',
  namespaced: false,
  shortNames: ['ns'],
  verbs: ALL_VERBS.filter((verb) => verb !== 'deletecollection'),
  schemaName: 'io.k8s.api.core.v1.Namespace',
  skeleton: { spec: {}, status: {} },
  storagePrefix: 'namespaces',
  nameRule: 'dns1123Label',
  aliases: [project],
  setDefaults(namespace) {
    namespace.status ??= {};
    if (!isSet(namespace.status.phase)) namespace.status.phase = 'Active';
    const name = namespace.metadata?.name;
    if (name === undefined || name === '') return;
    const metadata = metadataOf(namespace);
    metadata.labels ??= {};
    metadata.labels[NAME_LABEL] = name;
  },
  strategy: { ...strategy, validateVersion: validateProjectUpdate },
  statusStrategy,
  returnsDeleted: 'undocumented',
  finalization: {
    isHeld: (namespace) => (namespace.spec?.finalizers ?? []).length > 0,
    mark(namespace) {
      namespace.status = { ...namespace.status, phase: 'Terminating' };
      delete metadataOf(namespace).deletionGracePeriodSeconds;
    },
  },
  subresourceStrategies: {
    finalize: {
      prepareForUpdate(namespace, old) {
        restorePart(namespace, old, 'status');
      },
      validateUpdate: (namespace) => validateFinalizers(namespace),
    },
  },
  columns: [
    nameColumn,
    column<Namespace>('Status', 'The status of the namespace.', (namespace) => namespace.status?.phase ?? ''),
    ageColumn,
  ],
  fieldSelectors: { 'status.phase': (namespace) => namespace.status?.phase ?? '' },
  extraSubresources: [{ name: 'finalize', kind: 'Namespace', verbs: ['update'] }],
};
