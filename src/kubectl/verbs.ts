/** The verbs of the built-in client. Help, completion and man pages are generated from this table. */
import type { Verb } from './port.ts';
import { CLUSTER_VERBS } from './verb-table/cluster.ts';
import { OBJECT_VERBS } from './verb-table/objects.ts';
import { SETTING_VERBS } from './verb-table/set.ts';
import { WORKLOAD_VERBS } from './verb-table/workloads.ts';

export const VERBS: readonly Verb[] = [...OBJECT_VERBS, ...WORKLOAD_VERBS, ...CLUSTER_VERBS, ...SETTING_VERBS];
