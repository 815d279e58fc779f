/**
 * Deletes the objects that `apply --prune` selects: they were applied before, match the selector and are in no file.
 * Source: pkg/cmd/apply/prune.go.
 */
import { ClientError } from '../../core/errors.ts';
import { type AnyObject, LAST_APPLIED } from '../../core/objects.ts';
import { pathOf, type ResourceInfo } from '../../core/resources.ts';
import { dryRunOf, printOutcome } from '../../printing.ts';
import type { Session } from '../../session.ts';

const NAMESPACED_KINDS = [
  ...['core/v1/ConfigMap', 'core/v1/Endpoints', 'core/v1/PersistentVolumeClaim', 'core/v1/Pod'],
  ...['core/v1/ReplicationController', 'core/v1/Secret', 'core/v1/Service', 'batch/v1/Job', 'batch/v1/CronJob'],
  ...['networking.k8s.io/v1/Ingress', 'apps/v1/DaemonSet', 'apps/v1/Deployment', 'apps/v1/ReplicaSet'],
  'apps/v1/StatefulSet',
];
const CLUSTER_KINDS = ['core/v1/Namespace', 'core/v1/PersistentVolume'];

/** Throws ClientError for an unknown kind, or if neither a selector nor `--all` was given. */
export async function checkPrune(session: Session): Promise<void> {
  const { flags } = session.context;
  if (flags.text('selector') === '' && !flags.bool('all'))
    throw new ClientError(
      'all resources selected for prune without explicitly passing --all. To prune all resources, pass the --all flag. If you did not mean to prune all resources, specify a label selector',
    );
  if (flags.bool('server-side'))
    throw new ClientError("--prune is in alpha and doesn't currently work on objects created by server-side apply");
  await resourcesOf(session);
}

/** Objects to delete. `applied` are the objects of the files, whose namespaces are searched. */
export async function prunable(session: Session, applied: readonly AnyObject[]): Promise<AnyObject[]> {
  const { flags } = session.context;
  const kept = new Set(applied.map(({ metadata }) => metadata?.uid));
  const namespaces = new Set(
    applied.flatMap(({ metadata }) => (metadata?.namespace === undefined ? [] : [metadata.namespace])),
  );
  const found: AnyObject[] = [];
  for (const resource of await resourcesOf(session)) {
    for (const namespace of resource.namespaced ? namespaces : [undefined])
      for (const object of await session.list(resource, namespace, { labelSelector: flags.text('selector') }))
        if (object.metadata?.annotations?.[LAST_APPLIED] !== undefined && !kept.has(object.metadata.uid))
          found.push(object);
  }
  return found;
}

async function resourcesOf(session: Session): Promise<ResourceInfo[]> {
  const listed = session.context.flags.list('prune-allowlist');
  const index = await session.resources();
  return (listed.length === 0 ? [...NAMESPACED_KINDS, ...CLUSTER_KINDS] : listed).flatMap((text) => {
    const [group = '', version = '', kind = '', more] = text.split('/');
    if (kind === '' || more !== undefined)
      throw new ClientError(`invalid GroupVersionKind format: ${text}, please follow <group/version/kind>`);
    const found = index.all.find(
      (each) => each.kind === kind && each.version === version && each.group === (group === 'core' ? '' : group),
    );
    if (found === undefined && listed.length > 0)
      throw new ClientError(
        `no matches for kind "${kind}" in version "${group === 'core' ? '' : `${group}/`}${version}"`,
      );
    return found === undefined ? [] : [found];
  });
}

/** Deletes the objects and prints them. */
export async function pruneObjects(session: Session, applied: readonly AnyObject[]): Promise<void> {
  for (const object of await prunable(session, applied))
    await deletePruned(session, await session.kind(object.apiVersion ?? '', object.kind ?? ''), object);
}

/** Deletes an object as `--cascade`, `--grace-period` and `--dry-run` require, and prints it. */
export async function deletePruned(session: Session, resource: ResourceInfo, object: AnyObject): Promise<void> {
  const { flags } = session.context;
  if (dryRunOf(flags) !== 'client')
    await session.send('DELETE', pathOf(resource, object.metadata?.namespace, object.metadata?.name), {
      query: { dryRun: dryRunOf(flags) === 'server' ? 'All' : undefined },
      body: {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        propagationPolicy: cascadeOf(flags.text('cascade')),
        ...(flags.int('grace-period') >= 0 && flags.has('grace-period')
          ? { gracePeriodSeconds: flags.int('grace-period') }
          : {}),
      },
    });
  await printOutcome(session.context, object, 'pruned');
}

function cascadeOf(text: string): string {
  const policies: Readonly<Record<string, string>> = {
    '': 'Background',
    background: 'Background',
    foreground: 'Foreground',
    orphan: 'Orphan',
  };
  const policy = policies[text];
  if (policy === undefined)
    throw new ClientError(`invalid cascade value (${text}). Must be "background", "foreground", or "orphan"`);
  return policy;
}
