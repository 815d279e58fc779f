/**
 * Network policies. Source: k8s.io/kubernetes/pkg/registry/networking/networkpolicy,
 * pkg/apis/networking/{v1,validation}.
 */
import type { NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from '../../../generated/networking/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet } from '../../../meta/validation.ts';
import { ageColumn, column, nameColumn, selectorText } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, bumpGeneration, metadataOf } from '../../../registry/strategies.ts';
import { networkWarnings } from '../../../validation/address-warnings.ts';
import {
  validateCidr,
  validateOneOf,
  validateOptionalOneOf,
  validatePortNumber,
  validatePortNumberOrName,
} from '../../../validation/scalars.ts';
import { validateLabelSelector } from '../../../validation/selectors.ts';
import { MAX_POLICY_SIZE, policySize } from './size.ts';

function validate(policy: NetworkPolicy): FieldError[] {
  const spec = policy.spec;
  const size = policySize(spec ?? { podSelector: {} });
  if (size > MAX_POLICY_SIZE) return [fieldError.tooMany('spec', size, MAX_POLICY_SIZE)];
  const errors = validateLabelSelector(spec?.podSelector, 'spec.podSelector');
  const rules = [
    ...(spec?.ingress ?? []).map((rule, index) => ({
      at: `spec.ingress[${index}]`,
      side: 'from',
      peers: rule.from,
      ports: rule.ports,
    })),
    ...(spec?.egress ?? []).map((rule, index) => ({
      at: `spec.egress[${index}]`,
      side: 'to',
      peers: rule.to,
      ports: rule.ports,
    })),
  ];
  for (const { at, side, peers, ports } of rules) {
    (ports ?? []).forEach((port, index) => {
      errors.push(...validatePort(port, `${at}.ports[${index}]`));
    });
    (peers ?? []).forEach((peer, index) => {
      errors.push(...validatePeer(peer, `${at}.${side}[${index}]`));
    });
  }
  const types = spec?.policyTypes ?? [];
  if (types.length > 2) {
    errors.push(fieldError.invalid('spec.policyTypes', types, 'may not specify more than two policyTypes'));
    return errors;
  }
  types.forEach((type, index) => {
    errors.push(...validateOneOf(type, ['Ingress', 'Egress'], `spec.policyTypes[${index}]`));
  });
  return errors;
}

/** Warnings about CIDRs that are valid but not in canonical form. */
function warnings({ spec }: NetworkPolicy): string[] {
  const peers = [
    ...(spec?.ingress ?? []).flatMap(({ from = [] }, rule) =>
      from.map(({ ipBlock }, index) => ({ ipBlock, at: `spec.ingress[${rule}].from[${index}].ipBlock` })),
    ),
    ...(spec?.egress ?? []).flatMap(({ to = [] }, rule) =>
      to.map(({ ipBlock }, index) => ({ ipBlock, at: `spec.egress[${rule}].to[${index}].ipBlock` })),
    ),
  ];
  return peers.flatMap(({ ipBlock, at }) =>
    ipBlock === undefined
      ? []
      : [
          ...networkWarnings(ipBlock.cidr, `${at}.cidr`),
          ...(ipBlock.except ?? []).flatMap((except, index) => networkWarnings(except, `${at}.except[${index}]`)),
        ],
  );
}

function validatePort(given: NetworkPolicyPort, at: string): FieldError[] {
  const errors = validateOptionalOneOf(given.protocol, ['TCP', 'UDP', 'SCTP'], `${at}.protocol`);
  const { port, endPort } = given;
  if (endPort !== undefined && typeof port !== 'number') {
    const detail = `may not be specified when \`port\` is ${port === undefined ? 'not specified' : 'non-numeric'}`;
    errors.push(fieldError.invalid(`${at}.endPort`, endPort, detail));
  }
  if (port !== undefined) errors.push(...validatePortNumberOrName(port, `${at}.port`));
  if (endPort === undefined || typeof port !== 'number') return errors;
  if (endPort < port) {
    // As upstream, the error shows the value of `port`.
    errors.push(fieldError.invalid(`${at}.endPort`, port, 'must be greater than or equal to `port`'));
  }
  return [...errors, ...validatePortNumber(endPort, `${at}.endPort`)];
}

function validatePeer(peer: NetworkPolicyPeer, at: string): FieldError[] {
  const errors: FieldError[] = [];
  const { podSelector, namespaceSelector, ipBlock } = peer;
  if (podSelector !== undefined) errors.push(...validateLabelSelector(podSelector, `${at}.podSelector`));
  if (namespaceSelector !== undefined) {
    errors.push(...validateLabelSelector(namespaceSelector, `${at}.namespaceSelector`));
  }
  if (ipBlock !== undefined) errors.push(...validateIpBlock(ipBlock, `${at}.ipBlock`));
  const selected = podSelector !== undefined || namespaceSelector !== undefined;
  if (!selected && ipBlock === undefined) errors.push(fieldError.required(at, 'must specify a peer'));
  if (selected && ipBlock !== undefined) {
    errors.push(fieldError.forbidden(at, 'may not specify both ipBlock and another peer'));
  }
  return errors;
}

function validateIpBlock(block: NonNullable<NetworkPolicyPeer['ipBlock']>, at: string): FieldError[] {
  if (!isSet(block.cidr)) return [fieldError.required(`${at}.cidr`)];
  const errors = validateCidr(block.cidr, `${at}.cidr`);
  if (errors.length > 0) return errors;
  (block.except ?? []).forEach((except, index) => {
    const path = `${at}.except[${index}]`;
    const wrong = validateCidr(except, path);
    errors.push(...wrong);
    if (wrong.length === 0 && !isInside(except, block.cidr)) {
      errors.push(fieldError.invalid(path, except, 'must be a strict subset of `cidr`'));
    }
  });
  return errors;
}

/** Whether CIDR `inner` is a proper subset of CIDR `outer`. */
function isInside(inner: string, outer: string): boolean {
  const [innerBits, innerLength] = bitsOf(inner);
  const [outerBits, outerLength] = bitsOf(outer);
  return (
    innerBits.length === outerBits.length &&
    innerLength > outerLength &&
    innerBits.slice(0, outerLength) === outerBits.slice(0, outerLength)
  );
}

/** Bits of the address as a string of zeros and ones, and the prefix length. */
function bitsOf(cidr: string): [bits: string, length: number] {
  const [address = '', length = ''] = cidr.split('/');
  const binary = (value: number, width: number): string => value.toString(2).padStart(width, '0');
  const octets = (text: string): string =>
    text
      .split('.')
      .map((octet) => binary(Number(octet), 8))
      .join('');
  if (!address.includes(':')) return [octets(address), Number(length)];
  const words = (text: string): string =>
    text === ''
      ? ''
      : text
          .split(':')
          .map((word) => (word.includes('.') ? octets(word) : binary(Number.parseInt(word, 16), 16)))
          .join('');
  const [head = '', tail] = address.split('::');
  const first = words(head);
  const last = words(tail ?? '');
  return [first + '0'.repeat(Math.max(0, 128 - first.length - last.length)) + last, Number(length)];
}

export const networkPolicies: KindDefinition<NetworkPolicy> = {
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'NetworkPolicy',
  plural: 'networkpolicies',
  singular: 'networkpolicy',
  listKind: 'NetworkPolicyList',
  namespaced: true,
  shortNames: ['netpol'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.networking.v1.NetworkPolicy',
  skeleton: { spec: { podSelector: {} } },
  storagePrefix: 'networkpolicies',
  setDefaults(policy) {
    policy.spec ??= { podSelector: {} };
    const spec = policy.spec;
    if ((spec.policyTypes ?? []).length === 0) {
      spec.policyTypes = (spec.egress ?? []).length > 0 ? ['Ingress', 'Egress'] : ['Ingress'];
    }
    for (const rule of [...(spec.ingress ?? []), ...(spec.egress ?? [])]) {
      for (const port of rule.ports ?? []) port.protocol ??= 'TCP';
    }
  },
  strategy: {
    prepareForCreate(policy) {
      metadataOf(policy).generation = 1;
    },
    prepareForUpdate: bumpGeneration,
    validate,
    warnings,
  },
  columns: [
    nameColumn,
    column<NetworkPolicy>('Pod-Selector', 'Pods to which the policy applies.', (policy) =>
      selectorText(policy.spec?.podSelector),
    ),
    ageColumn,
  ],
};
