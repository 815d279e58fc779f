import { type ServedKind, servedKinds } from '../../data/api/discovery.ts';
import { useCommand } from '../../shell/command-line.tsx';
import { api } from '../../ui/context.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { usePoll } from '../../ui/hooks.ts';
import { Link, pathOf } from '../../ui/parts.tsx';

const COLUMNS: readonly Column<ServedKind>[] = [
  {
    name: 'Kind',
    text: ({ kind }) => kind,
    view: ({ kind, group, version, plural }) => (
      <Link to={pathOf('resources', group || 'core', version, plural)}>{kind}</Link>
    ),
  },
  { name: 'Group', text: ({ group }) => group || 'core' },
  { name: 'Version', text: ({ version }) => version },
  { name: 'Scope', text: ({ namespaced }) => (namespaced ? 'namespace' : 'cluster') },
  { name: 'Short names', text: ({ shortNames }) => shortNames.join(', ') },
];

/** Every kind that the server serves. */
export default function Resources() {
  useCommand('kubectl api-resources');
  const kinds = usePoll((signal) => servedKinds(api, signal), 60_000, 'kinds');
  return (
    <>
      <h1>Any resource</h1>
      <DataTable
        label="Kinds"
        columns={COLUMNS}
        items={kinds ?? []}
        keyOf={({ group, plural }) => `${group}/${plural}`}
        snapshot={{ state: kinds === undefined ? 'loading' : 'live', error: undefined }}
      />
    </>
  );
}
