/**
 * Publishes the service address range as a ServiceCIDR object. Source:
 * k8s.io/kubernetes/pkg/controlplane/controller/defaultservicecidr.
 */

import type { ServiceCidr } from '../../api/kinds/network/servicecidrs/index.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import type { ServerContext, WriteContext } from '../rest/context.ts';
import { updateObject } from '../rest/writes/update.ts';
import { ensureObject, ownRequest } from './index.ts';

type ServiceRangeContext = WriteContext & Pick<ServerContext, 'services'>;

const GROUP = 'networking.k8s.io';
const PLURAL = 'servicecidrs';
export const RANGE_NAME = 'kubernetes';

const isReady = (range: ServiceCidr): boolean =>
  range.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;

/**
 * Creates the ServiceCIDR and sets its Ready condition. Existing ranges are kept because their addresses may be in use;
 * a second address family is added.
 */
export async function ensureServiceRange(context: ServiceRangeContext): Promise<void> {
  const cidrs = [...context.services.ownRanges];
  const range: ServiceCidr = { metadata: { name: RANGE_NAME }, spec: { cidrs } };
  await ensureObject(context, PLURAL, GROUP, range as KubeObject, (stored) =>
    withSecondFamily(stored as ServiceCidr, cidrs),
  );
  const request = { ...ownRequest(context, PLURAL, GROUP, '', RANGE_NAME), subresource: 'status' };
  const stored = request.kind.cache?.get('', RANGE_NAME)?.parse() as ServiceCidr | undefined;
  const strategy = request.kind.definition.statusStrategy;
  if (strategy === undefined || (stored !== undefined && isReady(stored))) return;
  const lastTransitionTime = timestamp(context.clock.nowMs());
  await updateObject(context, request, {
    strategy,
    next: (current) => {
      if (isReady(current as ServiceCidr)) return current;
      const message = 'Kubernetes default Service CIDR is ready';
      const ready = { type: 'Ready', status: 'True', lastTransitionTime, reason: '', message };
      return { ...current, status: { conditions: [ready] } } as KubeObject;
    },
  });
}

/** Adds the range of a second family to the stored ServiceCIDR; undefined if there is nothing to write. */
function withSecondFamily(stored: ServiceCidr, cidrs: string[]): ServiceCidr | undefined {
  const present = stored.spec?.cidrs ?? [];
  const grows = present.length === 1 && cidrs.length === 2 && present[0] === cidrs[0];
  return grows ? { ...stored, spec: { cidrs } } : undefined;
}
