/**
 * Claims for devices. Source: k8s.io/kubernetes/pkg/registry/resource/resourceclaim, pkg/apis/resource/validation,
 * pkg/printers/internalversion.
 */
import { dropReleasedDevices, validateClaimStatusUpdate } from '../../../devices/claim-status.ts';
import { setClaimDefaults, validateClaimSpec } from '../../../devices/claims.ts';
import type { ResourceClaim } from '../../../devices/types.ts';
import { validateImmutable } from '../../../meta/validation.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../registry/strategies.ts';

const { strategy, statusStrategy } = specStatusStrategies<ResourceClaim>({
  generations: false,
  // The spec is immutable, so an update only needs the comparison below.
  validate: (claim, old) => (old === undefined ? validateClaimSpec(claim.spec, 'spec') : []),
  validateUpdate: (claim, old) => validateImmutable(claim.spec, old.spec, 'spec'),
  prepareForStatusUpdate: dropReleasedDevices,
  validateStatusUpdate: validateClaimStatusUpdate,
});

function stateText({ metadata, status }: ResourceClaim): string {
  const states: string[] = [];
  if (metadata?.deletionTimestamp !== undefined) states.push('deleted');
  else if (status?.allocation === undefined) states.push('pending');
  if (status?.allocation !== undefined) states.push('allocated');
  if ((status?.reservedFor ?? []).length > 0) states.push('reserved');
  return states.join(',');
}

export const resourceClaims: KindDefinition<ResourceClaim> = {
  group: 'resource.k8s.io',
  version: 'v1',
  kind: 'ResourceClaim',
  plural: 'resourceclaims',
  singular: 'resourceclaim',
  listKind: 'ResourceClaimList',
  namespaced: true,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.resource.v1.ResourceClaim',
  returnsDeleted: true,
  storagePrefix: 'resourceclaims',
  setDefaults: (claim) => setClaimDefaults(claim.spec),
  strategy,
  statusStrategy,
  columns: [nameColumn, column<ResourceClaim>('State', 'State of the claim.', stateText), ageColumn],
};
