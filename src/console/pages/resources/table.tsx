/** Server-side table of any kind. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { ResourceType } from '../../../api/meta/object.ts';
import { collectionPath } from '../../../client/resource-path.ts';
import { cellText, type TableColumn, type TableRow, tableSource } from '../../data/api/table.ts';
import { getCommand } from '../../data/kubectl.ts';
import type { Snapshot } from '../../data/watch/feed.ts';
import { useCommand } from '../../shell/command-line.tsx';
import type { PageProps } from '../../shell/page.ts';
import { feedPool } from '../../ui/context.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { editorPath } from '../../ui/lists.tsx';
import { currentNamespace, NamespaceChoice } from '../../ui/namespaces.tsx';
import { Link } from '../../ui/parts.tsx';

const EMPTY: Snapshot<TableRow> = { items: [], state: 'loading', error: undefined, version: 0 };

export const typeOf = ({ group = '', version = '', plural = '' }: PageProps['params']): ResourceType => ({
  group: group === 'core' ? '' : group,
  version,
  plural,
  kind: plural,
  // The scope of the kind is unknown here. The path without a namespace is correct for both scopes.
  namespaced: true,
});

export default function ResourceTable({ params }: PageProps) {
  const type = typeOf(params);
  const namespace = currentNamespace();
  const path = collectionPath(type, namespace);
  useCommand(getCommand(type, { namespace }));
  const [snapshot, setSnapshot] = useState(EMPTY);
  const [columns, setColumns] = useState<readonly TableColumn[]>([]);
  const [isWide, setWide] = useState(false);
  useEffect(() => {
    const { feed, release } = feedPool.acquireSource(tableSource(path, {}, setColumns));
    setSnapshot(feed.snapshot());
    const end = feed.subscribe(setSnapshot);
    return () => {
      end();
      release();
    };
  }, [path]);
  const { group, version, plural } = type;
  const shown = useMemo<Column<TableRow>[]>(() => {
    const served = columns
      .map((column, index) => ({ column, index }))
      .filter(({ column }) => isWide || column.priority === 0)
      .map(({ column: { name, format }, index }): Column<TableRow> => {
        const text = ({ cells }: TableRow): string | number => {
          const cell = cells[index];
          return typeof cell === 'number' ? cell : cellText(cell);
        };
        if (format !== 'name') return { name, text };
        const link = { group, version, plural, kind: plural, namespaced: true };
        return { name, text, view: (row) => <Link to={editorPath(link, row)}>{text(row)}</Link> };
      });
    const namespaces = { name: 'Namespace', text: ({ metadata }: TableRow) => metadata?.namespace ?? '' };
    return [...served.slice(0, 1), namespaces, ...served.slice(1)];
  }, [columns, isWide, group, version, plural]);
  return (
    <>
      <h1>{plural}</h1>
      <div class="row">
        <NamespaceChoice />
        <label>
          <input type="checkbox" checked={isWide} onChange={() => setWide(!isWide)} /> all columns
        </label>
      </div>
      <DataTable
        key={plural}
        label={plural}
        columns={shown}
        items={snapshot.items}
        keyOf={({ metadata }) => `${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`}
        snapshot={snapshot}
      />
    </>
  );
}
