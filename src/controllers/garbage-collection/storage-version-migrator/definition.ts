/**
 * Changes of a migration to the definition of a custom resource. Source:
 * k8s.io/kubernetes/pkg/controller/storageversionmigrator/migrationrunner.go.
 */
import type { CustomResourceDefinition } from '../../../api/generated/apiextensions/v1.ts';
import { setCondition } from '../../../api/kinds/cluster/customresourcedefinitions/conditions.ts';

const TYPE = 'StorageMigrating';

const generationOf = ({ metadata }: CustomResourceDefinition): number => metadata?.generation ?? 0;

export function beginMigration(definition: CustomResourceDefinition, migration: string, now: string): void {
  const message = `Migration ${migration} is running`;
  setCondition(definition, stateOf(definition, 'True', 'MigrationRunning', message), now);
  noteGeneration(definition);
}

/** Records that objects are stored only in the storage version, unless the definition changed during the migration. */
export function endMigration(
  definition: CustomResourceDefinition,
  { succeeded }: { readonly succeeded: boolean },
  now: string,
): void {
  const before = definition.status?.conditions?.find(({ type }) => type === TYPE) as Observed | undefined;
  const unchanged = before !== undefined && before.observedGeneration === generationOf(definition);
  const outcome = unchanged
    ? ' and the stored versions have been updated'
    : ' but the stored versions have not been updated due to a generation mismatch';
  const state = succeeded
    ? stateOf(definition, 'False', 'MigrationSucceeded', `The migration has succeeded${outcome}`)
    : stateOf(definition, 'False', 'MigrationFailed', 'The migration has failed');
  setCondition(definition, state, now);
  noteGeneration(definition);
  const storage = definition.spec.versions.find((version) => version.storage)?.name;
  if (succeeded && unchanged && storage !== undefined && definition.status !== undefined)
    definition.status.storedVersions = [storage];
}

interface Observed {
  observedGeneration?: number;
}

const stateOf = (definition: CustomResourceDefinition, status: 'True' | 'False', reason: string, message: string) => ({
  ...({ type: TYPE, status, reason, message } as const),
  observedGeneration: generationOf(definition),
});

/** Sets the observed generation even if the condition is otherwise unchanged. */
function noteGeneration(definition: CustomResourceDefinition): void {
  const condition = definition.status?.conditions?.find(({ type }) => type === TYPE) as Observed | undefined;
  if (condition !== undefined) condition.observedGeneration = generationOf(definition);
}
