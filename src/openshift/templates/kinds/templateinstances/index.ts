/** Template instances. Source: openshift/openshift-apiserver pkg/template/apiserver/registry/templateinstance. */

import { semanticEqual } from '../../../../api/meta/equality.ts';
import { fieldError } from '../../../../api/meta/field-error.ts';
import type { KubeObject } from '../../../../api/meta/object.ts';
import { column, nameColumn } from '../../../../api/printing/columns.ts';
import type { KindDefinition } from '../../../../api/registry/definition.ts';
import { ALL_VERBS, metadataOf, specStatusStrategies } from '../../../../api/registry/strategies.ts';
import { type Template, validateParameters } from '../templates/index.ts';

export interface TemplateInstanceRequester {
  username?: string;
  uid?: string;
  groups?: string[];
  extra?: Record<string, string[]>;
}

export interface TemplateInstanceCondition {
  type: 'Ready' | 'InstantiateFailure';
  status: string;
  lastTransitionTime: string;
  reason: string;
  message: string;
}

export interface ObjectRef {
  apiVersion?: string;
  kind?: string;
  namespace?: string;
  name?: string;
  uid?: string;
}

export interface TemplateInstance extends KubeObject {
  spec?: { template?: Template; secret?: { name?: string }; requester?: TemplateInstanceRequester };
  status?: { conditions?: TemplateInstanceCondition[]; objects?: { ref?: ObjectRef }[] };
}

/** Finalizer that keeps a deleted instance until the objects that it has created are deleted. */
export const INSTANCE_FINALIZER = 'template.openshift.io/finalizer';

const { strategy, statusStrategy } = specStatusStrategies<TemplateInstance>({
  generations: false,
  prepareForCreate(instance, { user }) {
    instance.spec = {
      ...instance.spec,
      // Objects are created with the permissions of the requester. Therefore the requester is always the authenticated
      // user, not a value of the client.
      requester: {
        username: user.name,
        ...(user.uid === undefined ? {} : { uid: user.uid }),
        groups: [...user.groups],
        ...(user.extra === undefined
          ? {}
          : { extra: Object.fromEntries(Object.entries(user.extra).map(([key, values]) => [key, [...values]])) }),
      },
    };
    const metadata = metadataOf(instance);
    metadata.finalizers = [...new Set([...(metadata.finalizers ?? []), INSTANCE_FINALIZER])];
  },
  validate: ({ spec }) => [
    ...(spec?.template === undefined ? [fieldError.required('spec.template')] : []),
    ...(spec?.secret !== undefined && !spec.secret.name ? [fieldError.required('spec.secret.name')] : []),
    ...validateParameters(spec?.template?.parameters ?? [], 'spec.template.parameters'),
  ],
  validateUpdate: (instance, old) =>
    semanticEqual(instance.spec, old.spec) ? [] : [fieldError.forbidden('spec', 'field is immutable')],
});

const stateOf = ({ status }: TemplateInstance): string =>
  (status?.conditions ?? []).find((each) => each.status === 'True')?.type ?? 'Instantiating';

export const templateInstances: KindDefinition<TemplateInstance> = {
  group: 'template.openshift.io',
  version: 'v1',
  kind: 'TemplateInstance',
  plural: 'templateinstances',
  singular: 'templateinstance',
  listKind: 'TemplateInstanceList',
  namespaced: true,
  verbs: ALL_VERBS,
  schemaName: 'com.github.openshift.api.template.v1.TemplateInstance',
  skeleton: { spec: {}, status: {} },
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/templateinstances',
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    column<TemplateInstance>('Template', 'Name of the template.', ({ spec }) => spec?.template?.metadata?.name ?? ''),
    column<TemplateInstance>('State', 'Ready or InstantiateFailure.', stateOf),
  ],
};

export const brokerTemplateInstances: KindDefinition = {
  group: 'template.openshift.io',
  version: 'v1',
  kind: 'BrokerTemplateInstance',
  plural: 'brokertemplateinstances',
  singular: 'brokertemplateinstance',
  listKind: 'BrokerTemplateInstanceList',
  namespaced: false,
  verbs: ALL_VERBS,
  schemaName: 'com.github.openshift.api.template.v1.BrokerTemplateInstance',
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/brokertemplateinstances',
  strategy: {},
  columns: [nameColumn],
};
