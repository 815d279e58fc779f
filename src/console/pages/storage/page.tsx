/** Claims, volumes, and images with the nodes that have or lack them. */
import { useMemo } from 'preact/hooks';
import { CLAIMS, NODES, PODS, VOLUMES } from '../../data/api/resources.ts';
import { bytesText } from '../../data/format.ts';
import { getCommand } from '../../data/kubectl.ts';
import { type ImageView, imagesByName, type MissingImage, missingImages } from '../../data/workloads/images.ts';
import { useCommand } from '../../shell/command-line.tsx';
import { currentPlace, setQuery } from '../../shell/router.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { useFeed } from '../../ui/hooks.ts';
import { Later } from '../../ui/later.tsx';
import { Lists, listView } from '../../ui/lists.tsx';
import { currentNamespace, NamespaceChoice } from '../../ui/namespaces.tsx';
import { Link, pathOf, State } from '../../ui/parts.tsx';

const loadUpload = () => import('./upload.tsx');

const phase = (text: string | undefined) => (
  <State
    level={text === 'Bound' || text === 'Available' ? 'good' : text === 'Failed' || text === 'Lost' ? 'bad' : 'warn'}
    text={text ?? ''}
  />
);

const VIEWS = [
  listView(CLAIMS, 'Volume claims', [
    { name: 'State', text: ({ status }) => status?.phase ?? '', view: ({ status }) => phase(status?.phase) },
    {
      name: 'Capacity',
      text: ({ status, spec }) => String(status?.capacity?.['storage'] ?? spec?.resources?.requests?.['storage'] ?? ''),
    },
    { name: 'Volume', text: ({ spec }) => spec?.volumeName ?? '' },
    { name: 'Class', text: ({ spec }) => spec?.storageClassName ?? '' },
    { name: 'Access', text: ({ spec }) => (spec?.accessModes ?? []).join(', ') },
  ]),
  listView(VOLUMES, 'Volumes', [
    { name: 'State', text: ({ status }) => status?.phase ?? '', view: ({ status }) => phase(status?.phase) },
    { name: 'Capacity', text: ({ spec }) => String(spec?.capacity?.['storage'] ?? '') },
    {
      name: 'Claim',
      text: ({ spec }) => (spec?.claimRef === undefined ? '' : `${spec.claimRef.namespace}/${spec.claimRef.name}`),
    },
    { name: 'Reclaim', text: ({ spec }) => spec?.persistentVolumeReclaimPolicy ?? '' },
  ]),
  { name: 'images', label: 'Images', render: () => <Images /> },
  { name: 'missing', label: 'Missing images', render: () => <Missing /> },
  { name: 'upload', label: 'Upload images', render: () => <Later load={loadUpload} props={{}} /> },
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

const MISSING: readonly Column<MissingImage>[] = [
  {
    name: 'Pod',
    text: ({ namespace, pod }) => `${namespace}/${pod}`,
    view: ({ namespace, pod }) => (
      <Link to={pathOf('pods', namespace, pod)}>
        {namespace}/{pod}
      </Link>
    ),
  },
  { name: 'Image', text: ({ image }) => image },
  { name: 'Node without it', text: ({ node }) => node },
  { name: 'Reason', text: ({ reason, message }) => (message === '' ? reason : `${reason}: ${message}`) },
];

function Images() {
  useCommand("kubectl get nodes -o 'jsonpath={.items[*].status.images[*].names}'");
  const snapshot = useFeed(NODES);
  const images = useMemo(() => imagesByName(snapshot.items), [snapshot.items]);
  const node = currentPlace.value.query.get('node') ?? '';
  const shown = useMemo(
    () => (node === '' ? images : images.filter(({ nodes }) => nodes.includes(node))),
    [images, node],
  );
  return (
    <>
      <label>
        Node{' '}
        <select value={node} onChange={({ currentTarget }) => setQuery('node', currentTarget.value)}>
          <option value="">all</option>
          {snapshot.items.map(({ metadata }) => (
            <option key={metadata?.name}>{metadata?.name}</option>
          ))}
        </select>
      </label>
      <DataTable label="Images" columns={COLUMNS} items={shown} keyOf={({ name }) => name} snapshot={snapshot} />
    </>
  );
}

function Missing() {
  const namespace = currentNamespace();
  useCommand(getCommand(PODS, { namespace }));
  const snapshot = useFeed(PODS, { namespace });
  const missing = useMemo(() => missingImages(snapshot.items), [snapshot.items]);
  return (
    <>
      <NamespaceChoice />
      <DataTable
        label="Missing images"
        columns={MISSING}
        items={missing}
        keyOf={({ namespace: ns, pod, container }) => `${ns}/${pod}/${container}`}
        snapshot={snapshot}
      />
      <p class="muted">
        Without a registry, upload an archive of the image to the node, or run <code>hyperedge image import FILE</code>{' '}
        there. The pod starts by itself.
      </p>
    </>
  );
}
