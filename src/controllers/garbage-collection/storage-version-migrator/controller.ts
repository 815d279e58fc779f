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
import { omitUndefined } from '../../../base/json/omit-fields.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
import { ControllerTerm } from '../../framework/controller-term.ts';
import type { DiscoveredKind } from '../../framework/discovery.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec, RunScope } from '../../framework/framework.ts';
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

/** Errors after which the migration is tried again. Every other error ends it as failed. */
const TEMPORARY = ['ServiceUnavailable', 'TooManyRequests', 'Timeout', 'Conflict', 'Expired', 'InternalError'] as const;

type DefinitionChange = (definition: CustomResourceDefinition, now: string) => void;

function prepare(handle: ControllerHandle): ControllerRun {
  const access: Access = {
    migrations: handle.informer(resources.storageVersionMigrations, { optional: true }),
    client: handle.writer(resources.storageVersionMigrations),
    definitions: handle.writer(resources.customResourceDefinitions),
  };
  return (scope) => new StorageVersionMigrator(handle, access, scope).start();
}

interface Access {
  readonly migrations: Informer<StorageVersionMigration>;
  readonly client: ResourceClient<StorageVersionMigration>;
  readonly definitions: ResourceClient<CustomResourceDefinition>;
}

class StorageVersionMigrator extends ControllerTerm {
  readonly #access: Access;

  constructor(handle: ControllerHandle, access: Access, scope: RunScope) {
    super(handle, scope, 1);
    this.#access = access;
  }

  override start(): void {
    const due = (migration: StorageVersionMigration): void => this.queue.add(objectKey(migration));
    this.scope.onChange(this.#access.migrations, { added: due, updated: due });
  }

  protected override async sync(key: string): Promise<void> {
    const migration = this.#access.migrations.get(key);
    if (migration === undefined || isOver(migration)) return;
    const { group = '', resource = '' } = migration.spec?.resource ?? {};
    const name = group === '' ? resource : `${resource}.${group}`;
    const { kinds } = await this.handle.use('discovery')(this.scope.signal);
    const kind = kinds.find((each) => each.group === group && each.plural === resource);
    if (kind === undefined) return this.#fail(migration, `resource ${name} is not served`);
    if (!kind.verbs.has('list') || !kind.verbs.has('patch'))
      return this.#fail(migration, `resource ${name} cannot be listed and patched`);
    await this.#migrate(migration, kind, name);
  }

  /** `resource`: name of the custom resource definition, if the kind has one. */
  async #migrate(migration: StorageVersionMigration, kind: DiscoveredKind, resource: string): Promise<void> {
    const { signal } = this.scope;
    const { name = '' } = migration.metadata ?? {};
    let running = migration;
    try {
      const objects = this.handle.use('anyKind').client(kind);
      const { metadata } = await objects.list({ limit: 1, metadataOnly: true, signal });
      const version = migration.status?.resourceVersion ?? metadata?.resourceVersion;
      await this.#changeDefinition(resource, (definition, now) => beginMigration(definition, name, now));
      running = await this.#save(withState(migration, 'Running', '', this.handle.plan().nowMs, version));
      await this.#rewriteObjects(kind);
      if (signal.aborted) return;
      await this.#changeDefinition(resource, (definition, now) => endMigration(definition, { succeeded: true }, now));
    } catch (error) {
      if (signal.aborted || TEMPORARY.some((reason) => isApiError(error, reason))) throw error;
      await this.#changeDefinition(resource, (definition, now) => endMigration(definition, { succeeded: false }, now));
      return this.#fail(running, messageOf(error));
    }
    await this.#save(withState(running, 'Succeeded', '', this.handle.plan().nowMs));
    this.handle.log.info('storage version migrated', { migration: name, resource });
  }

  /**
   * Writes all objects of a kind again. Objects that other clients write or delete in the meantime need no migration.
   */
  async #rewriteObjects(kind: DiscoveredKind): Promise<void> {
    const { signal } = this.scope;
    const objects = this.handle.use('anyKind').client(kind);
    let next: string | undefined;
    do {
      const page = await objects.list(omitUndefined({ limit: PAGE, metadataOnly: true, signal, continue: next }));
      for (const { metadata } of page.items) {
        const { name = '', namespace, uid, resourceVersion } = metadata ?? {};
        const patch = { metadata: { uid, resourceVersion } };
        try {
          await ignoreNotFound(() => objects.patch(name, namespace, 'merge', patch, { signal }));
        } catch (error) {
          if (!isApiError(error, 'Conflict')) throw error;
        }
      }
      next = page.metadata?.continue;
    } while (next !== undefined && next !== '' && !signal.aborted);
  }

  /**
   * Changes the definition of a custom resource. Resources without a definition have no list of stored versions to
   * update.
   */
  async #changeDefinition(name: string, change: DefinitionChange): Promise<void> {
    const { definitions } = this.#access;
    for (let attempt = 1; ; attempt++) {
      try {
        const definition = structuredClone(await definitions.get(name));
        change(definition, timestamp(this.handle.plan().nowMs));
        await definitions.update(definition, { subresource: 'status' });
        return;
      } catch (error) {
        if (isApiError(error, 'NotFound')) return;
        if (!isApiError(error, 'Conflict') || attempt >= CONFLICTS) throw error;
      }
    }
  }

  async #fail(migration: StorageVersionMigration, why: string): Promise<void> {
    const { name } = migration.metadata ?? {};
    this.handle.log.warn('storage version migration failed', { migration: name, error: why });
    await this.#save(withState(migration, 'Failed', why, this.handle.plan().nowMs));
  }

  #save(migration: StorageVersionMigration): Promise<StorageVersionMigration> {
    return this.#access.client.update(migration, { subresource: 'status' });
  }
}
