/**
 * Range allocations, which record the blocks of the UID range that namespaces use. Source: openshift/api security/v1.
 */
import type { KubeObject } from '../../../../api/meta/object.ts';
import { nameColumn } from '../../../../api/printing/columns.ts';
import type { KindDefinition } from '../../../../api/registry/definition.ts';
import { ALL_VERBS } from '../../../../api/registry/strategies.ts';

export interface RangeAllocation extends KubeObject {
  /** Range in the form `FIRST-LAST/SIZE`. */
  range?: string;
  /** Base64 of a big-endian bitmap with one bit per block. */
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
