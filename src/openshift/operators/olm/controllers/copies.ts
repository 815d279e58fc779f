/** Copies of an operator version in the namespaces that it watches, so that users of these namespaces see it. */

import { isApiError } from '../../../../api/meta/status.ts';
import { resources } from '../../../../api/resources.ts';
import { COPIED_LABEL, digestOf } from '../core/index.ts';
import type { ClusterServiceVersion } from '../kinds/types.ts';
import type { Olm } from './context.ts';

const DIGEST = 'olm.hyperedge.dev/digest';
/** Annotations that are not copied. */
const NOT_COPIED: ReadonlySet<string> = new Set([
  'alm-examples',
  'kubectl.kubernetes.io/last-applied-configuration',
  'olm.targetNamespaces',
]);

export async function copyToTargets(olm: Olm, csv: ClusterServiceVersion, targets: readonly string[]): Promise<void> {
  const { informers, handle } = olm;
  const client = handle.writer(resources.clusterServiceVersions);
  const { name = '', namespace = '' } = csv.metadata ?? {};
  const annotations = Object.fromEntries(
    Object.entries(csv.metadata?.annotations ?? {}).filter(([key]) => !NOT_COPIED.has(key)),
  );
  const digest = digestOf({ spec: csv.spec, annotations });
  for (const { metadata, status } of informers.namespaces.list()) {
    const target = metadata?.name ?? '';
    if (target === namespace || status?.phase === 'Terminating') continue;
    if (!targets.includes('') && !targets.includes(target)) continue;
    const found = informers.csvs.get(`${target}/${name}`);
    // An operator version with the same name that is not a copy must not be changed.
    if (found !== undefined && found.metadata?.labels?.[COPIED_LABEL] !== namespace) continue;
    if (found?.metadata?.annotations?.[DIGEST] === digest && found.status?.reason === 'Copied') continue;
    const copy: ClusterServiceVersion = {
      ...(csv.spec === undefined ? {} : { spec: csv.spec }),
      metadata: {
        ...found?.metadata,
        name,
        namespace: target,
        labels: { ...csv.metadata?.labels, [COPIED_LABEL]: namespace },
        annotations: { ...annotations, [DIGEST]: digest },
      },
    };
    try {
      const made = found === undefined ? await client.create(copy) : await client.update(copy);
      await client.update({ ...made, status: copiedStatus(csv, namespace) }, { subresource: 'status' });
    } catch (error) {
      // The namespace is terminating, or another process has just created the copy.
      if (!['NotFound', 'AlreadyExists', 'Forbidden'].some((reason) => isApiError(error, reason as 'NotFound')))
        throw error;
    }
  }
}

const copiedStatus = ({ status }: ClusterServiceVersion, namespace: string) => ({
  ...status,
  phase: 'Succeeded',
  reason: 'Copied',
  message: `The operator is running in ${namespace} but is managing this namespace`,
});

export function isWantedCopy({ informers }: Olm, copy: ClusterServiceVersion): boolean {
  const from = copy.metadata?.labels?.[COPIED_LABEL] ?? '';
  const original = informers.csvs.get(`${from}/${copy.metadata?.name}`);
  if (original === undefined || original.metadata?.deletionTimestamp !== undefined) return false;
  const [group] = informers.groups.list(from);
  const targets = group?.status?.namespaces ?? [];
  return targets.includes('') || targets.includes(copy.metadata?.namespace ?? '');
}
