import { useMemo } from 'preact/hooks';
import type { Pod } from '../../api/generated/core/v1.ts';
import { PODS } from '../data/api/resources.ts';
import { ageText } from '../data/format.ts';
import { podStatusText } from '../data/pods/explain.ts';
import type { FeedScope } from '../data/watch/pool.ts';
import { type Column, DataTable } from './data-table.tsx';
import { useFeed, useNow } from './hooks.ts';
import { type Level, Link, pathOf, State } from './parts.tsx';

const nameOf = ({ metadata }: Pod): string => metadata?.name ?? '';
const namespaceOf = ({ metadata }: Pod): string => metadata?.namespace ?? '';

export function podLevel(pod: Pod): Level {
  const text = podStatusText(pod);
  if (text === 'Running') {
    const statuses = pod.status?.containerStatuses ?? [];
    return statuses.every(({ ready }) => ready === true) ? 'good' : 'warn';
  }
  if (/^(?:Succeeded|Completed|Terminating)$/.test(text)) return 'muted';
  return /Err|BackOff|Fail|Evicted|OOM|Invalid/.test(text) ? 'bad' : 'warn';
}

/** Live pods of a namespace, a node or a workload. */
export function PodTable({ scope }: { readonly scope: FeedScope }) {
  const snapshot = useFeed(PODS, scope);
  const nowMs = useNow();
  const columns = useMemo<Column<Pod>[]>(
    () => [
      {
        name: 'Name',
        text: nameOf,
        view: (pod) => <Link to={pathOf('pods', namespaceOf(pod), nameOf(pod))}>{nameOf(pod)}</Link>,
      },
      { name: 'Namespace', text: namespaceOf },
      {
        name: 'Status',
        text: podStatusText,
        view: (pod) => <State level={podLevel(pod)} text={podStatusText(pod)} />,
      },
      {
        name: 'Ready',
        text: ({ status, spec }) => {
          const ready = (status?.containerStatuses ?? []).filter((each) => each.ready === true).length;
          return `${ready}/${spec?.containers?.length ?? 0}`;
        },
      },
      {
        name: 'Restarts',
        text: ({ status }) =>
          status?.containerStatuses?.reduce((sum, { restartCount = 0 }) => sum + restartCount, 0) ?? 0,
      },
      {
        name: 'Node',
        text: ({ spec }) => spec?.nodeName ?? '',
        view: ({ spec: { nodeName = '' } = {} }) =>
          nodeName === '' ? null : <Link to={pathOf('nodes', nodeName)}>{nodeName}</Link>,
      },
      { name: 'Age', text: ({ metadata }) => ageText(metadata?.creationTimestamp, nowMs) },
    ],
    [nowMs],
  );
  const keyOf = (pod: Pod): string => `${namespaceOf(pod)}/${nameOf(pod)}`;
  return <DataTable label="Pods" columns={columns} items={snapshot.items} keyOf={keyOf} snapshot={snapshot} />;
}
