/** ResourceQuota: rejects writes that exceed a namespace's quotas. Usage is computed by api/quota. */

import type { ResourceQuota } from '../../../api/generated/core/v1.ts';
import { errors } from '../../../api/meta/status.ts';
import { amountsOf } from '../../../api/quota/amounts.ts';
import type { LimitedResource, QuotaRequest } from '../../../api/quota/check.ts';
import { evaluatorOf } from '../../../api/quota/evaluators.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { forbid, forbidWithoutName, isFor } from '../subject.ts';
import { QuotaAccessor, type QuotaStore, type Refusal } from './accessor.ts';

export interface ResourceQuotaDeps {
  readonly quotas: QuotaStore;
  /** Limited resources by `plural.group`. */
  readonly limited: ReadonlyMap<string, readonly LimitedResource[]>;
  readonly clock: Clock;
}

export function resourceQuota(deps: ResourceQuotaDeps): AdmissionPlugin {
  const accessor = new QuotaAccessor(deps.quotas, deps.clock);
  return {
    name: 'ResourceQuota',
    validate(request) {
      const { object, old, operation, subresource, namespace } = request;
      const { definition, plural } = request.kind;
      if (subresource === 'status' && isFor(request, '', 'resourcequotas')) checkStatus(request);
      if (object === undefined || namespace === '' || !definition.namespaced || definition.isComputed === true) return;
      const limited = deps.limited.get(`${plural}.${definition.group}`) ?? [];
      if (limited.length === 0 && deps.quotas.cached(namespace).length === 0) return;
      const evaluator = evaluatorOf({ group: definition.group, plural });
      if (evaluator?.handles({ operation, subresource, object, old }) !== true) return;
      return settle(request, { evaluator, object, old, limited, nowMs: deps.clock.nowMs() });
    },
  };

  /**
   * Rejects a status with lower usage while objects are being stored that the quota controller cannot have seen yet.
   */
  function checkStatus({ kind, namespace, name, object, old }: AdmissionRequest): void {
    const used = (quota: unknown) => amountsOf((quota as ResourceQuota | undefined)?.status?.used);
    const now = used(object);
    const isLess = [...used(old)].some(([each, before]) => (now.get(each)?.nanos ?? 0n) < before.nanos);
    if (isLess && accessor.isUnsettled(namespace, name)) {
      throw errors.conflict(kind, name, 'usage was reserved within the last second; compute it again and retry');
    }
  }

  async function settle(request: AdmissionRequest, question: QuotaRequest): Promise<void> {
    const { namespace } = request;
    const settled = await accessor.reserve(namespace, question, request.dryRun);
    if ('refusal' in settled) throw refusal(request, settled.refusal);
    const { charges } = settled;
    if (charges.length === 0) return;
    request.reservations?.push({
      used: () => accessor.settle(namespace, charges),
      refund: () => accessor.refund(namespace, charges),
    });
  }
}

const refusal = (request: AdmissionRequest, { message, plain }: Refusal) =>
  plain ? forbidWithoutName(request, message) : forbid(request, message);
