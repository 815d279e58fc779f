/** Endpoint slices. Source: k8s.io/kubernetes/pkg/registry/discovery/endpointslice, pkg/apis/discovery/validation. */

import { ipFamilyOf } from '../../../../base/addresses/addresses.ts';
import {
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  labelValueErrors,
  qualifiedNameErrors,
} from '../../../../base/names.ts';
import type { Endpoint, EndpointPort, EndpointSlice, ForNode } from '../../../generated/discovery/v1.ts';
import { semanticEqual } from '../../../meta/equality.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { nextGeneration } from '../../../meta/object.ts';
import { isSet, validateImmutable } from '../../../meta/validation.ts';
import { ageColumn, column, limitedList, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, keepGeneration, metadataOf } from '../../../registry/strategies.ts';
import {
  validateAppProtocol,
  validateNameRule,
  validateOneOf,
  validateOptionalOneOf,
  validatePortNumber,
} from '../../../validation/scalars.ts';
import { validateEndpointIp } from './addresses.ts';
import { v1beta1 } from './conversion.ts';

const ADDRESS_TYPES = ['FQDN', 'IPv4', 'IPv6'];
const MAX_ADDRESSES = 100;
const MAX_PORTS = 20_000;
const MAX_ENDPOINTS = 1000;
const MAX_TOPOLOGY = 16;
const MAX_HINTS = 8;

function validate(slice: EndpointSlice): FieldError[] {
  const errors = isSet(slice.addressType)
    ? validateOneOf(slice.addressType, ADDRESS_TYPES, 'addressType')
    : [fieldError.required('addressType')];
  const endpoints = slice.endpoints ?? [];
  if (endpoints.length > MAX_ENDPOINTS) errors.push(fieldError.tooMany('endpoints', endpoints.length, MAX_ENDPOINTS));
  endpoints.slice(0, MAX_ENDPOINTS).forEach((endpoint, index) => {
    errors.push(...validateEndpoint(endpoint, slice.addressType, `endpoints[${index}]`));
  });
  errors.push(...validatePorts(slice.ports ?? []));
  return errors;
}

function validateEndpoint(endpoint: Endpoint, type: string, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const addresses = endpoint.addresses ?? [];
  if (addresses.length === 0) errors.push(fieldError.required(`${path}.addresses`, 'must contain at least 1 address'));
  if (addresses.length > MAX_ADDRESSES)
    errors.push(fieldError.tooMany(`${path}.addresses`, addresses.length, MAX_ADDRESSES));
  addresses.slice(0, MAX_ADDRESSES).forEach((address, index) => {
    const at = `${path}.addresses[${index}]`;
    if (type === 'FQDN') {
      errors.push(...validateDomain(address, at));
      return;
    }
    const wanted = type === 'IPv6' ? 6 : 4;
    const family = ipFamilyOf(address);
    if (family !== 0 && family !== wanted) {
      errors.push(fieldError.invalid(at, address, `must be an IPv${wanted} address`));
    } else errors.push(...validateEndpointIp(address, at));
  });
  for (const [key, value] of Object.entries(endpoint.deprecatedTopology ?? {})) {
    for (const message of qualifiedNameErrors(key)) {
      errors.push(fieldError.invalid(`${path}.deprecatedTopology`, value, message));
    }
  }
  const topology = endpoint.deprecatedTopology ?? {};
  if (Object.keys(topology).length > MAX_TOPOLOGY) {
    errors.push(fieldError.tooMany(`${path}.deprecatedTopology`, Object.keys(topology).length, MAX_TOPOLOGY));
  }
  if (endpoint.nodeName !== undefined) {
    errors.push(...validateNameRule(endpoint.nodeName, dns1123SubdomainErrors, `${path}.nodeName`));
  }
  if (endpoint.hostname !== undefined) {
    errors.push(...validateNameRule(endpoint.hostname, dns1123LabelErrors, `${path}.hostname`));
  }
  const hints = endpoint.hints ?? {};
  return [
    ...errors,
    ...validateHints(hints.forZones, labelValueErrors, `${path}.hints.forZones`),
    ...validateHints(hints.forNodes, dns1123SubdomainErrors, `${path}.hints.forNodes`),
  ];
}

/** Requires a domain name of at least two labels. */
function validateDomain(address: string, at: string): FieldError[] {
  if (address === '') return [fieldError.required(at)];
  const name = address.replace(/\.$/, '');
  const [wrong] = dns1123SubdomainErrors(name);
  if (wrong !== undefined) return [fieldError.invalid(at, name, wrong)];
  const labels = name.split('.');
  if (labels.length < 2) {
    return [fieldError.invalid(at, name, 'should be a domain with at least two segments separated by dots')];
  }
  const long = labels.find((label) => dns1123LabelErrors(label).length > 0);
  return long === undefined ? [] : [fieldError.invalid(at, long, dns1123LabelErrors(long).join(','))];
}

function validateHints(
  hints: readonly ForNode[] = [],
  rule: (name: string) => readonly string[],
  path: string,
): FieldError[] {
  if (hints.length > MAX_HINTS) return [fieldError.tooMany(path, hints.length, MAX_HINTS)];
  const names = new Set<string>();
  return hints.flatMap(({ name = '' }, index) => {
    const at = `${path}[${index}].name`;
    const repeated = names.has(name);
    names.add(name);
    return [...(repeated ? [fieldError.duplicate(at, name)] : []), ...validateNameRule(name, rule, at)];
  });
}

function validatePorts(ports: readonly EndpointPort[]): FieldError[] {
  const errors: FieldError[] = [];
  if (ports.length > MAX_PORTS) return [fieldError.tooMany('ports', ports.length, MAX_PORTS)];
  const names = new Set<string>();
  ports.forEach((port, index) => {
    const at = `ports[${index}]`;
    const name = port.name ?? '';
    if (name !== '') errors.push(...validateNameRule(name, dns1123LabelErrors, `${at}.name`));
    if (names.has(name)) errors.push(fieldError.duplicate(`${at}.name`, name));
    names.add(name);
    if (port.port !== undefined) errors.push(...validatePortNumber(port.port, `${at}.port`));
    errors.push(...validateOptionalOneOf(port.protocol, ['SCTP', 'TCP', 'UDP'], `${at}.protocol`));
    errors.push(...validateAppProtocol(port.appProtocol, `${at}.appProtocol`));
  });
  return errors;
}

const SHOWN = 3;
const UNSET = '<unset>';

export const endpointSlices: KindDefinition<EndpointSlice> = {
  group: 'discovery.k8s.io',
  version: 'v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  singular: 'endpointslice',
  listKind: 'EndpointSliceList',
  namespaced: true,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.discovery.v1.EndpointSlice',
  skeleton: { endpoints: null, ports: null },
  storagePrefix: 'endpointslices',
  aliases: [v1beta1],
  setDefaults(slice) {
    for (const port of slice.ports ?? []) {
      port.name ??= '';
      port.protocol ??= 'TCP';
    }
  },
  strategy: {
    prepareForCreate(slice) {
      metadataOf(slice).generation = 1;
    },
    prepareForUpdate(slice, old) {
      keepGeneration(slice, old);
      const content = ({ endpoints, ports, addressType, metadata }: EndpointSlice) => ({
        endpoints,
        ports,
        addressType,
        labels: metadata?.labels,
      });
      if (!semanticEqual(content(slice), content(old))) {
        metadataOf(slice).generation = nextGeneration(old);
      }
    },
    validate,
    validateUpdate: (slice, old) => [
      ...validate(slice),
      ...validateImmutable(slice.addressType, old.addressType, 'addressType'),
    ],
  },
  columns: [
    nameColumn,
    column<EndpointSlice>('AddressType', 'Type of the addresses.', (slice) => slice.addressType),
    column<EndpointSlice>('Ports', 'The ports of every endpoint.', (slice) => {
      const ports = (slice.ports ?? []).map((port) => (port.port === undefined ? '*' : String(port.port)));
      return ports.length === 0 ? UNSET : limitedList(ports, SHOWN);
    }),
    column<EndpointSlice>('Endpoints', 'The addresses of the endpoints.', (slice) => {
      const addresses = (slice.endpoints ?? []).flatMap((endpoint) => endpoint.addresses ?? []);
      return addresses.length === 0 ? UNSET : limitedList(addresses, SHOWN);
    }),
    ageColumn,
  ],
};
