/** Cluster service versions. Source: operator-framework/api pkg/operators/v1alpha1 and pkg/validation. */

import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';
import { isSet } from '../../../../api/meta/validation.ts';
import { column, nameColumn } from '../../../../api/printing/columns.ts';
import type { KindDefinition } from '../../../../api/registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../../api/registry/strategies.ts';
import { validateNameRule, validateOneOf } from '../../../../api/validation/scalars.ts';
import { dns1123LabelErrors, dns1123SubdomainErrors } from '../../../../base/names.ts';
import { type ClusterServiceVersion, OLM_GROUP, type WebhookDescription } from './types.ts';

const INSTALL_MODES = ['OwnNamespace', 'SingleNamespace', 'MultiNamespace', 'AllNamespaces'];
const WEBHOOK_TYPES = ['ValidatingAdmissionWebhook', 'MutatingAdmissionWebhook', 'ConversionWebhook'];
/**
 * Pattern for `1.2.3` with an optional `v` and suffixes. The operator lifecycle manager parses versions more strictly.
 */
const VERSION = /^v?\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?$/;
const MAX_DEPLOYMENTS = 32;

function validateWebhook(webhook: WebhookDescription, at: string): FieldError[] {
  const errors = [
    ...validateNameRule(webhook.generateName ?? '', dns1123SubdomainErrors, `${at}.generateName`),
    ...validateOneOf(webhook.type, WEBHOOK_TYPES, `${at}.type`),
  ];
  const { containerPort } = webhook;
  if (containerPort !== undefined && (containerPort < 1 || containerPort > 65_535))
    errors.push(fieldError.invalid(`${at}.containerPort`, containerPort, 'must be between 1 and 65535, inclusive'));
  if (webhook.type === 'ConversionWebhook' && (webhook.conversionCRDs ?? []).length === 0)
    errors.push(fieldError.required(`${at}.conversionCRDs`, 'a conversion webhook names what it converts'));
  return errors;
}

function validate({ spec = {} }: ClusterServiceVersion): FieldError[] {
  const errors: FieldError[] = [];
  if (isSet(spec.version) && !VERSION.test(spec.version))
    errors.push(fieldError.invalid('spec.version', spec.version, 'must be a semantic version'));
  if (isSet(spec.minKubeVersion) && !VERSION.test(spec.minKubeVersion))
    errors.push(fieldError.invalid('spec.minKubeVersion', spec.minKubeVersion, 'must be a semantic version'));
  if (spec.cleanup?.enabled === true) errors.push(fieldError.notSupported('spec.cleanup.enabled', 'true', ['false']));
  for (const [index, { type }] of (spec.installModes ?? []).entries())
    errors.push(...validateOneOf(type, INSTALL_MODES, `spec.installModes[${index}].type`));
  const deployments = spec.install?.spec?.deployments ?? [];
  const at = 'spec.install.spec.deployments';
  if (deployments.length > MAX_DEPLOYMENTS) errors.push(fieldError.tooMany(at, deployments.length, MAX_DEPLOYMENTS));
  const names = new Set<string>();
  for (const [index, { name = '' }] of deployments.entries()) {
    errors.push(...validateNameRule(name, dns1123SubdomainErrors, `${at}[${index}].name`));
    if (names.has(name)) errors.push(fieldError.duplicate(`${at}[${index}].name`, name));
    names.add(name);
  }
  for (const list of ['permissions', 'clusterPermissions'] as const)
    for (const [index, { serviceAccountName = '' }] of (spec.install?.spec?.[list] ?? []).entries())
      errors.push(
        ...validateNameRule(
          serviceAccountName,
          dns1123SubdomainErrors,
          `spec.install.spec.${list}[${index}].serviceAccountName`,
        ),
      );
  for (const [index, webhook] of (spec.webhookdefinitions ?? []).entries())
    errors.push(...validateWebhook(webhook, `spec.webhookdefinitions[${index}]`));
  for (const [index, { group = '', version = '' }] of (spec.apiservicedefinitions?.owned ?? []).entries()) {
    const path = `spec.apiservicedefinitions.owned[${index}]`;
    errors.push(...validateNameRule(group, dns1123SubdomainErrors, `${path}.group`));
    errors.push(...validateNameRule(version, dns1123LabelErrors, `${path}.version`));
  }
  return errors;
}

const strategies = specStatusStrategies<ClusterServiceVersion>({ validate });

export const clusterServiceVersions: KindDefinition<ClusterServiceVersion> = {
  group: OLM_GROUP,
  version: 'v1alpha1',
  kind: 'ClusterServiceVersion',
  plural: 'clusterserviceversions',
  singular: 'clusterserviceversion',
  listKind: 'ClusterServiceVersionList',
  namespaced: true,
  shortNames: ['csv', 'csvs'],
  categories: ['olm'],
  verbs: ALL_VERBS,
  schemaName: 'com.github.operator-framework.api.pkg.operators.v1alpha1.ClusterServiceVersion',
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/clusterserviceversions',
  ...strategies,
  columns: [
    nameColumn,
    column<ClusterServiceVersion>('Display', 'The name of the CSV.', ({ spec }) => spec?.displayName ?? ''),
    column<ClusterServiceVersion>('Version', 'The version of the CSV.', ({ spec }) => spec?.version ?? ''),
    column<ClusterServiceVersion>(
      'Replaces',
      'The name of a CSV that this one replaces.',
      ({ spec }) => spec?.replaces ?? '',
    ),
    column<ClusterServiceVersion>('Phase', 'How far the installation is.', ({ status }) => status?.phase ?? ''),
  ],
};
