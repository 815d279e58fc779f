import { useMemo } from 'preact/hooks';
import type { KubeObject } from '../../../api/meta/object.ts';
import { DEPLOYMENTS } from '../../data/api/resources.ts';
import { ageText } from '../../data/format.ts';
import { getCommand } from '../../data/kubectl.ts';
import { imagesOf, type WorkloadState, workloadState } from '../../data/workloads/workloads.ts';
import { useCommand } from '../../shell/command-line.tsx';
import type { PageProps } from '../../shell/page.ts';
import { setQuery } from '../../shell/router.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { useFeed, useNow } from '../../ui/hooks.ts';
import { currentNamespace, NamespaceChoice } from '../../ui/namespaces.tsx';
import { type Level, Link, pathOf, State } from '../../ui/parts.tsx';
import { WORKLOADS } from './kinds.ts';

const LEVELS: Readonly<Record<WorkloadState['health'], Level>> = {
  good: 'good',
  progressing: 'warn',
  bad: 'bad',
  idle: 'muted',
};

export const levelOf = ({ health }: WorkloadState): Level => LEVELS[health];

export default function Workloads({ query }: PageProps) {
  const type = WORKLOADS.find(({ plural }) => plural === query.get('kind')) ?? DEPLOYMENTS;
  const namespace = currentNamespace();
  useCommand(getCommand(type, { namespace }));
  const snapshot = useFeed<KubeObject>(type, { namespace });
  const nowMs = useNow();
  const columns = useMemo<Column<KubeObject>[]>(() => {
    // Items of a list have no `kind`, so it is added.
    const stateOf = (object: KubeObject): WorkloadState => workloadState({ ...object, kind: type.kind });
    const linkOf = ({ metadata }: KubeObject): string =>
      pathOf('workloads', type.plural, metadata?.namespace ?? '', metadata?.name ?? '');
    return [
      {
        name: 'Name',
        text: ({ metadata }) => metadata?.name ?? '',
        view: (object) => <Link to={linkOf(object)}>{object.metadata?.name}</Link>,
      },
      { name: 'Namespace', text: ({ metadata }) => metadata?.namespace ?? '' },
      { name: 'Ready', text: (object) => `${stateOf(object).ready}/${stateOf(object).desired}` },
      {
        name: 'State',
        text: (object) => stateOf(object).text,
        view: (object) => <State level={levelOf(stateOf(object))} text={stateOf(object).text} />,
      },
      { name: 'Images', text: imagesOf },
      { name: 'Age', text: ({ metadata }) => ageText(metadata?.creationTimestamp, nowMs) },
    ];
  }, [type, nowMs]);
  const keyOf = ({ metadata }: KubeObject): string => `${metadata?.namespace}/${metadata?.name}`;
  return (
    <>
      <h1>Workloads</h1>
      <div class="row">
        <label>
          Kind{' '}
          <select value={type.plural} onChange={({ currentTarget }) => setQuery('kind', currentTarget.value)}>
            {WORKLOADS.map(({ plural, kind }) => (
              <option key={plural} value={plural}>
                {kind}
              </option>
            ))}
          </select>
        </label>
        <NamespaceChoice />
        <Link to="/create">Create</Link>
      </div>
      {snapshot.version > 0 && snapshot.items.length === 0 && type === DEPLOYMENTS ? (
        <p>
          No application runs {namespace === '' ? 'in this cluster' : `in namespace ${namespace}`} yet.{' '}
          <Link to="/create">Create one from an image</Link>
        </p>
      ) : null}
      <DataTable label={type.kind} columns={columns} items={snapshot.items} keyOf={keyOf} snapshot={snapshot} />
    </>
  );
}
