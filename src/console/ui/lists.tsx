/** Pages that show a few kinds as lists, one at a time. */
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import type { KubeObject, ResourceType } from '../../api/meta/object.ts';
import { ageText } from '../data/format.ts';
import { getCommand } from '../data/kubectl.ts';
import { useCommand } from '../shell/command-line.tsx';
import { currentPlace, setQuery } from '../shell/router.ts';
import { type Column, DataTable } from './data-table.tsx';
import { useFeed, useNow } from './hooks.ts';
import { currentNamespace, NamespaceChoice } from './namespaces.tsx';
import { Link, pathOf } from './parts.tsx';

export interface ListView<T extends KubeObject> {
  readonly type: ResourceType<T>;
  /** Columns between name and age. */
  readonly columns: readonly Column<T>[];
}

/** Creates a view. The type parameter ensures that the columns match the kind. */
export const listView = <T extends KubeObject>(
  type: ResourceType<T>,
  label: string,
  columns: readonly Column<T>[],
) => ({
  label,
  name: type.plural,
  render: () => <List type={type} columns={columns} />,
});

export interface NamedView {
  readonly name: string;
  readonly label: string;
  readonly render: () => preact.JSX.Element;
}

export const editorPath = ({ group, version, plural }: ResourceType, object: KubeObject): string => {
  const { name = '', namespace } = object.metadata ?? {};
  const query = namespace === undefined ? '' : `?ns=${encodeURIComponent(namespace)}`;
  return pathOf('resources', group === '' ? 'core' : group, version, plural, name) + query;
};

function List<T extends KubeObject>({ type, columns }: ListView<T>) {
  const namespace = type.namespaced ? currentNamespace() : '';
  useCommand(getCommand(type, { namespace }));
  const snapshot = useFeed(type, { namespace });
  const nowMs = useNow();
  const all = useMemo<Column<T>[]>(
    () => [
      {
        name: 'Name',
        text: ({ metadata }) => metadata?.name ?? '',
        view: (object) => <Link to={editorPath(type, object)}>{object.metadata?.name}</Link>,
      },
      ...(type.namespaced ? [{ name: 'Namespace', text: ({ metadata }: T) => metadata?.namespace ?? '' }] : []),
      ...columns,
      { name: 'Age', text: ({ metadata }) => ageText(metadata?.creationTimestamp, nowMs) },
    ],
    [type, columns, nowMs],
  );
  const keyOf = ({ metadata }: T): string => `${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`;
  return (
    <>
      {type.namespaced ? <NamespaceChoice /> : null}
      <DataTable label={type.kind} columns={all} items={snapshot.items} keyOf={keyOf} snapshot={snapshot} />
    </>
  );
}

export interface ListsProps {
  readonly title: string;
  readonly views: readonly NamedView[];
  /** Content above each view. */
  readonly children?: ComponentChildren;
}

export function Lists({ title, views, children }: ListsProps) {
  const wanted = currentPlace.value.query.get('view');
  const view = views.find(({ name }) => name === wanted) ?? views[0];
  return (
    <>
      <h1>{title}</h1>
      <div class="row">
        {views.map(({ name, label }) => (
          <button key={name} type="button" aria-pressed={name === view?.name} onClick={() => setQuery('view', name)}>
            {label}
          </button>
        ))}
      </div>
      {children}
      <div key={view?.name}>{view?.render()}</div>
    </>
  );
}
