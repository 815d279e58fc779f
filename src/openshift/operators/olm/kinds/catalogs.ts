/**
 * Catalog sources, subscriptions and install plans. Source: operator-framework/api pkg/operators/v1alpha1, and the
 * columns of its CustomResourceDefinitions.
 */

import { semanticEqual } from '../../../../api/meta/equality.ts';
import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';
import { isSet } from '../../../../api/meta/validation.ts';
import { ageColumn, column, nameColumn } from '../../../../api/printing/columns.ts';
import type { KindDefinition } from '../../../../api/registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../../api/registry/strategies.ts';
import { validateNameRule, validateOneOf } from '../../../../api/validation/scalars.ts';
import { dns1123SubdomainErrors } from '../../../../base/names.ts';
import { parseDuration } from '../../../../base/time/duration.ts';
import { type CatalogSource, type InstallPlan, OLM_GROUP, type Subscription } from './types.ts';

const SCHEMA = 'com.github.operator-framework.api.pkg.operators.v1alpha1';
const SOURCE_TYPES = ['grpc', 'configmap', 'internal'];
const APPROVALS = ['Automatic', 'Manual'];
/** Shortest poll interval. Each poll reads the whole catalog, which can have many megabytes. */
const MIN_POLL_MS = 1_000;

function validateCatalog({ spec = {} }: CatalogSource): FieldError[] {
  const errors = validateOneOf(spec.sourceType, SOURCE_TYPES, 'spec.sourceType');
  if (errors.length === 0 && spec.sourceType !== 'grpc' && !isSet(spec.configMap))
    errors.push(fieldError.required('spec.configMap', `must be set for sourceType ${spec.sourceType}`));
  if (spec.sourceType === 'grpc' && !isSet(spec.image) && !isSet(spec.address))
    errors.push(fieldError.required('spec.image', 'image or address must be set for sourceType grpc'));
  const interval = spec.updateStrategy?.registryPoll?.interval;
  const ms = isSet(interval) ? parseDuration(interval) : MIN_POLL_MS;
  if (ms === undefined || ms < MIN_POLL_MS)
    errors.push(
      fieldError.invalid(
        'spec.updateStrategy.registryPoll.interval',
        interval ?? '',
        'must be a duration of at least 1s, such as 30m',
      ),
    );
  return errors;
}

const catalog = specStatusStrategies<CatalogSource>({ validate: validateCatalog });

export const catalogSources: KindDefinition<CatalogSource> = {
  group: OLM_GROUP,
  version: 'v1alpha1',
  kind: 'CatalogSource',
  plural: 'catalogsources',
  singular: 'catalogsource',
  listKind: 'CatalogSourceList',
  namespaced: true,
  shortNames: ['catsrc'],
  categories: ['olm'],
  verbs: ALL_VERBS,
  schemaName: `${SCHEMA}.CatalogSource`,
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/catalogsources',
  ...catalog,
  columns: [
    nameColumn,
    column<CatalogSource>('Display', 'The pretty name of the catalog.', ({ spec }) => spec?.displayName ?? ''),
    column<CatalogSource>('Type', 'The type of the catalog.', ({ spec }) => spec?.sourceType ?? ''),
    column<CatalogSource>('Publisher', 'The publisher of the catalog.', ({ spec }) => spec?.publisher ?? ''),
    ageColumn,
  ],
};

const subscription = specStatusStrategies<Subscription>({
  validate: ({ spec = {} }) => [
    ...validateNameRule(spec.name ?? '', dns1123SubdomainErrors, 'spec.name'),
    ...validateNameRule(spec.source ?? '', dns1123SubdomainErrors, 'spec.source'),
    ...validateNameRule(spec.sourceNamespace ?? '', dns1123SubdomainErrors, 'spec.sourceNamespace'),
    ...(isSet(spec.installPlanApproval)
      ? validateOneOf(spec.installPlanApproval, APPROVALS, 'spec.installPlanApproval')
      : []),
  ],
});

export const subscriptions: KindDefinition<Subscription> = {
  group: OLM_GROUP,
  version: 'v1alpha1',
  kind: 'Subscription',
  plural: 'subscriptions',
  singular: 'subscription',
  listKind: 'SubscriptionList',
  namespaced: true,
  shortNames: ['sub', 'subs'],
  categories: ['olm'],
  verbs: ALL_VERBS,
  schemaName: `${SCHEMA}.Subscription`,
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/subscriptions',
  ...subscription,
  columns: [
    nameColumn,
    column<Subscription>('Package', 'The package subscribed to.', ({ spec }) => spec?.name ?? ''),
    column<Subscription>('Source', 'The catalog source for the specified package.', ({ spec }) => spec?.source ?? ''),
    column<Subscription>('Channel', 'The channel of updates to subscribe to.', ({ spec }) => spec?.channel ?? ''),
  ],
};

const plan = specStatusStrategies<InstallPlan>({
  validate: ({ spec = {} }) => [
    ...validateOneOf(spec.approval, APPROVALS, 'spec.approval'),
    ...((spec.clusterServiceVersionNames ?? []).length === 0
      ? [fieldError.required('spec.clusterServiceVersionNames', 'a plan installs at least one version')]
      : []),
  ],
  validateUpdate: ({ spec = {} }, { spec: old = {} }) => [
    ...(semanticEqual(spec.clusterServiceVersionNames, old.clusterServiceVersionNames)
      ? []
      : [fieldError.forbidden('spec.clusterServiceVersionNames', 'field is immutable')]),
    ...(old.approved === true && spec.approved !== true
      ? [fieldError.forbidden('spec.approved', 'an approval cannot be withdrawn; delete the install plan')]
      : []),
  ],
});

export const installPlans: KindDefinition<InstallPlan> = {
  group: OLM_GROUP,
  version: 'v1alpha1',
  kind: 'InstallPlan',
  plural: 'installplans',
  singular: 'installplan',
  listKind: 'InstallPlanList',
  namespaced: true,
  shortNames: ['ip'],
  categories: ['olm'],
  verbs: ALL_VERBS,
  schemaName: `${SCHEMA}.InstallPlan`,
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/installplans',
  ...plan,
  columns: [
    nameColumn,
    column<InstallPlan>(
      'CSV',
      'The first CSV in the list of clusterServiceVersionNames.',
      ({ spec }) => spec?.clusterServiceVersionNames?.[0] ?? '',
    ),
    column<InstallPlan>('Approval', 'The approval mode.', ({ spec }) => spec?.approval ?? ''),
    column<InstallPlan>('Approved', 'Whether the plan is approved.', ({ spec }) => spec?.approved === true, {
      type: 'boolean',
    }),
    // Upstream does not have this column. It helps administrators who do not use a console.
    column<InstallPlan>('Phase', 'How far the plan is.', ({ status }) => status?.phase ?? '', { wide: true }),
  ],
};
