/** Lists, watches, tables and published schemas of custom resources. */
import type { Part } from '../api/judge.ts';
import { type Fields, GROUP } from './definitions.ts';
import {
  GADGETS_PATH as GADGETS,
  get,
  patch,
  post,
  put,
  ROOT,
  remove,
  TYPE,
  WIDGETS_PATH as WIDGETS,
} from './requests.ts';
import { Session } from './session.ts';
import { widget } from './widgets.ts';

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';
const PARTIAL = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io';
const PARTIAL_LIST = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io';

const WIDE: readonly Fields[] = [
  widget(
    'a',
    { color: 'red', replicas: 3, size: 1.5, flag: true, when: '2020-01-02T03:04:05Z', either: 5 },
    { labels: { app: 'x', 'app.kubernetes.io/name': 'n' } },
  ),
  widget(
    'b',
    {
      color: 'blue',
      size: 2,
      flag: false,
      when: '2999-01-02T03:04:05Z',
      either: '5%',
      items: [
        { name: 'a', value: '1' },
        { name: 'b', value: '2' },
      ],
    },
    { labels: { app: 'y' } },
  ),
  widget('c', { size: 1e21, atomic: ['x', 'y'], map: { a: '1', b: '2' } }, { labels: { app: 'x', tier: '1' } }),
  widget('d', { size: 0.1, when: '2020-01-02T03:04:05.123Z', items: [{ name: 'b' }], atomic: [], map: {} }),
];

async function several(session: Session): Promise<void> {
  for (const document of WIDE) await session.tell(post(WIDGETS, document));
  await session.tell(
    patch(`${WIDGETS}/a/status`, TYPE.merge, {
      status: { phase: 'Fine', replicas: 2, selector: 'a=b', conditions: [{ type: 'Ready', status: 'True' }] },
    }),
  );
}
const none = async (session: Session): Promise<void> => session.tell(remove(WIDGETS));

/** Replaces ages, which may differ by a second. */
const ageless = (body: unknown): unknown => JSON.parse(JSON.stringify(body).replaceAll(/"\d+s"/g, '"<age>"'));

export const tables: Part = async (pair, findings) => {
  const session = new Session(pair, findings, 'table');
  await several(session);
  for (const path of [
    WIDGETS,
    `${WIDGETS}/a`,
    `${WIDGETS}/b`,
    `${WIDGETS}/c`,
    `${WIDGETS}/d`,
    `${ROOT}/v1/widgets`,
    `${ROOT}/v1beta1/widgets`,
    `${ROOT}/v1alpha1/widgets`,
    GADGETS,
  ]) {
    await session.ask(get(path, TABLE), ageless);
    await session.ask(get(`${path}?includeObject=Object`, TABLE), ageless);
    await session.ask(get(`${path}?includeObject=None`, TABLE), ageless);
    await session.ask(get(path, PARTIAL));
    await session.ask(get(path, PARTIAL_LIST));
    await session.ask(get(path, 'application/json;as=Table;v=v1beta1;g=meta.k8s.io'), ageless);
  }
  for (const accept of [
    'application/json;as=Table;v=v2;g=meta.k8s.io',
    'application/json;as=Table;v=v1;g=x',
    'application/json;as=Nothing;v=v1;g=meta.k8s.io',
    `${TABLE},application/json`,
    'text/html',
    'application/yaml',
    `application/yaml;as=Table;v=v1;g=meta.k8s.io`,
    'application/vnd.kubernetes.protobuf',
    'application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io',
    'application/vnd.kubernetes.protobuf,application/json',
    'application/cbor',
    'application/json;q=0.5,application/yaml',
    '*/*',
    'application/*',
    'application/json;pretty=1',
    'nonsense',
  ]) {
    await session.ask(get(WIDGETS, accept), ageless);
    await session.ask(get(`${WIDGETS}/absent`, accept));
  }
  await session.ask(get(`${WIDGETS}?includeObject=Bad`, TABLE));
  await session.ask(get(`${WIDGETS}?limit=2`, TABLE), ageless);
  await session.ask(
    { ...post(`${WIDGETS}?dryRun=All`, widget('n')), headers: { 'content-type': TYPE.json, accept: TABLE } },
    ageless,
  );
  await session.ask({ method: 'DELETE', path: `${WIDGETS}/a?dryRun=All`, headers: { accept: TABLE } }, ageless);
  await none(session);
};

const LISTED = [
  '',
  'limit=2',
  'limit=0',
  'limit=-1',
  'limit=x',
  'limit=1.5',
  'limit=99999999999999999999',
  'limit=4',
  'limit=5',
  'limit=2&continue=x',
  'continue=x',
  'continue=e30',
  'continue=',
  'labelSelector=app',
  'labelSelector=app%3Dx',
  'labelSelector=app%20in%20(x,y)',
  'labelSelector=!app',
  'labelSelector=app!%3Dx',
  'labelSelector=a%20b',
  'labelSelector=app%3Dx,tier',
  'labelSelector=tier%3E0',
  'labelSelector=%3D',
  'labelSelector=app%3Dx&limit=1',
  'fieldSelector=metadata.name%3Da',
  'fieldSelector=metadata.name!%3Da',
  'fieldSelector=metadata.namespace%3Dns',
  'fieldSelector=metadata.namespace%3Dother',
  'fieldSelector=metadata.uid%3Dx',
  'fieldSelector=spec.color%3Dred',
  'fieldSelector=spec.color!%3Dred',
  'fieldSelector=spec.color%3D',
  'fieldSelector=spec.replicas%3D3',
  'fieldSelector=spec.replicas%3D1',
  'fieldSelector=spec.flag%3Dtrue',
  'fieldSelector=spec.flag%3Dfalse',
  'fieldSelector=spec.flag%3D',
  'fieldSelector=.spec.color%3Dred',
  'fieldSelector=spec.size%3D1.5',
  'fieldSelector=a',
  'fieldSelector=spec.color%20in%20(red)',
  'fieldSelector=spec.color%3Dred,spec.replicas%3D3',
  'fieldSelector=spec.color%3Dred&limit=1',
  'fieldSelector=spec.color%3D%3Dred',
  'fieldSelector=metadata.name%3Da,metadata.name%3Db',
  'resourceVersion=0',
  'resourceVersion=1',
  'resourceVersion=x',
  'resourceVersion=-1',
  'resourceVersion=999999999',
  'resourceVersion=0&resourceVersionMatch=NotOlderThan',
  'resourceVersion=0&resourceVersionMatch=Exact',
  'resourceVersion=1&resourceVersionMatch=Exact',
  'resourceVersionMatch=Exact',
  'resourceVersionMatch=NotOlderThan',
  'resourceVersion=1&resourceVersionMatch=Bad',
  'resourceVersion=<all.resourceVersion>&resourceVersionMatch=Exact',
  'resourceVersion=<all.resourceVersion>&resourceVersionMatch=Exact&limit=2',
  'resourceVersion=<all.resourceVersion>',
  'resourceVersion=0&limit=2',
  'resourceVersion=<all.resourceVersion>&limit=2',
  'sendInitialEvents=true',
  'sendInitialEvents=x',
  'allowWatchBookmarks=true',
  'timeoutSeconds=1',
  'timeoutSeconds=x',
  'watch=false',
  'watch=0',
  'pretty=true',
  'unknown=1',
  'limit=1&limit=2',
  'resourceVersion=1&continue=x',
  'resourceVersion=0&continue=x',
  'continue=x&resourceVersionMatch=Exact',
  'shardSelector=x',
];

export const lists: Part = async (pair, findings) => {
  const session = new Session(pair, findings, 'list');
  await several(session);
  await session.note('all', WIDGETS);
  for (const query of LISTED) await session.ask(get(`${WIDGETS}?${query}`));
  for (const path of [`${ROOT}/v1/widgets`, `${ROOT}/v1alpha1/widgets`, `${ROOT}/v1/namespaces/absent/widgets`]) {
    await session.ask(get(path));
    await session.ask(get(`${path}?fieldSelector=spec.color%3Dred`));
    await session.ask(get(`${path}?fieldSelector=metadata.namespace%3Dns`));
  }
  await session.ask(get(`${GADGETS}?fieldSelector=metadata.namespace%3Dns`));
  for (const query of ['limit=3', 'limit=1&labelSelector=app%3Dx', 'limit=2&fieldSelector=spec.color!%3Dred']) {
    await session.note('page', `${WIDGETS}?${query}`);
    await session.ask(get(`${WIDGETS}?${query}&continue=<page.continue>`));
    await session.ask(get(`${WIDGETS}?continue=<page.continue>`));
    await session.ask(get(`${WIDGETS}?continue=<page.continue>&resourceVersion=<all.resourceVersion>`));
    await session.ask(get(`${WIDGETS}?continue=<page.continue>&resourceVersion=0`));
    await session.ask(get(`${WIDGETS}?continue=<page.continue>&resourceVersionMatch=Exact`));
    await session.ask(get(`${GADGETS}?continue=<page.continue>`));
  }
  await session.note('page', `${WIDGETS}?limit=1`);
  await session.tell(remove(`${WIDGETS}/b`));
  await session.ask(get(`${WIDGETS}?continue=<page.continue>`));
  await session.ask(get(`${WIDGETS}?resourceVersion=<all.resourceVersion>&resourceVersionMatch=Exact`));
  for (const query of [
    'resourceVersion=0',
    'resourceVersion=<all.resourceVersion>',
    'resourceVersion=x',
    'resourceVersion=999999999',
    'pretty=true',
  ])
    await session.ask(get(`${WIDGETS}/a?${query}`));
  for (const method of ['HEAD', 'OPTIONS', 'TRACE', 'FETCH', 'PUT', 'PATCH', 'POST', 'DELETE'])
    for (const path of [
      WIDGETS,
      `${WIDGETS}/absent`,
      ROOT,
      `${ROOT}/v1`,
      `${ROOT}/v1/nothing`,
      `${ROOT}/v1/widgets`,
      `${WIDGETS}/a/nothing`,
      `${WIDGETS}/a/status/x`,
      `${WIDGETS}/a/scale`,
    ])
      if (method !== 'DELETE' || path !== WIDGETS) await session.ask({ method, path });
  await none(session);
};

/** Removes bookmarks at arbitrary times, except for the one that ends the initial events. */
function events(body: unknown): unknown {
  if (!Array.isArray(body)) return body;
  const reported = body.filter(
    (event: { type: string; object: { metadata?: { annotations?: object } } }) =>
      event.type !== 'BOOKMARK' || event.object.metadata?.annotations !== undefined,
  );
  return reported.map((event) => event);
}

const WATCHED = [
  'resourceVersion=<start.resourceVersion>',
  'resourceVersion=0',
  '',
  'resourceVersion=1',
  'resourceVersion=x',
  'resourceVersion=-1',
  'resourceVersion=999999999',
  'resourceVersion=<start.resourceVersion>&labelSelector=app%3Dx',
  'resourceVersion=<start.resourceVersion>&fieldSelector=spec.color%3Dred',
  'resourceVersion=<start.resourceVersion>&fieldSelector=metadata.name%3Da',
  'resourceVersion=<start.resourceVersion>&fieldSelector=spec.size%3D1',
  'sendInitialEvents=true',
  'sendInitialEvents=true&resourceVersionMatch=NotOlderThan',
  'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true',
  'sendInitialEvents=true&resourceVersionMatch=Exact&allowWatchBookmarks=true',
  'sendInitialEvents=false',
  'sendInitialEvents=false&resourceVersionMatch=NotOlderThan',
  'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=0',
  'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=<start.resourceVersion>',
  'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=app%3Dx',
  'sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=<start.resourceVersion>',
  'sendInitialEvents=x',
  'resourceVersionMatch=NotOlderThan',
  'resourceVersion=0&resourceVersionMatch=NotOlderThan',
  'resourceVersionMatch=Exact',
  'allowWatchBookmarks=x',
  'continue=x',
  'limit=1',
  'limit=-1',
  'labelSelector=a%20b',
];

export const watches: Part = async (pair, findings) => {
  const session = new Session(pair, findings, 'watch');
  await several(session);
  await session.note('start', WIDGETS);
  await session.tell(post(WIDGETS, widget('n', { color: 'red' }, { labels: { app: 'x' } })));
  await session.tell(
    patch(`${WIDGETS}/n`, TYPE.merge, { spec: { color: 'blue' }, metadata: { labels: { app: 'z' } } }),
  );
  await session.tell(patch(`${WIDGETS}/b`, TYPE.merge, { spec: { color: 'red' }, metadata: { labels: { app: 'x' } } }));
  await session.tell(patch(`${WIDGETS}/a`, TYPE.merge, { metadata: { finalizers: ['a/b'] } }));
  await session.tell(remove(`${WIDGETS}/a`));
  await session.tell(patch(`${WIDGETS}/a`, TYPE.merge, { metadata: { finalizers: null } }));
  await session.tell(remove(`${WIDGETS}/c`));
  await Promise.all(
    WATCHED.flatMap((query) =>
      ['watch=true', 'watch=1']
        .slice(0, query === '' ? 2 : 1)
        .map((how) => session.ask(get(`${WIDGETS}?${how}&timeoutSeconds=1&${query}`), events)),
    ),
  );
  for (const accept of [
    TABLE,
    PARTIAL,
    PARTIAL_LIST,
    'application/yaml',
    'application/json;stream=watch',
    'application/vnd.kubernetes.protobuf;stream=watch',
    'text/html',
  ])
    await session.ask(
      get(`${WIDGETS}?watch=true&timeoutSeconds=1&resourceVersion=<start.resourceVersion>`, accept),
      (body) => ageless(events(body)),
    );
  for (const path of [
    `${ROOT}/v1/watch/namespaces/ns/widgets`,
    `${ROOT}/v1/watch/widgets`,
    `${ROOT}/v1/watch/namespaces/ns/widgets/d`,
    `${WIDGETS}/d?watch=true`,
    `${ROOT}/v1beta1/namespaces/ns/widgets?watch=true`,
    `${ROOT}/v1/widgets?watch=true`,
  ])
    await session.ask(
      get(`${path}${path.includes('?') ? '&' : '?'}timeoutSeconds=1&resourceVersion=<start.resourceVersion>`),
      events,
    );
  await none(session);
};

/** The part of a document about all groups that concerns the tested group. */
function ours(body: unknown): unknown {
  if (typeof body !== 'object' || body === null) return body;
  const { groups, items, paths, definitions, components, ...rest } = body as {
    groups?: { name: string }[];
    items?: { metadata: { name: string } }[];
    paths?: Fields;
    definitions?: Fields;
    components?: { schemas?: Fields };
  };
  const about = (fields: Fields = {}): Fields =>
    Object.fromEntries(Object.entries(fields).filter(([name]) => name.includes('judge')));
  return {
    rest: groups === undefined && items === undefined && definitions === undefined ? rest : undefined,
    groups: groups?.filter(({ name }) => name === GROUP),
    items: items?.filter(({ metadata }) => metadata.name === GROUP),
    paths: about(paths),
    definitions: about(definitions ?? components?.schemas),
  };
}

export const published: Part = async (pair, findings) => {
  const session = new Session(pair, findings, 'published');
  const versions = ['v1', 'v1beta1', 'v1alpha1', 'v0'];
  await session.ask(get(ROOT));
  await session.ask(get(`${ROOT}/`));
  for (const version of versions) {
    await session.ask(get(`${ROOT}/${version}`));
    await session.ask(get(`/openapi/v3/apis/${GROUP}/${version}`), ours);
  }
  await session.ask(get(`${ROOT}/v1`, 'application/yaml'));
  await session.ask(get(`${ROOT}/v1`, 'text/html'));
  await session.ask(get(`${ROOT}/v1`, 'application/vnd.kubernetes.protobuf'));
  await session.ask(put(`${ROOT}/v1`, {}));
};
