/** Blocks of a range that are in use: users of namespaces. Source: openshift/api security/v1. */
import type { KubeObject } from '../../meta/object.ts';
import { nameColumn } from '../../printing/columns.ts';
import type { KindDefinition } from '../../registry/definition.ts';
import { ALL_VERBS } from '../../registry/strategies.ts';

export interface RangeAllocation extends KubeObject {
  /** `FIRST-LAST/SIZE`. */
  range?: string;
  /** Base64 of a big-endian number with a bit for each block. */
  data?: string;
}

export const rangeAllocations: KindDefinition<RangeAllocation> = {
  group: 'security.openshift.io',
  version: 'v1',
  kind: 'RangeAllocation',
  plural: 'rangeallocations',
  singular: 'rangeallocation',
  listKind: 'RangeAllocationList',
  namespaced: false,
  verbs: ALL_VERBS,
  schemaName: 'com.github.openshift.api.security.v1.RangeAllocation',
  skeleton: { range: '' },
  storagePrefix: 'openshift.io/rangeallocations',
  strategy: {},
  columns: [nameColumn],
};
