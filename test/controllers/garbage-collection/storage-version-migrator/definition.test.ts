import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CustomResourceDefinition } from '../../../../src/api/generated/apiextensions/v1.ts';
import {
  beginMigration,
  endMigration,
} from '../../../../src/controllers/garbage-collection/storage-version-migrator/definition.ts';

const definition = (generation: number): CustomResourceDefinition =>
  ({
    metadata: { name: 'boards.lab.example.com', generation },
    spec: {
      versions: [
        { name: 'v1', served: true, storage: false },
        { name: 'v2', served: true, storage: true },
      ],
    },
    status: { storedVersions: ['v1', 'v2'], conditions: [] },
  }) as never;
const shown = ({ status }: CustomResourceDefinition): unknown[] => [
  status?.storedVersions,
  ...(status?.conditions?.map(({ type, reason, status: state, message }) => [type, state, reason, message]) ?? []),
];

test('reduces stored versions to the storage version', () => {
  const migrated = definition(3);
  beginMigration(migrated, 'boards', '2026-01-01T00:00:00Z');
  assert.deepEqual(shown(migrated), [
    ['v1', 'v2'],
    ['StorageMigrating', 'True', 'MigrationRunning', 'Migration boards is running'],
  ]);
  endMigration(migrated, { succeeded: true }, '2026-01-01T00:00:01Z');
  const done = 'The migration has succeeded and the stored versions have been updated';
  assert.deepEqual(shown(migrated), [['v2'], ['StorageMigrating', 'False', 'MigrationSucceeded', done]]);
});

test('keeps stored versions if the definition has changed meanwhile or the migration failed', () => {
  const changed = definition(3);
  beginMigration(changed, 'boards', '2026-01-01T00:00:00Z');
  endMigration({ ...changed, metadata: { generation: 4 } }, { succeeded: true }, '2026-01-01T00:00:01Z');
  const mismatch =
    'The migration has succeeded but the stored versions have not been updated due to a generation mismatch';
  assert.deepEqual(shown(changed), [
    ['v1', 'v2'],
    ['StorageMigrating', 'False', 'MigrationSucceeded', mismatch],
  ]);
  // The observed generation is updated by the next migration, even with an equal message.
  beginMigration(changed, 'boards', '2026-01-01T00:00:02Z');
  beginMigration({ ...changed, metadata: { generation: 5 } }, 'boards', '2026-01-01T00:00:03Z');
  endMigration({ ...changed, metadata: { generation: 5 } }, { succeeded: false }, '2026-01-01T00:00:04Z');
  assert.deepEqual(shown(changed), [
    ['v1', 'v2'],
    ['StorageMigrating', 'False', 'MigrationFailed', 'The migration has failed'],
  ]);
  beginMigration({ ...changed, metadata: { generation: 5 } }, 'boards', '2026-01-01T00:00:05Z');
  endMigration({ ...changed, metadata: { generation: 5 } }, { succeeded: true }, '2026-01-01T00:00:06Z');
  assert.deepEqual(changed.status?.storedVersions, ['v2']);
});
