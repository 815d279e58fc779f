/** Claims, volumes, and images by node with the nodes that lack each. */
import { useMemo } from 'preact/hooks';
import { bytesText } from '../../data/format.ts';
import { type ImageView, imagesByName } from '../../data/images.ts';
import { CLAIMS, NODES, VOLUMES } from '../../data/resources.ts';
import { useCommand } from '../../shell/command-line.tsx';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { useFeed } from '../../ui/hooks.ts';
import { Lists, listView } from '../../ui/lists.tsx';
import { State } from '../../ui/parts.tsx';

const phase = (text: string | undefined) => (
  <State
    level={text === 'Bound' || text === 'Available' ? 'good' : text === 'Failed' || text === 'Lost' ? 'bad' : 'warn'}
    text={text ?? ''}
  />
);

const VIEWS = [
  listView(CLAIMS, [
    { name: 'State', text: ({ status }) => status?.phase ?? '', view: ({ status }) => phase(status?.phase) },
    {
      name: 'Capacity',
      text: ({ status, spec }) => String(status?.capacity?.['storage'] ?? spec?.resources?.requests?.['storage'] ?? ''),
    },
    { name: 'Volume', text: ({ spec }) => spec?.volumeName ?? '' },
    { name: 'Class', text: ({ spec }) => spec?.storageClassName ?? '' },
    { name: 'Access', text: ({ spec }) => (spec?.accessModes ?? []).join(', ') },
  ]),
  listView(VOLUMES, [
    { name: 'State', text: ({ status }) => status?.phase ?? '', view: ({ status }) => phase(status?.phase) },
    { name: 'Capacity', text: ({ spec }) => String(spec?.capacity?.['storage'] ?? '') },
    {
      name: 'Claim',
      text: ({ spec }) => (spec?.claimRef === undefined ? '' : `${spec.claimRef.namespace}/${spec.claimRef.name}`),
    },
    { name: 'Reclaim', text: ({ spec }) => spec?.persistentVolumeReclaimPolicy ?? '' },
  ]),
  { name: 'images', label: 'Images', render: () => <Images /> },
];

export default function Storage() {
  return <Lists title="Storage and images" views={VIEWS} />;
}

const COLUMNS: readonly Column<ImageView>[] = [
  { name: 'Image', text: ({ name }) => name },
  { name: 'Size', text: ({ bytes }) => bytes, view: ({ bytes }) => bytesText(bytes) },
  { name: 'On nodes', text: ({ nodes }) => nodes.join(', ') },
  { name: 'Missing on', text: ({ missing }) => missing.join(', ') },
];

function Images() {
  useCommand("kubectl get nodes -o 'jsonpath={.items[*].status.images[*].names}'");
  const snapshot = useFeed(NODES);
  const images = useMemo(() => imagesByName(snapshot.items), [snapshot.items]);
  return <DataTable label="Images" columns={COLUMNS} items={images} keyOf={({ name }) => name} snapshot={snapshot} />;
}
