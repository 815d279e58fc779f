/** Resource quotas: nothing is stored that would use more of a namespace's quotas than they allow. What is counted how: core/quota. */
import type { ResourceQuota } from 'kubernetes-types/core/v1';
import { errors } from '../../../../api/meta/status.ts';
import type { Clock } from '../../../../base/clock.ts';
import { amountsOf } from '../../../../core/quota/amounts.ts';
import type { LimitedResource, QuotaRequest } from '../../../../core/quota/check.ts';
import { evaluatorOf } from '../../../../core/quota/evaluators.ts';
import type { AdmissionPlugin, AdmissionRequest } from '../index.ts';
import { forbid, forbidPlainly, isFor } from '../subject.ts';
import { QuotaKeeper, type QuotaStore, type Refusal } from './keeper.ts';

export interface ResourceQuotaDeps {
  readonly quotas: QuotaStore;
  /** By `plural.group`. */
  readonly limited: ReadonlyMap<string, readonly LimitedResource[]>;
  readonly clock: Clock;
}

export function resourceQuota(deps: ResourceQuotaDeps): AdmissionPlugin {
  const keeper = new QuotaKeeper(deps.quotas, deps.clock);
  return {
    name: 'ResourceQuota',
    validate(request) {
      const { object, old, operation, subresource, namespace } = request;
      const { definition, plural } = request.kind;
      if (subresource === 'status' && isFor(request, '', 'resourcequotas')) checkStatus(request);
      if (object === undefined || namespace === '' || !definition.namespaced || definition.virtual === true) return;
      const limited = deps.limited.get(`${plural}.${definition.group}`) ?? [];
      if (limited.length === 0 && deps.quotas.cached(namespace).length === 0) return;
      const evaluator = evaluatorOf({ group: definition.group, plural });
      if (evaluator?.handles({ operation, subresource, object, old }) !== true) return;
      return settle(request, { evaluator, object, old, limited, nowMs: deps.clock.nowMs() });
    },
  };

  /** Who reckons what is used cannot have seen what is just being stored: less is not believed until it is. */
  function checkStatus({ kind, namespace, name, object, old }: AdmissionRequest): void {
    const used = (quota: unknown) => amountsOf((quota as ResourceQuota | undefined)?.status?.used as never);
    const now = used(object);
    const isLess = [...used(old)].some(([each, before]) => (now.get(each)?.nanos ?? 0n) < before.nanos);
    if (isLess && keeper.isUnsettled(namespace, name)) {
      throw errors.conflict(kind, name, 'usage is just being set aside; reckon it again in a second');
    }
  }

  async function settle(request: AdmissionRequest, question: QuotaRequest): Promise<void> {
    const { namespace } = request;
    const settled = await keeper.ask(namespace, question, request.dryRun);
    if ('refusal' in settled) throw refusal(request, settled.refusal);
    const { charges } = settled;
    if (charges.length === 0) return;
    request.reservations?.push({
      used: () => keeper.settle(namespace, charges),
      giveBack: () => keeper.giveBack(namespace, charges),
    });
  }
}

const refusal = (request: AdmissionRequest, { message, plain }: Refusal) =>
  plain ? forbidPlainly(request, message) : forbid(request, message);
