/** Claims for rigs. A claim gives exclusive use for a limited time; waiting claims are granted in order. */

import { type FieldError, fieldError } from '../../../api/meta/field-error.ts';
import { isSet, validateImmutable } from '../../../api/meta/validation.ts';
import { ageColumn, column, NONE, nameColumn } from '../../../api/printing/columns.ts';
import type { KindDefinition } from '../../../api/registry/definition.ts';
import { ALL_VERBS, metadataOf, specStatusStrategies } from '../../../api/registry/strategies.ts';
import { validateNameRule } from '../../../api/validation/scalars.ts';
import { validateLabelSelector } from '../../../api/validation/selectors.ts';
import { dns1123SubdomainErrors } from '../../../base/names.ts';
import { RELEASE_FINALIZER, RIG_GROUP, RIG_VERSION, type RigClaim } from '../rig-types.ts';
import { until, validateLease } from '../rigs/index.ts';

function validate({ spec = {} }: RigClaim): FieldError[] {
  const errors = validateLease(spec.duration, 'spec.duration');
  if (isSet(spec.rigName) === (spec.selector !== undefined))
    errors.push(fieldError.invalid('spec', spec.rigName ?? '', 'must have either rigName or selector'));
  errors.push(...validateLabelSelector(spec.selector, 'spec.selector'));
  if (isSet(spec.rigName)) errors.push(...validateNameRule(spec.rigName, dns1123SubdomainErrors, 'spec.rigName'));
  return errors;
}

const { strategy, statusStrategy } = specStatusStrategies<RigClaim>({
  initialStatus: () => ({ phase: 'Queued' }),
  prepareForCreate(claim, { user }) {
    claim.status = { phase: 'Queued', requester: user.name };
    const metadata = metadataOf(claim);
    metadata.finalizers = [...new Set([...(metadata.finalizers ?? []), RELEASE_FINALIZER])];
  },
  validate: (claim, old) => (old === undefined ? validate(claim) : []),
  validateUpdate: (claim, old) => validateImmutable(claim.spec, old.spec, 'spec'),
  // The requester is set on creation and immutable.
  prepareForStatusUpdate(claim, old) {
    if (old.status?.requester !== undefined) claim.status = { ...claim.status, requester: old.status.requester };
  },
});

export const rigClaims: KindDefinition<RigClaim> = {
  group: RIG_GROUP,
  version: RIG_VERSION,
  kind: 'RigClaim',
  plural: 'rigclaims',
  singular: 'rigclaim',
  listKind: 'RigClaimList',
  namespaced: true,
  verbs: ALL_VERBS,
  schemaName: `dev.hyperedge.rig.${RIG_VERSION}.RigClaim`,
  // The name becomes part of the name of a scheduling gate.
  nameRule: 'dns1123Label',
  skeleton: { spec: {}, status: {} },
  returnsDeleted: 'undocumented',
  storagePrefix: `${RIG_GROUP}/rigclaims`,
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    column<RigClaim>(
      'Rig',
      'Rig that is granted or requested.',
      ({ spec, status }) => status?.rig ?? spec?.rigName ?? NONE,
    ),
    column<RigClaim>('Phase', 'State of the claim.', ({ status }) => status?.phase ?? ''),
    column<RigClaim>('Position', 'Place in the queue.', ({ status }) => status?.position || NONE),
    column<RigClaim>('Requester', 'User that made the claim.', ({ status }) => status?.requester ?? NONE),
    column<RigClaim>('Expires', 'Time until the lease ends.', ({ status }, nowMs) => until(status?.expiresAt, nowMs)),
    ageColumn,
  ],
  extraSubresources: [
    { name: 'console', kind: 'PodAttachOptions', group: '', version: 'v1', verbs: ['create', 'get'] },
    { name: 'power', kind: 'Status', group: '', version: 'v1', verbs: ['create'] },
  ],
};
