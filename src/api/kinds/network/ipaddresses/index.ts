/**
 * Allocated addresses of services. Source: k8s.io/kubernetes/pkg/registry/networking/ipaddress,
 * pkg/apis/networking/validation, pkg/printers/internalversion.
 */
import { dns1123SubdomainErrors, pathSegmentErrors } from '../../../../base/names.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import type { KubeObject } from '../../../meta/object.ts';
import { isSet, validateImmutable } from '../../../meta/validation.ts';
import { ageColumn, column, NONE, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS } from '../../../registry/strategies.ts';
import { validateNameRule } from '../../../validation/scalars.ts';

export interface IpAddress extends KubeObject {
  spec?: { parentRef?: { group?: string; resource?: string; namespace?: string; name?: string } };
}

/** Label of objects that API servers manage for services. */
export const ALLOCATED_LABEL = { 'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io' };

export function isAllocated({ metadata }: IpAddress): boolean {
  const [[label, manager]] = Object.entries(ALLOCATED_LABEL) as [[string, string]];
  return metadata?.labels?.[label] === manager;
}

const AT = 'spec.parentRef';

function validate(each: IpAddress): FieldError[] {
  const parent = each.spec?.parentRef;
  if (parent === undefined) return [fieldError.required(AT)];
  const errors: FieldError[] = [];
  // The group may be empty: services are in the core group.
  if (isSet(parent.group)) errors.push(...validateNameRule(parent.group, dns1123SubdomainErrors, `${AT}.group`));
  for (const field of ['resource', 'name', 'namespace'] as const) {
    const value = parent[field];
    if (isSet(value)) errors.push(...validateNameRule(value, pathSegmentErrors, `${AT}.${field}`));
    else if (field !== 'namespace') errors.push(fieldError.required(`${AT}.${field}`));
  }
  return errors;
}

function parentText(each: IpAddress): string {
  const parent = each.spec?.parentRef;
  if (parent === undefined) return NONE;
  const resource = isSet(parent.group) ? `${parent.resource}.${parent.group}` : (parent.resource ?? '');
  const place = isSet(parent.namespace) ? `/${parent.namespace}` : '';
  return `${resource.toLowerCase()}${place}/${parent.name ?? ''}`;
}

export const ipAddresses: KindDefinition<IpAddress> = {
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'IPAddress',
  plural: 'ipaddresses',
  singular: 'ipaddress',
  listKind: 'IPAddressList',
  namespaced: false,
  shortNames: ['ip'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.networking.v1.IPAddress',
  storagePrefix: 'ipaddresses',
  nameRule: 'ipAddress',
  strategy: {
    validate,
    validateUpdate: (each, old) => validateImmutable(each.spec?.parentRef, old.spec?.parentRef, AT),
  },
  columns: [nameColumn, column<IpAddress>('ParentRef', 'Object to which the address belongs.', parentText), ageColumn],
};
