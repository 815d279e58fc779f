/**
 * The APIService kind: which server serves an API group and version. Source:
 * k8s.io/kube-aggregator/pkg/{apis/apiregistration/validation,registry/apiservice}.
 */

import { dns1035LabelErrors, dns1123SubdomainErrors, pathSegmentErrors } from '../../../../base/names.ts';
import { timestamp } from '../../../../base/time/timestamps.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet } from '../../../meta/validation.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, METADATA_AND_SPEC, restoreMetadata, restorePart } from '../../../registry/strategies.ts';
import { sameShape } from '../../../registry/versions.ts';
import { validateNameRule } from '../../../validation/scalars.ts';
import {
  type APIService,
  type APIServiceSpec,
  availableCondition,
  DEFAULT_PORT,
  LOCAL_AVAILABLE,
  setAvailable,
} from './conditions.ts';

const MAX_GROUP_PRIORITY = 20_000;
const MAX_VERSION_PRIORITY = 1_000;
const STATUSES = ['True', 'False', 'Unknown'];

function validate(service: APIService): FieldError[] {
  const spec = service.spec ?? { groupPriorityMinimum: 0, versionPriority: 0 };
  const { group = '', version = '' } = spec;
  return [
    ...validateName(service.metadata?.name ?? '', `${version}.${group}`),
    ...(group === '' && version !== 'v1'
      ? [fieldError.required('spec.group', 'only v1 may have an empty group and it better be legacy kube')]
      : []),
    ...(group === '' ? [] : validateNameRule(group, dns1123SubdomainErrors, 'spec.group')),
    ...validateNameRule(version, dns1035LabelErrors, 'spec.version'),
    ...validatePriority(spec.groupPriorityMinimum, MAX_GROUP_PRIORITY, 'spec.groupPriorityMinimum'),
    ...validatePriority(spec.versionPriority, MAX_VERSION_PRIORITY, 'spec.versionPriority'),
    ...(spec.service === undefined ? validateLocal(spec) : validateRemote(spec, spec.service)),
  ];
}

function validateName(name: string, required: string): FieldError[] {
  if (pathSegmentErrors(name).length > 0 || name === required) return [];
  const message = `must be \`spec.version+"."+spec.group\`: ${JSON.stringify(required)}`;
  return [fieldError.invalid('metadata.name', name, message)];
}

function validatePriority(value: number | undefined, max: number, path: string): FieldError[] {
  if (value !== undefined && value > 0 && value <= max) return [];
  return [fieldError.invalid(path, value ?? 0, `must be positive and less than ${max}`)];
}

function validateLocal({ caBundle, insecureSkipTLSVerify }: APIServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  if (isSet(caBundle)) {
    const bytes = Math.floor((caBundle.replaceAll('=', '').length * 3) / 4);
    errors.push(fieldError.invalid('spec.caBundle', `${bytes} bytes`, 'local APIServices may not have a caBundle'));
  }
  if (insecureSkipTLSVerify === true) {
    const message = 'local APIServices may not have insecureSkipTLSVerify';
    errors.push(fieldError.invalid('spec.insecureSkipTLSVerify', true, message));
  }
  return errors;
}

function validateRemote(spec: APIServiceSpec, service: NonNullable<APIServiceSpec['service']>): FieldError[] {
  const errors: FieldError[] = [];
  if (!isSet(service.namespace)) errors.push(fieldError.required('spec.service.namespace'));
  if (!isSet(service.name)) errors.push(fieldError.required('spec.service.name'));
  const port = service.port ?? DEFAULT_PORT;
  if (port < 1 || port > 65_535) {
    const message = 'port is not valid: must be between 1 and 65535, inclusive';
    errors.push(fieldError.invalid('spec.service.port', port, message));
  }
  if (spec.insecureSkipTLSVerify === true && isSet(spec.caBundle)) {
    errors.push(fieldError.invalid('spec.insecureSkipTLSVerify', true, 'may not be true if caBundle is present'));
  }
  return errors;
}

function validateStatus(service: APIService): FieldError[] {
  return (service.status?.conditions ?? []).flatMap(({ status }, index) =>
    STATUSES.includes(status) ? [] : [fieldError.notSupported(`status.conditions[${index}].status`, status, STATUSES)],
  );
}

function availability(service: APIService): string {
  const condition = availableCondition(service);
  if (condition === undefined) return 'Unknown';
  return condition.status !== 'True' && isSet(condition.reason)
    ? `${condition.status} (${condition.reason})`
    : condition.status;
}

export const apiServices: KindDefinition<APIService> = {
  group: 'apiregistration.k8s.io',
  version: 'v1',
  kind: 'APIService',
  plural: 'apiservices',
  singular: 'apiservice',
  listKind: 'APIServiceList',
  namespaced: false,
  categories: ['api-extensions'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService',
  skeleton: { spec: {}, status: {} },
  storagePrefix: 'apiregistration.k8s.io/apiservices',
  allowUnconditionalUpdate: false,
  nameRule: 'pathSegment',
  aliases: [sameShape('apiregistration.k8s.io', 'v1beta1', '1.19', '1.22')],
  setDefaults({ spec }) {
    if (spec?.service !== undefined) spec.service.port ??= DEFAULT_PORT;
  },
  strategy: {
    prepareForCreate(service, { nowMs }) {
      service.status = {};
      if (service.spec?.service === undefined) setAvailable(service, LOCAL_AVAILABLE, timestamp(nowMs));
    },
    prepareForUpdate: (service, old) => restorePart(service, old, 'status'),
    validate,
  },
  statusResetFields: METADATA_AND_SPEC,
  statusStrategy: {
    prepareForUpdate(service, old) {
      restorePart(service, old, 'spec');
      restoreMetadata(service, old);
    },
    validate: validateStatus,
  },
  columns: [
    nameColumn,
    column<APIService>('Service', 'The reference to the service that hosts this API endpoint.', ({ spec }) =>
      spec?.service === undefined ? 'Local' : `${spec.service.namespace ?? ''}/${spec.service.name ?? ''}`,
    ),
    column<APIService>('Available', 'Whether this service is available.', availability),
    ageColumn,
  ],
};
