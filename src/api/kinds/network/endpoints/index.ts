/** Endpoints. Source: k8s.io/kubernetes/pkg/registry/core/endpoint, pkg/apis/core/validation ValidateEndpoints. */

import { dns1123LabelErrors, dns1123SubdomainErrors } from '../../../../base/names.ts';
import type { EndpointAddress, EndpointSubset, Endpoints } from '../../../generated/core/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet } from '../../../meta/validation.ts';
import { ageColumn, column, limitedList, NONE, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS } from '../../../registry/strategies.ts';
import {
  validateAppProtocol,
  validateNameRule,
  validateOneOf,
  validatePortNumber,
} from '../../../validation/scalars.ts';
import { validateEndpointIp } from '../endpointslices/addresses.ts';

function validate(endpoints: Endpoints): FieldError[] {
  return (endpoints.subsets ?? []).flatMap((subset, index) => validateSubset(subset, `subsets[${index}]`));
}

function validateSubset(subset: EndpointSubset, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if ((subset.addresses ?? []).length + (subset.notReadyAddresses ?? []).length === 0) {
    errors.push(fieldError.required(path, 'must specify `addresses` or `notReadyAddresses`'));
  }
  for (const list of ['addresses', 'notReadyAddresses'] as const) {
    (subset[list] ?? []).forEach((address, index) => {
      errors.push(...validateAddress(address, `${path}.${list}[${index}]`));
    });
  }
  const ports = subset.ports ?? [];
  ports.forEach((port, index) => {
    const at = `${path}.ports[${index}]`;
    if (!isSet(port.name)) {
      if (ports.length > 1) errors.push(fieldError.required(`${at}.name`));
    } else errors.push(...validateNameRule(port.name, dns1123LabelErrors, `${at}.name`));
    errors.push(...validatePortNumber(port.port, `${at}.port`));
    errors.push(...validateOneOf(port.protocol, ['SCTP', 'TCP', 'UDP'], `${at}.protocol`));
    errors.push(...validateAppProtocol(port.appProtocol, `${at}.appProtocol`));
  });
  return errors;
}

function validateAddress(address: EndpointAddress, path: string): FieldError[] {
  const errors = validateEndpointIp(address.ip ?? '', `${path}.ip`);
  if (isSet(address.hostname))
    errors.push(...validateNameRule(address.hostname, dns1123LabelErrors, `${path}.hostname`));
  if (address.nodeName !== undefined) {
    errors.push(...validateNameRule(address.nodeName, dns1123SubdomainErrors, `${path}.nodeName`));
  }
  return errors;
}

const SHOWN = 3;

function endpointsText(endpoints: Endpoints): string {
  const all: string[] = [];
  for (const subset of endpoints.subsets ?? []) {
    for (const address of subset.addresses ?? []) {
      if ((subset.ports ?? []).length === 0) all.push(address.ip);
      for (const port of subset.ports ?? []) {
        all.push(address.ip.includes(':') ? `[${address.ip}]:${port.port}` : `${address.ip}:${port.port}`);
      }
    }
  }
  return all.length === 0 ? NONE : limitedList(all, SHOWN);
}

export const endpoints: KindDefinition<Endpoints> = {
  group: '',
  version: 'v1',
  kind: 'Endpoints',
  plural: 'endpoints',
  deprecation: 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice',
  singular: 'endpoints',
  listKind: 'EndpointsList',
  namespaced: true,
  shortNames: ['ep'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.core.v1.Endpoints',
  storagePrefix: 'services/endpoints',
  allowCreateOnUpdate: true,
  setDefaults(object) {
    for (const subset of object.subsets ?? []) {
      for (const port of subset.ports ?? []) if (!isSet(port.protocol)) port.protocol = 'TCP';
    }
  },
  strategy: { validate, validateUpdate: validate },
  columns: [nameColumn, column<Endpoints>('Endpoints', 'Addresses and ports.', endpointsText), ageColumn],
};
