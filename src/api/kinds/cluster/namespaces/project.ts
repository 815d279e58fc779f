/**
 * The Project kind: namespaces as OpenShift presents them to users. Source: openshift/api project/v1; `oc get
 * projects`.
 */
import type { Namespace } from '../../../generated/core/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { column, nameColumn } from '../../../printing/columns.ts';
import type { KindAlias } from '../../../registry/definition.ts';

const DISPLAY_NAME = 'openshift.io/display-name';
const DESCRIPTION = 'openshift.io/description';
const API_VERSION = 'project.openshift.io/v1';

/**
 * Project administrators may only change display name and description. Other labels and annotations can affect the
 * security of pods, so they require access to the namespace. Source: openshift/openshift-apiserver
 * pkg/project/apis/project/validation.
 */
export function validateProjectUpdate(
  apiVersion: string,
  project: Namespace,
  old: Namespace | undefined,
): FieldError[] {
  if (apiVersion !== API_VERSION || old === undefined) return [];
  return (['annotations', 'labels'] as const).flatMap((field) => {
    const [now, before] = [project.metadata?.[field] ?? {}, old.metadata?.[field] ?? {}];
    return [...new Set([...Object.keys(before), ...Object.keys(now)])]
      .filter(
        (key) => now[key] !== before[key] && (field === 'labels' || (key !== DISPLAY_NAME && key !== DESCRIPTION)),
      )
      .map((key) => {
        const path = `metadata.${field}[${key}]`;
        return fieldError.invalid(path, now[key] ?? '', 'field is immutable, try updating the namespace');
      });
  });
}

export const project: KindAlias<Namespace> = {
  group: 'project.openshift.io',
  version: 'v1',
  onlyReadable: true,
  names: {
    kind: 'Project',
    plural: 'projects',
    singular: 'project',
    listKind: 'ProjectList',
    verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
    schemaName: 'com.github.openshift.api.project.v1.Project',
    columns: [
      nameColumn,
      column<Namespace>(
        'Display Name',
        'The display name.',
        ({ metadata }) => metadata?.annotations?.[DISPLAY_NAME] ?? '',
      ),
      column<Namespace>('Status', 'Active or Terminating.', ({ status }) => status?.phase ?? ''),
    ],
  },
  convertTo: (object) => object as Namespace,
  convertFrom: (namespace) => namespace,
};
