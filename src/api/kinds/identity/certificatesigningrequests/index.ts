/** Certificate signing requests. Source: k8s.io/kubernetes/pkg/registry/certificates/certificates. */

import { timestamp } from '../../../../base/time/timestamps.ts';
import type { CertificateSigningRequest } from '../../../generated/certificates/v1.ts';
import { transitionTime } from '../../../meta/conditions.ts';
import { isSet } from '../../../meta/validation.ts';
import { ageColumn, column, NONE, nameColumn } from '../../../printing/columns.ts';
import { humanDuration } from '../../../printing/duration.ts';
import type { KindAlias, KindDefinition, StrategyContext } from '../../../registry/definition.ts';
import { ALL_VERBS, restorePart } from '../../../registry/strategies.ts';
import { sameShape } from '../../../registry/versions.ts';
import { SOURCE_EXTRA } from '../../nodes/nodes/serving-addresses.ts';
import { validateNewSigner, validateRequest, validateStatusChange } from './validation.ts';

type Request = CertificateSigningRequest;

const SERVING_SIGNER = 'kubernetes.io/kubelet-serving';

/** Fills missing times of conditions, so that clients do not need to send them. */
function stampConditions(request: Request, old: Request, context: StrategyContext): void {
  const now = timestamp(context.nowMs);
  const earlier = new Map((old.status?.conditions ?? []).map((each) => [each.type, each]));
  for (const condition of request.status?.conditions ?? []) {
    condition.lastUpdateTime ??= now;
    if (condition.lastTransitionTime !== undefined) continue;
    const before = earlier.get(condition.type);
    condition.lastTransitionTime = transitionTime(before, condition.status, now);
  }
}

/** Condition column of kubectl, for example `Approved,Issued`, `Denied` or `Pending`. */
export function requestCondition(request: Request): string {
  const types = new Set((request.status?.conditions ?? []).map((each) => each.type));
  const parts: string[] = [];
  if (types.has('Denied')) parts.push('Denied');
  else if (types.has('Approved')) parts.push('Approved');
  else if (types.size === 0) parts.push('Pending');
  if (types.has('Failed')) parts.push('Failed');
  if ((request.status?.certificate ?? '') !== '') parts.push('Issued');
  return parts.join(',');
}

function durationText(request: Request): string {
  const seconds = request.spec?.expirationSeconds;
  return seconds === undefined ? NONE : humanDuration(seconds * 1000);
}

/** Alias for v1beta1. The default of signerName is set in admission, which can parse the request. */
const older: KindAlias<Request> = {
  ...sameShape('certificates.k8s.io', 'v1beta1', '1.19', '1.22'),
  convertTo(object) {
    const request = object as Request;
    if (request.spec !== undefined) request.spec.usages ??= ['digital signature', 'key encipherment'];
    for (const condition of request.status?.conditions ?? []) {
      if (!isSet(condition.status)) condition.status = 'True';
    }
    return request;
  },
};

export const certificateSigningRequests: KindDefinition<Request> = {
  group: 'certificates.k8s.io',
  version: 'v1',
  kind: 'CertificateSigningRequest',
  plural: 'certificatesigningrequests',
  singular: 'certificatesigningrequest',
  listKind: 'CertificateSigningRequestList',
  namespaced: false,
  shortNames: ['csr'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.certificates.v1.CertificateSigningRequest',
  skeleton: { spec: { request: null }, status: {} },
  storagePrefix: 'certificatesigningrequests',
  aliases: [older],
  strategy: {
    prepareForCreate(request, { user, sourceAddress }) {
      request.status = {};
      const spec = request.spec;
      if (spec === undefined) return;
      // The requester is the authenticated user; values in the object are overwritten.
      spec.username = user.name;
      if (user.uid === undefined) delete spec.uid;
      else spec.uid = user.uid;
      spec.groups = [...user.groups];
      if (user.extra === undefined) delete spec.extra;
      else spec.extra = Object.fromEntries(Object.entries(user.extra).map(([key, values]) => [key, [...values]]));
      // Remove a source address that the client sent: only the API server may set this extra.
      if (spec.extra !== undefined) delete spec.extra[SOURCE_EXTRA];
      if (spec.signerName === SERVING_SIGNER && sourceAddress !== undefined)
        spec.extra = { ...spec.extra, [SOURCE_EXTRA]: [sourceAddress] };
    },
    prepareForUpdate(request, old) {
      restorePart(request, old, 'spec');
      restorePart(request, old, 'status');
    },
    validate: validateRequest,
    validateCreate: validateNewSigner,
  },
  statusStrategy: {
    prepareForUpdate(request, old, context) {
      restorePart(request, old, 'spec');
      // Clients can only approve or deny through /approval, so other status writes keep the stored conditions.
      const isDecision = (each: { type: string }): boolean => each.type === 'Approved' || each.type === 'Denied';
      request.status ??= {};
      const status = request.status;
      const kept = (old.status?.conditions ?? []).filter(isDecision);
      const own = (status.conditions ?? []).filter((each) => !isDecision(each));
      if (kept.length + own.length > 0) status.conditions = [...kept, ...own];
      else delete status.conditions;
      stampConditions(request, old, context);
    },
    validateUpdate: (request, old) => validateStatusChange(request, old, 'status'),
  },
  subresourceStrategies: {
    approval: {
      prepareForUpdate(request, old, context) {
        restorePart(request, old, 'spec');
        const conditions = request.status?.conditions;
        request.status = { ...old.status, ...(conditions === undefined ? {} : { conditions }) };
        if (conditions === undefined) delete request.status.conditions;
        stampConditions(request, old, context);
      },
      validateUpdate: (request, old) => validateStatusChange(request, old, 'approval'),
    },
  },
  columns: [
    nameColumn,
    ageColumn,
    column<Request>('SignerName', 'Requested signer.', (request) => request.spec?.signerName ?? NONE),
    column<Request>('Requestor', 'Requester.', (request) => request.spec?.username ?? ''),
    column<Request>('RequestedDuration', 'Requested lifetime of the certificate.', durationText),
    column<Request>('Condition', 'State of the request.', requestCondition),
  ],
  fieldSelectors: { 'spec.signerName': (request) => request.spec?.signerName ?? '' },
  extraSubresources: [{ name: 'approval', kind: 'CertificateSigningRequest', verbs: ['get', 'patch', 'update'] }],
};
