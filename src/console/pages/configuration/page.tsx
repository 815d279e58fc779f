/** Config maps, secrets, namespaces and quotas. */

import { CONFIG_MAPS, NAMESPACES, QUOTAS, SECRETS } from '../../data/api/resources.ts';
import { quantityNumber, resourceText } from '../../data/format.ts';
import { Lists, listView } from '../../ui/lists.tsx';
import { Link, pathOf } from '../../ui/parts.tsx';

type Quota = NonNullable<(typeof QUOTAS)['_type']>;

const usesOf = ({ status }: Quota) =>
  Object.entries(status?.hard ?? {}).map(([resource, hard]) => ({
    resource,
    hard: quantityNumber(hard) ?? 0,
    used: quantityNumber(status?.used?.[resource]) ?? 0,
  }));

const VIEWS = [
  listView(CONFIG_MAPS, 'Config maps', [{ name: 'Keys', text: ({ data }) => Object.keys(data ?? {}).join(', ') }]),
  listView(SECRETS, 'Secrets', [
    { name: 'Type', text: ({ type }) => type ?? '' },
    {
      name: 'Keys',
      text: ({ data }) => Object.keys(data ?? {}).join(', '),
      view: ({ metadata, data }) => (
        <Link to={pathOf('secrets', metadata?.namespace ?? '', metadata?.name ?? '')}>
          {Object.keys(data ?? {}).join(', ') || 'no keys'}
        </Link>
      ),
    },
  ]),
  listView(NAMESPACES, 'Namespaces', [{ name: 'State', text: ({ status }) => status?.phase ?? '' }]),
  listView(QUOTAS, 'Quotas', [
    {
      name: 'Use',
      text: (quota) =>
        usesOf(quota)
          .map(({ resource }) => resource)
          .join(', '),
      view: (quota) =>
        usesOf(quota).map(({ resource, hard, used }) => (
          <div key={resource}>
            {resource}: {resourceText(resource, used)} of {resourceText(resource, hard)}{' '}
            <meter aria-label={`${resource} in use`} min={0} max={hard || 1} high={hard * 0.9} value={used} />
          </div>
        )),
    },
  ]),
];

export default function Configuration() {
  return <Lists title="Configuration" views={VIEWS} />;
}
