/** Ingress classes. Source: k8s.io/kubernetes/pkg/registry/networking/ingressclass, pkg/apis/networking/validation. */

import { dns1123LabelErrors, dns1123SubdomainErrors, pathSegmentErrors } from '../../../../base/names.ts';
import type { IngressClass } from '../../../generated/networking/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet, validateImmutable } from '../../../meta/validation.ts';
import { ageColumn, column, NONE, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, bumpGeneration, metadataOf } from '../../../registry/strategies.ts';
import { sameShape } from '../../../registry/versions.ts';
import { validateDomainPath } from '../../../validation/domain-path.ts';
import { validateNameRule } from '../../../validation/scalars.ts';

const MAX_CONTROLLER = 250;

function validate(each: IngressClass): FieldError[] {
  const controller = each.spec?.controller ?? '';
  const errors: FieldError[] = [];
  if (controller.length > MAX_CONTROLLER) errors.push(fieldError.tooLong('spec.controller', MAX_CONTROLLER));
  errors.push(...validateDomainPath(controller, 'spec.controller'));
  return [...errors, ...validateParameters(each)];
}

function validateParameters(each: IngressClass): FieldError[] {
  const given = each.spec?.parameters;
  if (given === undefined) return [];
  const at = 'spec.parameters';
  const errors: FieldError[] = [];
  if (given.apiGroup !== undefined) {
    errors.push(...validateNameRule(given.apiGroup, dns1123SubdomainErrors, `${at}.apiGroup`));
  }
  for (const field of ['kind', 'name'] as const) {
    const value = given[field];
    if (!isSet(value)) errors.push(fieldError.required(`${at}.${field}`, `${field} is required`));
    else errors.push(...validateNameRule(value, pathSegmentErrors, `${at}.${field}`));
  }
  const { namespace, scope } = given;
  if (scope === undefined) errors.push(fieldError.required(`${at}.scope`));
  else if (scope === 'Namespace') {
    if (namespace === undefined) {
      errors.push(fieldError.required(`${at}.namespace`, "`parameters.scope` is set to 'Namespace'"));
    } else errors.push(...validateNameRule(namespace, dns1123LabelErrors, `${at}.namespace`));
  } else if (scope === 'Cluster') {
    if (namespace !== undefined) {
      errors.push(fieldError.forbidden(`${at}.namespace`, "`parameters.scope` is set to 'Cluster'"));
    }
  } else errors.push(fieldError.notSupported(`${at}.scope`, scope, ['Cluster', 'Namespace']));
  return errors;
}

function parametersText(each: IngressClass): string {
  const given = each.spec?.parameters;
  if (given === undefined) return NONE;
  return `${given.kind ?? ''}${given.apiGroup === undefined ? '' : `.${given.apiGroup}`}/${given.name ?? ''}`;
}

export const ingressClasses: KindDefinition<IngressClass> = {
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'IngressClass',
  plural: 'ingressclasses',
  singular: 'ingressclass',
  listKind: 'IngressClassList',
  namespaced: false,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.networking.v1.IngressClass',
  skeleton: { spec: {} },
  storagePrefix: 'ingressclasses',
  aliases: [sameShape('networking.k8s.io', 'v1beta1', '1.19', '1.22')],
  setDefaults(each) {
    if (each.spec?.parameters !== undefined) each.spec.parameters.scope ??= 'Cluster';
  },
  strategy: {
    prepareForCreate(each) {
      metadataOf(each).generation = 1;
    },
    prepareForUpdate: bumpGeneration,
    validate,
    validateUpdate: (each, old) => validateImmutable(each.spec?.controller, old.spec?.controller, 'spec.controller'),
  },
  columns: [
    nameColumn,
    column<IngressClass>('Controller', 'Controller of the class.', (each) => each.spec?.controller ?? ''),
    column<IngressClass>('Parameters', "The controller's own configuration.", parametersText),
    ageColumn,
  ],
};
