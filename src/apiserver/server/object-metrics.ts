/** Object counts and sizes by kind. Source: k8s.io/apiserver/pkg/storage/etcd3/metrics. */
import type { ServedKind } from '../pipeline/kinds.ts';
import type { KindCache } from '../watch-cache/kind-cache.ts';

interface Kept {
  readonly group: string;
  readonly plural: string;
  readonly cache: KindCache;
}

/** Metrics in text format, without a trailing line break. */
export function objectMetrics(kinds: Iterable<ServedKind>): string {
  const kept = keptKinds(kinds);
  const series = (
    [name, type, help]: readonly [string, 'gauge' | 'counter', string],
    labels: (kind: Kept) => string,
    value: (kind: Kept) => number,
    always = true,
  ): string[] => [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} ${type}`,
    ...kept.filter((kind) => always || value(kind) > 0).map((kind) => `${name}{${labels(kind)}} ${value(kind)}`),
  ];
  const byGroup = ({ group, plural }: Kept): string => `group="${group}",resource="${plural}"`;
  const together = ({ group, plural }: Kept): string => `resource="${group === '' ? plural : `${plural}.${group}`}"`;
  const size = ({ cache }: Kept): number => cache.size;
  return [
    ...series(
      [
        'apiserver_storage_objects',
        'gauge',
        '[DEPRECATED, consider using apiserver_resource_objects instead] Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.',
      ],
      together,
      size,
    ),
    ...series(
      [
        'apiserver_resource_objects',
        'gauge',
        'Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.',
      ],
      byGroup,
      size,
    ),
    ...series(
      ['apiserver_storage_events_received_total', 'counter', 'Number of etcd events received split by kind.'],
      byGroup,
      ({ cache }) => cache.received,
      false,
    ),
    ...series(
      ['apiserver_registered_watchers', 'gauge', 'Number of currently registered watchers for a given resources'],
      together,
      ({ cache }) => cache.watchers,
      false,
    ),
  ].join('\n');
}

/** Stored kinds. A kind that is served in several versions is listed once. */
function keptKinds(kinds: Iterable<ServedKind>): Kept[] {
  const kept = new Map<KindCache, Kept>();
  for (const { definition, cache } of kinds) {
    if (cache === undefined || kept.has(cache)) continue;
    kept.set(cache, { group: definition.group, plural: definition.plural, cache });
  }
  return [...kept.values()];
}
