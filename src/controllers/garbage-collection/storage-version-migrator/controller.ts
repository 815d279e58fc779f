/**
 * Rewrites all objects of a resource, so that they are stored in the storage version and with the current encryption
 * key.
 */

import type { CustomResourceDefinition } from '../../../api/generated/apiextensions/v1.ts';
import type { StorageVersionMigration } from '../../../api/kinds/cluster/storageversionmigrations/index.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import type { DiscoveredKind } from '../../framework/discovery.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import { beginMigration, endMigration } from './definition.ts';
import { isOver, withState } from './plan.ts';

export const storageVersionMigratorController: ControllerSpec = {
  name: 'storage-version-migrator-controller',
  eventSource: 'storage-version-migrator-controller',
  reads: [resources.storageVersionMigrations],
  writes: [resources.storageVersionMigrations, resources.customResourceDefinitions],
  uses: ['discovery', 'anyKind'],
  prepare,
};

const PAGE = 500;
const CONFLICTS = 5;

type DefinitionChange = (definition: CustomResourceDefinition, now: string) => void;

function prepare(handle: ControllerHandle): ControllerRun {
  const migrations = handle.informer(resources.storageVersionMigrations, { optional: true });
  const client = handle.writer(resources.storageVersionMigrations);
  const definitions = handle.writer(resources.customResourceDefinitions);

  const save = async (migration: StorageVersionMigration): Promise<StorageVersionMigration> =>
    client.update(migration, { subresource: 'status' });

  /**
   * Writes all objects of a kind again. Objects that other clients write or delete in the meantime need no migration.
   */
  const rewrite = async (kind: DiscoveredKind, signal: AbortSignal): Promise<void> => {
    const objects = handle.use('anyKind').client(kind);
    let next: string | undefined;
    do {
      const page = await objects.list({
        limit: PAGE,
        metadataOnly: true,
        signal,
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

  /**
   * Changes the definition of a custom resource. Resources without a definition have no list of stored versions to
   * update.
   */
  const changeDefinition = async (name: string, change: DefinitionChange): Promise<void> => {
    for (let attempt = 1; ; attempt++) {
      try {
        const definition = structuredClone(await definitions.get(name));
        change(definition, timestamp(handle.plan().nowMs));
        await definitions.update(definition, { subresource: 'status' });
        return;
      } catch (error) {
        if (isApiError(error, 'NotFound')) return;
        if (!isApiError(error, 'Conflict') || attempt >= CONFLICTS) throw error;
      }
    }
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
      await changeDefinition(name, (definition, now) =>
        beginMigration(definition, migration.metadata?.name ?? '', now),
      );
      running = await save(withState(migration, 'Running', '', handle.plan().nowMs, version));
      await rewrite(kind, signal);
      if (signal.aborted) return;
      await changeDefinition(name, (definition, now) => endMigration(definition, true, now));
    } catch (error) {
      const temporary = ['ServiceUnavailable', 'TooManyRequests', 'Timeout', 'Conflict', 'Expired', 'InternalError'];
      if (signal.aborted || temporary.some((reason) => isApiError(error, reason as 'Conflict'))) throw error;
      migration = running;
      await changeDefinition(name, (definition, now) => endMigration(definition, false, now));
      return fail(messageOf(error));
    }
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
