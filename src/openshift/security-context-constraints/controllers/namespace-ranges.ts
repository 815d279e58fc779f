/**
 * Assigns each namespace a block of user IDs and an SELinux level for its pods, in both profiles. The plan is made in
 * openshift/security-context-constraints/core.
 */
import type { Namespace } from '../../../api/generated/core/v1.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import type { ResourceClient } from '../../../client/types.ts';
import type { ControllerSpec } from '../../../controllers/framework/framework.ts';
import { ignoreNotFound } from '../../../controllers/framework/ignore-not-found.ts';
import { allocationOf, blockOf, lacksAllocation, planAllocation, SCC_UID } from '../core/namespace-ranges.ts';
import type { RangeAllocation } from '../kinds/rangeallocations/index.ts';

const nameOf = (namespace: Namespace): string => namespace.metadata?.name ?? '';

export const namespaceSecurityController: ControllerSpec = {
  name: 'namespace-security-allocation',
  reads: [resources.namespaces],
  writes: [resources.namespaces, resources.rangeAllocations],
  prepare: (handle) => {
    const namespaces = handle.informer(resources.namespaces);
    const client = handle.writer(resources.namespaces);
    const record = handle.writer(resources.rangeAllocations);
    return (scope) => {
      /** Blocks by name of the namespace, including blocks that the informer's copies do not show yet. */
      const blocks = new Map<string, number>();
      const note = (namespace: Namespace): void => {
        const block = blockOf(namespace);
        if (block !== undefined) blocks.set(nameOf(namespace), block);
      };
      for (const namespace of namespaces.list()) note(namespace);
      // One worker only, because each plan must include the block that the previous plan has assigned.
      const queue = scope.queue(async (name) => {
        const namespace = namespaces.get(name);
        if (namespace === undefined) return;
        const inUse = new Set([...blocks].filter(([owner]) => owner !== name).map(([, block]) => block));
        const plan = planAllocation(namespace, inUse);
        if (plan.kind === 'keep') return;
        if (plan.kind === 'full') throw new Error(`RangeAllocation ${SCC_UID}: no block of users is free`);
        blocks.set(name, plan.block);
        await writeRecord(record, inUse.add(plan.block));
        const { uid, resourceVersion } = namespace.metadata ?? {};
        const metadata = { uid, resourceVersion, annotations: plan.annotations };
        await ignoreNotFound(async () => void (await client.patch(name, undefined, 'merge', { metadata })));
      }, 1);
      const wake = (namespace: Namespace): void => {
        note(namespace);
        if (lacksAllocation(namespace)) queue.add(nameOf(namespace));
      };
      scope.onChange(namespaces, {
        added: wake,
        updated: wake,
        deleted: (namespace) => blocks.delete(nameOf(namespace)),
      });
    };
  },
};

/**
 * Writes the RangeAllocation. Called before the namespace is written, so that the RangeAllocation contains every used
 * block.
 */
async function writeRecord(client: ResourceClient<RangeAllocation>, used: ReadonlySet<number>): Promise<void> {
  const stored = await client.get(SCC_UID).catch((error: unknown) => {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  });
  const next = allocationOf(used, stored);
  if (stored === undefined) await client.create(next);
  else if (stored.data !== next.data || stored.range !== next.range) await client.update(next);
}
