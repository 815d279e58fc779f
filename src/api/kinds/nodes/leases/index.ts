/** Leases. Source: k8s.io/kubernetes/pkg/registry/coordination/lease, pkg/apis/coordination/validation. */
import type { Lease } from '../../../generated/coordination/v1.ts';
import type { FieldError } from '../../../meta/field-error.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS } from '../../../registry/strategies.ts';
import { sameShape } from '../../../registry/versions.ts';
import { validateNonNegative, validatePositive } from '../../../validation/scalars.ts';

function validate(lease: Lease): FieldError[] {
  return [
    ...validatePositive(lease.spec?.leaseDurationSeconds, 'spec.leaseDurationSeconds'),
    ...validateNonNegative(lease.spec?.leaseTransitions, 'spec.leaseTransitions'),
  ];
}

/**
 * Fields of coordinated leader election, whose feature gate is off upstream. They are dropped unless the stored object
 * has them.
 */
const ELECTIONS = ['strategy', 'preferredHolder'] as const;
type Spec = NonNullable<Lease['spec']> & Partial<Record<(typeof ELECTIONS)[number], string>>;

function dropElections(lease: Lease, old: Lease | undefined): void {
  const spec: Spec = lease.spec ?? {};
  const before: Spec = old?.spec ?? {};
  for (const field of ELECTIONS) if (before[field] === undefined) delete spec[field];
}

/** Whether the update is a heartbeat, which may be lost in a power failure. A change of the holder must be durable. */
function isRenewal({ spec }: Lease, old: Readonly<Lease>): boolean {
  const { holderIdentity, leaseTransitions = 0, leaseDurationSeconds } = old.spec ?? {};
  return (
    holderIdentity !== undefined &&
    spec?.holderIdentity === holderIdentity &&
    (spec.leaseTransitions ?? 0) === leaseTransitions &&
    spec.leaseDurationSeconds === leaseDurationSeconds
  );
}

export const leases: KindDefinition<Lease> = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  singular: 'lease',
  listKind: 'LeaseList',
  namespaced: true,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.coordination.v1.Lease',
  skeleton: { spec: {} },
  storagePrefix: 'leases',
  isHeartbeat: isRenewal,
  essentialUpdates: ['object'],
  allowCreateOnUpdate: true,
  allowUnconditionalUpdate: false,
  aliases: [sameShape('coordination.k8s.io', 'v1beta1', '1.19', '1.22')],
  strategy: {
    prepareForCreate: (lease) => dropElections(lease, undefined),
    prepareForUpdate: dropElections,
    validate,
  },
  columns: [
    nameColumn,
    column<Lease>('Holder', 'Holder of the lease.', (lease) => lease.spec?.holderIdentity ?? ''),
    ageColumn,
  ],
};
