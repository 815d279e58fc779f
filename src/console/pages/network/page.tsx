/** Services, endpoint slices, routes and ingresses with their URLs, and network policies as texts and as a graph. */

import {
  conditionOf,
  ENDPOINT_SLICES,
  INGRESSES,
  listAt,
  POLICIES,
  ROUTES,
  SERVICES,
  textAt,
} from '../../data/api/resources.ts';
import { policyText, routeUrl, urlsOfIngress } from '../../data/network.ts';
import { Lists, listView } from '../../ui/lists.tsx';
import { State } from '../../ui/parts.tsx';
import { Reach } from './reach.tsx';

/** Link to a URL. Texts other than http and https URLs are not shown as links. */
const Url = ({ url }: { readonly url: string }) =>
  /^https?:\/\/[^/\s]+/.test(url) ? (
    <a href={url} target="_blank" rel="noreferrer noopener">
      {url}
    </a>
  ) : (
    <>{url}</>
  );

const VIEWS = [
  listView(SERVICES, 'Services', [
    { name: 'Type', text: ({ spec }) => spec?.type ?? '' },
    { name: 'Address', text: ({ spec }) => spec?.clusterIP ?? '' },
    {
      name: 'Ports',
      text: ({ spec }) =>
        (spec?.ports ?? [])
          .map(
            ({ port, nodePort, protocol }) =>
              `${port}${nodePort === undefined ? '' : `:${nodePort}`}/${protocol ?? 'TCP'}`,
          )
          .join(', '),
    },
    {
      name: 'Selector',
      text: ({ spec }) =>
        Object.entries(spec?.selector ?? {})
          .map(([key, value]) => `${key}=${value}`)
          .join(', '),
    },
  ]),
  listView(ENDPOINT_SLICES, 'Endpoints', [
    { name: 'Service', text: ({ metadata }) => metadata?.labels?.['kubernetes.io/service-name'] ?? '' },
    {
      name: 'Ready',
      text: ({ endpoints }) =>
        `${(endpoints ?? []).filter(({ conditions }) => conditions?.ready !== false).length} of ${endpoints?.length ?? 0}`,
    },
    {
      name: 'Addresses',
      text: ({ endpoints }) => (endpoints ?? []).flatMap(({ addresses }) => addresses ?? []).join(', '),
    },
    { name: 'Ports', text: ({ ports }) => (ports ?? []).map(({ port, protocol }) => `${port}/${protocol}`).join(', ') },
  ]),
  listView(ROUTES, 'Routes', [
    { name: 'URL', text: routeUrl, view: (route) => <Url url={routeUrl(route)} /> },
    { name: 'Service', text: (route) => textAt(route, 'spec', 'to', 'name') },
    { name: 'TLS', text: (route) => textAt(route, 'spec', 'tls', 'termination') || 'none' },
    {
      name: 'Admitted',
      text: (route) => textAt(listAt(route, 'status', 'ingress')[0], 'conditions', 0, 'status'),
      view: (route) => {
        const admitted = conditionOf({ status: listAt(route, 'status', 'ingress')[0] }, 'Admitted');
        return admitted?.status === 'True' ? (
          <State level="good" text="yes" />
        ) : (
          <State level="warn" text={admitted?.message ?? 'not yet'} />
        );
      },
    },
  ]),
  listView(INGRESSES, 'Ingresses', [
    {
      name: 'URLs',
      text: (ingress) => urlsOfIngress(ingress).join(', '),
      view: (ingress) => urlsOfIngress(ingress).map((url) => <Url key={url} url={url} />),
    },
    { name: 'Class', text: ({ spec }) => spec?.ingressClassName ?? '' },
  ]),
  listView(POLICIES, 'Network policies', [{ name: 'Effect', text: policyText }]),
  { name: 'reach', label: 'Reachability', render: () => <Reach /> },
];

export default function Network() {
  return <Lists title="Network" views={VIEWS} />;
}
