/**
 * Address ranges for services. Source: k8s.io/kubernetes/pkg/registry/networking/servicecidr,
 * pkg/apis/networking/validation, pkg/printers/internalversion.
 */

import { ipFamilyOf } from '../../../../base/addresses/addresses.ts';
import type { Condition } from '../../../generated/meta/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import type { KubeObject } from '../../../meta/object.ts';
import { IMMUTABLE_MESSAGE } from '../../../meta/validation.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../registry/strategies.ts';
import { validateNetwork } from '../../../validation/addresses.ts';
import { validateCidr } from '../../../validation/scalars.ts';

export interface ServiceCidr extends KubeObject {
  spec?: { cidrs?: string[] };
  status?: { conditions?: Condition[] };
}

const AT = 'spec.cidrs';
const MAX_CIDRS = 2;

const familyOf = (cidr: string): number => ipFamilyOf(cidr.split('/')[0] ?? '');

function validate(each: ServiceCidr): FieldError[] {
  const cidrs = each.spec?.cidrs ?? [];
  if (cidrs.length === 0) return [fieldError.required(AT, 'at least one CIDR required')];
  if (cidrs.length > MAX_CIDRS) {
    return [fieldError.invalid(AT, each.spec, `may only hold up to ${MAX_CIDRS} values`)];
  }
  const isDualStack =
    cidrs.every((cidr) => validateCidr(cidr, '').length === 0) && new Set(cidrs.map(familyOf)).size === 2;
  if (cidrs.length === 2 && !isDualStack) return [dualStackError(each)];
  return cidrs.flatMap((cidr, index) => validateNetwork(cidr, `${AT}[${index}]`));
}

const dualStackError = (each: ServiceCidr): FieldError =>
  fieldError.invalid(
    AT,
    each.spec,
    'may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64',
  );

/** A range of the second IP family may be added; existing ranges are immutable. */
function validateUpdate(each: ServiceCidr, old: ServiceCidr): FieldError[] {
  const cidrs = each.spec?.cidrs ?? [];
  const before = old.spec?.cidrs ?? [];
  const grows = before.length === 1 && cidrs.length === 2;
  if (cidrs.length !== before.length && !grows) return [fieldError.invalid(AT, cidrs, IMMUTABLE_MESSAGE)];
  return before.flatMap((cidr, index) =>
    cidr === cidrs[index] ? [] : [fieldError.invalid(`${AT}[${index}]`, cidrs[index], IMMUTABLE_MESSAGE)],
  );
}

const { strategy, statusStrategy } = specStatusStrategies<ServiceCidr>({
  generations: false,
  validate,
  validateUpdate,
});

export const serviceCidrs: KindDefinition<ServiceCidr> = {
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'ServiceCIDR',
  plural: 'servicecidrs',
  singular: 'servicecidr',
  listKind: 'ServiceCIDRList',
  namespaced: false,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.networking.v1.ServiceCIDR',
  storagePrefix: 'servicecidrs',
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    column<ServiceCidr>('CIDRs', 'The ranges, one for each family.', (each) => (each.spec?.cidrs ?? []).join(',')),
    ageColumn,
  ],
};
