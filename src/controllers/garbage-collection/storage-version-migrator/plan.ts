/**
 * Conditions of a StorageVersionMigration. Source: KEP-4192; k8s.io/kubernetes/pkg/controller/storageversionmigrator.
 */

import type { Condition } from '../../../api/generated/meta/v1.ts';
import type { StorageVersionMigration } from '../../../api/kinds/cluster/storageversionmigrations/index.ts';
import { transitionTime } from '../../../api/meta/conditions.ts';
import { timestamp } from '../../../base/time/timestamps.ts';

export type MigrationState = 'Running' | 'Succeeded' | 'Failed';

const REASON: Readonly<Record<MigrationState, string>> = {
  Running: 'StorageVersionMigrationInProgress',
  Succeeded: 'StorageVersionMigrationSucceeded',
  Failed: 'StorageVersionMigrationFailed',
};

const hasCondition = ({ status }: StorageVersionMigration, type: MigrationState): boolean =>
  status?.conditions?.some((each) => each.type === type && each.status === 'True') === true;

/** Whether the migration has succeeded or failed. */
export const isOver = (migration: StorageVersionMigration): boolean =>
  hasCondition(migration, 'Succeeded') || hasCondition(migration, 'Failed');

/** Status with this state as its newest condition. A final state sets the condition Running to False. */
export function withState(
  migration: StorageVersionMigration,
  state: MigrationState,
  message: string,
  nowMs: number,
  resourceVersion?: string,
): StorageVersionMigration {
  const before = migration.status?.conditions ?? [];
  const condition = (type: MigrationState, status: 'True' | 'False', text: string): Condition => {
    const known = before.find((each) => each.type === type);
    return {
      type,
      status,
      reason: REASON[type],
      message: text,
      lastTransitionTime: transitionTime(known, status, timestamp(nowMs)),
    };
  };
  const others = before.filter(({ type }) => type !== state && type !== 'Running');
  const ended = state !== 'Running' && before.some(({ type }) => type === 'Running');
  return {
    ...migration,
    status: {
      ...migration.status,
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      conditions: [...others, ...(ended ? [condition('Running', 'False', '')] : []), condition(state, 'True', message)],
    },
  };
}
