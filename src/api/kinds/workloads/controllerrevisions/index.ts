/** Controller revisions. Source: k8s.io/kubernetes/pkg/registry/apps/controllerrevision. */
import type { ControllerRevision } from '../../../generated/apps/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { validateImmutable } from '../../../meta/validation.ts';
import { ageColumn, column, NONE, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS } from '../../../registry/strategies.ts';
import { validateNonNegative } from '../../../validation/scalars.ts';

function validate(revision: ControllerRevision): FieldError[] {
  const errors = validateNonNegative(revision.revision, 'revision');
  if (revision.data === undefined) errors.push(fieldError.required('data', 'data is mandatory'));
  return errors;
}

function controllerText(revision: ControllerRevision): string {
  const owner = revision.metadata?.ownerReferences?.find((each) => each.controller === true);
  if (owner === undefined) return NONE;
  const group = owner.apiVersion.includes('/') ? `.${owner.apiVersion.split('/')[0] ?? ''}` : '';
  return `${owner.kind.toLowerCase()}${group}/${owner.name}`;
}

export const controllerRevisions: KindDefinition<ControllerRevision> = {
  group: 'apps',
  version: 'v1',
  kind: 'ControllerRevision',
  plural: 'controllerrevisions',
  singular: 'controllerrevision',
  listKind: 'ControllerRevisionList',
  namespaced: true,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.apps.v1.ControllerRevision',
  skeleton: { data: null },
  storagePrefix: 'controllerrevisions',
  strategy: {
    validate,
    validateUpdate: (revision, old) => [...validate(revision), ...validateImmutable(revision.data, old.data, 'data')],
  },
  columns: [
    nameColumn,
    column<ControllerRevision>('Controller', 'The workload that the revision belongs to.', controllerText),
    column<ControllerRevision>('Revision', 'The number of the revision.', (each) => each.revision ?? 0),
    ageColumn,
  ],
};
