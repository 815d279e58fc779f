/**
 * Offers of blank hosts. Unauthenticated clients send them, so every field has a size limit. Offers are never stored.
 */

import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';
import { nameColumn } from '../../../../api/printing/columns.ts';
import type { KindDefinition } from '../../../../api/registry/definition.ts';
import { validateNameRule, validateOneOf } from '../../../../api/validation/scalars.ts';
import { dns1123LabelErrors } from '../../../../base/names.ts';
import { type HostOffer, OFFER_GROUP, OFFER_VERSION } from '../machine-types.ts';
import { validateHardware } from './hardware.ts';

const MAX_BODY_BYTES = 64 * 1024;
const KEY = /^[A-Za-z0-9_-]{43}$/;
const SIGNATURE = /^[A-Za-z0-9_-]{86}$/;
const MACHINE_ID = /^[0-9a-f]{32}$/;

function validate({ spec = {} }: HostOffer): FieldError[] {
  const { name = '', machineID = '', signingKey = '', sealingKey = '', state, signature = '', hardware } = spec;
  const errors = validateNameRule(name, dns1123LabelErrors, 'spec.name');
  if (!MACHINE_ID.test(machineID))
    errors.push(fieldError.invalid('spec.machineID', machineID.slice(0, 64), 'must be 32 hexadecimal digits'));
  for (const [field, key] of [
    ['signingKey', signingKey],
    ['sealingKey', sealingKey],
  ] as const)
    if (!KEY.test(key))
      errors.push(fieldError.invalid(`spec.${field}`, key.slice(0, 64), 'must be 32 bytes in base64url'));
  if (!SIGNATURE.test(signature))
    errors.push(fieldError.invalid('spec.signature', signature.slice(0, 100), 'must be 64 bytes in base64url'));
  return [
    ...errors,
    ...validateOneOf(state, ['blank', 'joined'], 'spec.state'),
    ...validateHardware(hardware, 'spec.hardware'),
  ];
}

export const hostOffers: KindDefinition<HostOffer> = {
  group: OFFER_GROUP,
  version: OFFER_VERSION,
  kind: 'HostOffer',
  plural: 'hostoffers',
  singular: 'hostoffer',
  listKind: 'HostOfferList',
  namespaced: false,
  verbs: ['create'],
  schemaName: `dev.hyperedge.machine.${OFFER_VERSION}.HostOffer`,
  storagePrefix: '',
  isComputed: true,
  maxBodyBytes: MAX_BODY_BYTES,
  strategy: { validate },
  columns: [nameColumn],
};
