/**
 * Limit ranges. Source: k8s.io/kubernetes/pkg/registry/core/limitrange, pkg/apis/core/v1 SetDefaults_LimitRangeItem.
 */
import type { LimitRange, LimitRangeItem } from '../../../generated/core/v1.ts';
import { createdAtColumn, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, metadataOf } from '../../../registry/strategies.ts';
import { validateLimitRange } from './validation.ts';

type Amounts = Record<string, string>;

/** Fills unset values: limits from the maximum, requests from the limits and then from the minimum. */
function setItemDefaults(item: LimitRangeItem): void {
  if (item.type !== 'Container') return;
  const limits = filled(item.default, item.max);
  const requests = filled(filled(item.defaultRequest, limits), item.min);
  if (limits !== undefined) item.default = limits;
  if (requests !== undefined) item.defaultRequest = requests;
}

function filled(given: Amounts | undefined, from: Amounts | undefined): Amounts | undefined {
  const missing = Object.entries(from ?? {}).filter(([name]) => given === undefined || !Object.hasOwn(given, name));
  return missing.length === 0 ? given : { ...given, ...Object.fromEntries(missing) };
}

export const limitRanges: KindDefinition<LimitRange> = {
  group: '',
  version: 'v1',
  kind: 'LimitRange',
  plural: 'limitranges',
  singular: 'limitrange',
  listKind: 'LimitRangeList',
  namespaced: true,
  shortNames: ['limits'],
  verbs: ALL_VERBS,
  allowCreateOnUpdate: true,
  schemaName: 'io.k8s.api.core.v1.LimitRange',
  skeleton: { spec: { limits: null } },
  storagePrefix: 'limitranges',
  setDefaults(range) {
    for (const item of range.spec?.limits ?? []) setItemDefaults(item);
  },
  strategy: {
    prepareForCreate(range, context) {
      const metadata = metadataOf(range);
      if ((metadata.name ?? '') === '') metadata.name = context.newUid();
    },
    validate: validateLimitRange,
  },
  columns: [nameColumn, createdAtColumn],
};
