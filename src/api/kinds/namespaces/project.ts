/** Projects: namespaces as OpenShift's users see them. Source: openshift/api project/v1; columns of `oc get projects`. */
import type { Namespace } from 'kubernetes-types/core/v1';
import { column, nameColumn } from '../../printing/columns.ts';
import type { KindAlias } from '../../registry/definition.ts';

const DISPLAY_NAME = 'openshift.io/display-name';

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
        'The name for people.',
        ({ metadata }) => metadata?.annotations?.[DISPLAY_NAME] ?? '',
      ),
      column<Namespace>('Status', 'Active or Terminating.', ({ status }) => status?.phase ?? ''),
    ],
  },
  convertTo: (object) => object as Namespace,
  convertFrom: (namespace) => namespace,
};
