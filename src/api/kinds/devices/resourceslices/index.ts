/**
 * Devices that drivers publish. Source: k8s.io/kubernetes/pkg/registry/resource/resourceslice,
 * pkg/apis/resource/validation, pkg/printers/internalversion.
 */
import { timestamp } from '../../../../base/time/timestamps.ts';
import { dropUnsupported, sliceWarnings, validateSlice, validateSliceUpdate } from '../../../devices/slices.ts';
import type { ResourceSlice } from '../../../devices/types.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, bumpGeneration, metadataOf } from '../../../registry/strategies.ts';

/** Sets timeAdded of taints for which the driver sent no time. */
function stampTaints(slice: ResourceSlice, nowMs: number): void {
  const now = timestamp(nowMs);
  for (const device of slice.spec?.devices ?? []) for (const taint of device.taints ?? []) taint.timeAdded ??= now;
}

export const resourceSlices: KindDefinition<ResourceSlice> = {
  group: 'resource.k8s.io',
  version: 'v1',
  kind: 'ResourceSlice',
  plural: 'resourceslices',
  singular: 'resourceslice',
  listKind: 'ResourceSliceList',
  namespaced: false,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.resource.v1.ResourceSlice',
  returnsDeleted: true,
  storagePrefix: 'resourceslices',
  strategy: {
    prepareForCreate(slice, { nowMs }) {
      metadataOf(slice).generation = 1;
      stampTaints(slice, nowMs);
      dropUnsupported(slice);
    },
    prepareForUpdate(slice, old, { nowMs }) {
      stampTaints(slice, nowMs);
      bumpGeneration(slice, old);
      dropUnsupported(slice, old);
    },
    validate: validateSlice,
    validateUpdate: validateSliceUpdate,
    warnings: sliceWarnings,
  },
  fieldSelectors: {
    'spec.nodeName': (slice) => slice.spec?.nodeName ?? '',
    'spec.driver': (slice) => slice.spec?.driver ?? '',
  },
  columns: [
    nameColumn,
    column<ResourceSlice>('Node', 'The node of the devices.', (slice) => slice.spec?.nodeName ?? ''),
    column<ResourceSlice>('Driver', 'Driver that publishes the devices.', (slice) => slice.spec?.driver ?? ''),
    column<ResourceSlice>('Pool', 'Pool of the devices.', (slice) => slice.spec?.pool?.name ?? ''),
    ageColumn,
  ],
};
