/**
 * Deletes the objects of an operator version that are outside its namespace, because owner references cannot cover
 * them.
 */
import type { CustomResourceDefinition } from '../../../../api/generated/apiextensions/v1.ts';
import type { KubeObject } from '../../../../api/meta/object.ts';
import { resources } from '../../../../api/resources.ts';
import { ignoreNotFound } from '../../../../controllers/framework/ignore-not-found.ts';
import {
  CLEANUP_FINALIZER,
  COPIED_LABEL,
  CRD_KIND,
  conversionsOf,
  OWNER_LABEL,
  OWNER_NAMESPACE_LABEL,
  ownerLabels,
} from '../core/index.ts';
import type { ClusterServiceVersion } from '../kinds/types.ts';
import type { Olm } from './context.ts';

const RBAC = 'rbac.authorization.k8s.io/v1';
const ADMISSION = 'admissionregistration.k8s.io/v1';

/**
 * Kinds in order of deletion. Webhooks come first, because without their server they would reject further deletions.
 */
const KINDS: readonly (readonly [kind: string, apiVersion: string])[] = [
  ['ValidatingWebhookConfiguration', ADMISSION],
  ['MutatingWebhookConfiguration', ADMISSION],
  ['APIService', 'apiregistration.k8s.io/v1'],
  ['ClusterRoleBinding', RBAC],
  ['ClusterRole', RBAC],
  ['RoleBinding', RBAC],
  ['Role', RBAC],
];

/** Label selector for the objects that belong to an operator version. */
export function ownedBy(csv: ClusterServiceVersion): string {
  const labels = ownerLabels(csv);
  return [OWNER_LABEL, OWNER_NAMESPACE_LABEL].map((key) => `${key}=${labels[key]}`).join(',');
}

export async function cleanUp(olm: Olm, csv: ClusterServiceVersion): Promise<void> {
  const { manager } = olm.actors;
  const { name = '', namespace = '' } = csv.metadata ?? {};
  for (const [kind, apiVersion] of KINDS)
    for (const each of await manager.labelled(kind, apiVersion, ownedBy(csv))) await manager.remove(each);
  await restoreConversions(olm, csv);
  const client = olm.handle.writer(resources.clusterServiceVersions);
  for (const copy of olm.informers.csvs.list()) {
    if (copy.metadata?.name !== name || copy.metadata.labels?.[COPIED_LABEL] !== namespace) continue;
    const { namespace: target } = copy.metadata;
    await ignoreNotFound(() => client.delete(name, target));
  }
  const finalizers = (csv.metadata?.finalizers ?? []).filter((each) => each !== CLEANUP_FINALIZER);
  await ignoreNotFound(() => client.update({ ...csv, metadata: { ...csv.metadata, finalizers } }));
}

/**
 * Resets the conversion of custom resource definitions. The conversion webhook is deleted with the operator version,
 * and without it the API server could not serve the custom resources.
 */
async function restoreConversions(olm: Olm, csv: ClusterServiceVersion): Promise<void> {
  const { manager } = olm.actors;
  const { name, namespace = '' } = csv.metadata ?? {};
  const required = new Set(
    olm.informers.csvs
      .list(namespace)
      .filter((each) => each.metadata?.name !== name && each.metadata?.deletionTimestamp === undefined)
      .flatMap((each) => conversionsOf(each, '').map(({ crd }) => crd)),
  );
  for (const { crd } of conversionsOf(csv, '')) {
    if (required.has(crd)) continue;
    const at: KubeObject = { apiVersion: 'apiextensions.k8s.io/v1', kind: CRD_KIND, metadata: { name: crd } };
    const found = await manager.get<CustomResourceDefinition & KubeObject>(at);
    if (found?.spec?.conversion?.webhook?.clientConfig?.service?.namespace !== namespace) continue;
    await manager.update({ ...found, spec: { ...found.spec, conversion: { strategy: 'None' } } } as KubeObject);
  }
}
