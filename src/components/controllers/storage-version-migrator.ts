/**
 * Rewrites all objects of a resource, so that they are stored in its storage version and with the present encryption
 * key. Plan in core/reconcile/storage-version-migrator.
 */
import type { StorageVersionMigration } from '../../api/kinds/storageversionmigrations/index.ts';
import { objectKey } from '../../api/meta/object.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import { isOver, withState } from '../../core/reconcile/storage-version-migrator/plan.ts';
import type { DiscoveredKind } from './discovery.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from './framework.ts';
import { ignoreNotFound } from './ignore-not-found.ts';

export const storageVersionMigratorController: ControllerSpec = {
  name: 'storage-version-migrator-controller',
  eventSource: 'storage-version-migrator-controller',
  reads: [resources.storageVersionMigrations],
  writes: [resources.storageVersionMigrations],
  uses: ['discovery', 'anyKind'],
  prepare,
};

const PAGE = 500;

function prepare(handle: ControllerHandle): ControllerRun {
  const migrations = handle.informer(resources.storageVersionMigrations);
  const client = handle.writer(resources.storageVersionMigrations);

  const save = async (migration: StorageVersionMigration): Promise<StorageVersionMigration> =>
    client.update(migration, { subresource: 'status' });

  /** Objects that others write or delete meanwhile need nothing more. */
  const rewrite = async (kind: DiscoveredKind, signal: AbortSignal): Promise<void> => {
    const objects = handle.use('anyKind').client(kind);
    let next: string | undefined;
    do {
      const page = await objects.list({
        ...{ limit: PAGE, metadataOnly: true, signal },
        ...(next === undefined ? {} : { continue: next }),
      });
      for (const { metadata } of page.items) {
        const { name = '', namespace, uid, resourceVersion } = metadata ?? {};
        const patch = { metadata: { uid, resourceVersion } };
        try {
          await ignoreNotFound(async () => void (await objects.patch(name, namespace, 'merge', patch, { signal })));
        } catch (error) {
          if (!isApiError(error, 'Conflict')) throw error;
        }
      }
      next = page.metadata?.continue;
    } while (next !== undefined && next !== '' && !signal.aborted);
  };

  const migrate = async (migration: StorageVersionMigration, signal: AbortSignal): Promise<void> => {
    const { group = '', resource = '' } = migration.spec?.resource ?? {};
    const name = group === '' ? resource : `${resource}.${group}`;
    const { kinds } = await handle.use('discovery')(signal);
    const kind = kinds.find((each) => each.group === group && each.plural === resource);
    const fail = async (why: string): Promise<void> => {
      handle.log.warn('storage version migration failed', { migration: migration.metadata?.name, error: why });
      await save(withState(migration, 'Failed', why, handle.plan().nowMs));
    };
    if (kind === undefined) return fail(`resource ${name} is not served`);
    if (!kind.verbs.has('list') || !kind.verbs.has('patch'))
      return fail(`resource ${name} cannot be listed and patched`);
    let running = migration;
    try {
      const { metadata } = await handle.use('anyKind').client(kind).list({ limit: 1, metadataOnly: true, signal });
      const version = migration.status?.resourceVersion ?? metadata?.resourceVersion;
      running = await save(withState(migration, 'Running', '', handle.plan().nowMs, version));
      await rewrite(kind, signal);
    } catch (error) {
      const temporary = ['ServiceUnavailable', 'TooManyRequests', 'Timeout', 'Conflict', 'Expired', 'InternalError'];
      if (signal.aborted || temporary.some((reason) => isApiError(error, reason as 'Conflict'))) throw error;
      migration = running;
      return fail(messageOf(error));
    }
    if (signal.aborted) return;
    await save(withState(running, 'Succeeded', '', handle.plan().nowMs));
    handle.log.info('storage version migrated', { migration: migration.metadata?.name, resource: name });
  };

  return (scope) => {
    const queue = scope.queue(async (key) => {
      const migration = migrations.get(key);
      if (migration === undefined || isOver(migration)) return;
      await migrate(migration, scope.signal);
    }, 1);
    const due = (migration: StorageVersionMigration): void => queue.add(objectKey(migration));
    scope.onChange(migrations, { added: due, updated: due });
  };
}
