/**
 * Requests with one error each, and requests to subresources and reviews. They use existing objects: config map `map`,
 * deployment `web`, pod `lone`.
 */
import type { Request } from '../../differential/exchange.ts';

const MAPS = '/api/v1/namespaces/ns/configmaps';
const DEPLOYMENTS = '/apis/apps/v1/namespaces/ns/deployments';
const PODS = '/api/v1/namespaces/ns/pods';
const JSON_TYPE = 'application/json';
const MERGE = 'application/merge-patch+json';
const STRATEGIC = 'application/strategic-merge-patch+json';
const JSON_PATCH = 'application/json-patch+json';
const APPLY = 'application/apply-patch+yaml';

const labels = { app: 'x' };
export const FIXTURES: readonly (readonly [path: string, document: object])[] = [
  ['/api/v1/namespaces', { metadata: { name: 'ns' } }],
  [MAPS, { metadata: { name: 'map', labels }, data: { a: '1', b: '2' } }],
  [
    DEPLOYMENTS,
    {
      metadata: { name: 'web', labels },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } },
      },
    },
  ],
  [PODS, { metadata: { name: 'lone', labels }, spec: { containers: [{ name: 'c', image: 'i' }] } }],
  ['/api/v1/namespaces/ns/services', { metadata: { name: 'svc' }, spec: { ports: [{ port: 80 }] } }],
  ['/api/v1/namespaces/ns/serviceaccounts', { metadata: { name: 'sa' } }],
  ['/api/v1/nodes', { metadata: { name: 'node' } }],
];

const send = (method: string, path: string, type: string, body: unknown): Request => ({
  method,
  path,
  headers: { 'content-type': type },
  body: typeof body === 'string' ? body : JSON.stringify(body),
});
const get = (path: string, accept?: string): Request => ({
  method: 'GET',
  path,
  ...(accept === undefined ? {} : { headers: { accept } }),
});
const patch = (path: string, type: string, body: unknown): Request => send('PATCH', path, type, body);
const map = (metadata: object, rest: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata,
  ...rest,
});
const create = (body: unknown, type = JSON_TYPE, path = MAPS): Request =>
  send('POST', `${path}?dryRun=All`, type, body);

const PATHS = [
  '/foo',
  '/api/',
  '/api/v2',
  '/apis/nope',
  '/apis/apps/',
  '/apis/apps/v9',
  '/apis/apps/v1/nothing',
  '/api/v1/nothing',
  '/api/v1/namespaces/ns/nothing',
  '/api/v1/namespaces/ns/nothing/x',
  '/api/v1/pods/x',
  '/api/v1/namespaces/ns/nodes',
  `${MAPS}/absent`,
  `${MAPS}/map/status`,
  `${MAPS}/map/scale`,
  `${PODS}/lone/nothing`,
  `${DEPLOYMENTS}/web/rollback`,
  '/api/v1/namespaces/absent/configmaps',
  '/api/v1/namespaces/absent',
  '/apis/apps/v1/deployments',
  '/healthz',
  '/healthz/nothing',
  '/livez/ping',
  '/readyz/ping',
  '/version/',
  '/swagger.json',
  '/logs',
  '/ui',
];

const QUERIES = [
  'limit=-1',
  'limit=abc',
  'limit=1&continue=garbage',
  'continue=e30',
  'resourceVersion=abc',
  'resourceVersion=-1',
  'resourceVersion=0',
  'resourceVersionMatch=Exact',
  'resourceVersion=1&resourceVersionMatch=Nonsense',
  'resourceVersion=0&resourceVersionMatch=Exact',
  'resourceVersion=1&continue=x',
  'labelSelector=a%20b%20c',
  'labelSelector=a%20in%20(',
  'labelSelector=!',
  'labelSelector=a%3D%3D',
  'labelSelector=-x',
  'labelSelector=a%3Db%20c',
  'fieldSelector=x',
  'fieldSelector=a%3E1',
  'fieldSelector=metadata.name!%3Dx',
  'fieldSelector=spec.x%3D1',
  'watch=true&resourceVersion=abc',
  'watch=true&timeoutSeconds=abc',
  'watch=maybe',
  'pretty=true',
  'timeoutSeconds=abc',
  'allowWatchBookmarks=x',
  'unknown=1',
];

const METHODS: Request[] = [
  { method: 'PUT', path: MAPS },
  { method: 'PATCH', path: MAPS },
  { method: 'POST', path: `${MAPS}/map` },
  { method: 'DELETE', path: '/api/v1' },
  { method: 'POST', path: '/api/v1' },
  { method: 'HEAD', path: MAPS },
  { method: 'PUT', path: '/version' },
  { method: 'DELETE', path: '/api/v1/namespaces' },
  { method: 'POST', path: `${DEPLOYMENTS}/web/scale` },
  { method: 'DELETE', path: `${DEPLOYMENTS}/web/scale` },
  { method: 'DELETE', path: `${DEPLOYMENTS}/web/status` },
  { method: 'FETCH', path: MAPS },
  { method: 'DELETE', path: `${PODS}/lone/binding` },
  { method: 'GET', path: `${PODS}/lone/binding` },
  { method: 'GET', path: `${PODS}/lone/eviction` },
  { method: 'GET', path: '/apis/authorization.k8s.io/v1/subjectaccessreviews' },
];

const BODIES: Request[] = [
  create(''),
  create('{'),
  create('[]'),
  create('null'),
  create('"x"'),
  create('{"metadata":1}'),
  create('{}'),
  create('a: b', 'application/yaml'),
  create('a: [', 'application/yaml'),
  create(map({ name: 'y' }), 'text/plain'),
  create(map({ name: 'y' }), 'application/xml'),
  create(map({ name: 'y' }), ''),
  create(map({ name: 'y' }), 'application/json; charset=utf-8'),
  create(map({ name: 'y' }), 'application/vnd.kubernetes.protobuf'),
  create({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'y' } }),
  create({ apiVersion: 'v2', kind: 'ConfigMap', metadata: { name: 'y' } }),
  create({ apiVersion: 'apps/v1', kind: 'ConfigMap', metadata: { name: 'y' } }),
  create({ kind: 'ConfigMap', metadata: { name: 'y' } }),
  create({ apiVersion: 'v1', metadata: { name: 'y' } }),
  create({ metadata: { name: 'y' } }),
  create(map({ name: 'y', namespace: 'other' })),
  create(map({})),
  create(map({ generateName: 'gen-' })),
  create(map({ generateName: 'Not Valid' })),
  create(map({ name: 'map' })),
  create(map({ name: 'y', resourceVersion: '5' })),
  create(map({ name: 'y', uid: 'x' })),
  create(map({ name: 'y', labels: { a: 1 } })),
  create(map({ name: 'y', finalizers: ['x'] })),
  create(map({ name: 'y', finalizers: ['a/b'] })),
  create(map({ name: 'y' }, { data: { a: 1 } })),
  create(map({ name: 'y' }, { data: { 'a b': '1' } })),
  create(map({ name: 'y' }, { binaryData: { a: '!' } })),
  create(map({ name: 'y' }, { immutable: 'x' })),
  create(map({ name: 'y' }), JSON_TYPE, '/api/v1/namespaces/absent/configmaps'),
  create(map({ name: 'y', generateName: 'z' })),
  create({ metadata: { name: 'y' }, spec: {} }, JSON_TYPE, DEPLOYMENTS),
  create({ metadata: { name: 'y' }, spec: { replicas: 'x' } }, JSON_TYPE, DEPLOYMENTS),
  send('POST', `${MAPS}?dryRun=No`, JSON_TYPE, map({ name: 'y' })),
  send('POST', `${MAPS}?fieldManager=${'x'.repeat(200)}`, JSON_TYPE, map({ name: 'y' })),
  send('POST', `${MAPS}?dryRun=All&fieldManager=a%09b`, JSON_TYPE, map({ name: 'y' })),
];

const UPDATES: Request[] = [
  send('PUT', `${MAPS}/map`, JSON_TYPE, map({ name: 'other' })),
  send('PUT', `${MAPS}/map`, JSON_TYPE, map({ name: 'map', namespace: 'other' })),
  send('PUT', `${MAPS}/map`, JSON_TYPE, map({ name: 'map', resourceVersion: '1' })),
  send('PUT', `${MAPS}/map`, JSON_TYPE, map({ name: 'map', resourceVersion: 'x' })),
  send('PUT', `${MAPS}/map`, JSON_TYPE, map({ name: 'map', uid: '00000000-0000-4000-8000-000000000000' })),
  send('PUT', `${MAPS}/absent`, JSON_TYPE, map({ name: 'absent' })),
  send('PUT', `${MAPS}/map`, JSON_TYPE, map({})),
  send('PUT', `${MAPS}/map`, JSON_TYPE, '{'),
  send('PUT', `${MAPS}/map`, JSON_TYPE, { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'map' } }),
  send('PUT', `${DEPLOYMENTS}/web?dryRun=All`, JSON_TYPE, { metadata: { name: 'web' }, spec: {} }),
  send('PUT', `${DEPLOYMENTS}/web/scale?dryRun=All`, JSON_TYPE, { metadata: { name: 'web' }, spec: { replicas: -1 } }),
  send('PUT', `${DEPLOYMENTS}/web/scale?dryRun=All`, JSON_TYPE, { metadata: { name: 'other' }, spec: { replicas: 1 } }),
  send('PUT', `${DEPLOYMENTS}/web/scale?dryRun=All`, JSON_TYPE, {
    metadata: { name: 'web', namespace: 'ns' },
    spec: { replicas: 4 },
  }),
  send('PUT', `${DEPLOYMENTS}/absent/scale`, JSON_TYPE, { metadata: { name: 'absent' }, spec: { replicas: 1 } }),
  send('PUT', `${DEPLOYMENTS}/web/status?dryRun=All`, JSON_TYPE, {
    metadata: { name: 'web' },
    status: { replicas: -1 },
  }),
  patch(`${DEPLOYMENTS}/web/scale?dryRun=All`, MERGE, { spec: { replicas: 7 } }),
  patch(`${DEPLOYMENTS}/web/scale?dryRun=All`, MERGE, { spec: { replicas: 'x' } }),
  patch(`${DEPLOYMENTS}/web/scale?dryRun=All`, STRATEGIC, { spec: { replicas: 7 } }),
  patch(`${DEPLOYMENTS}/web/scale?dryRun=All`, JSON_PATCH, [{ op: 'replace', path: '/spec/replicas', value: 2 }]),
];

const PATCHES: Request[] = [
  patch(`${MAPS}/map?dryRun=All`, JSON_TYPE, {}),
  patch(`${MAPS}/map?dryRun=All`, 'text/plain', {}),
  patch(`${MAPS}/map?dryRun=All`, '', {}),
  patch(`${MAPS}/map?dryRun=All`, MERGE, '{'),
  patch(`${MAPS}/map?dryRun=All`, MERGE, '[]'),
  patch(`${MAPS}/map?dryRun=All`, MERGE, ''),
  patch(`${MAPS}/map?dryRun=All`, MERGE, 'null'),
  patch(`${MAPS}/map?dryRun=All`, MERGE, { data: 1 }),
  patch(`${MAPS}/map?dryRun=All`, MERGE, { data: { a: 1 } }),
  patch(`${MAPS}/map?dryRun=All`, MERGE, { data: { a: null } }),
  patch(`${MAPS}/map?dryRun=All`, MERGE, { data: null }),
  patch(`${MAPS}/map?dryRun=All`, MERGE, { metadata: { name: 'other' } }),
  patch(`${MAPS}/map?dryRun=All`, MERGE, { metadata: { namespace: 'other' } }),
  patch(`${MAPS}/map?dryRun=All`, MERGE, { metadata: { resourceVersion: '1' } }),
  patch(`${MAPS}/map?dryRun=All`, MERGE, { metadata: { uid: 'x' } }),
  patch(`${MAPS}/map?dryRun=All`, MERGE, { kind: 'Secret' }),
  patch(`${MAPS}/map?dryRun=All`, MERGE, { apiVersion: 'v2' }),
  patch(`${MAPS}/map?dryRun=All`, MERGE, { metadata: { labels: { 'a b': 'c' } } }),
  patch(`${MAPS}/map?dryRun=All`, MERGE, { unknown: 1 }),
  patch(`${MAPS}/map?dryRun=All&force=true`, MERGE, {}),
  patch(`${MAPS}/absent`, MERGE, {}),
  patch(`${MAPS}/map?dryRun=All`, JSON_PATCH, '{}'),
  patch(`${MAPS}/map?dryRun=All`, JSON_PATCH, '['),
  patch(`${MAPS}/map?dryRun=All`, JSON_PATCH, []),
  patch(`${MAPS}/map?dryRun=All`, JSON_PATCH, [{ op: 'add', path: '/data/c', value: 'd' }]),
  patch(`${MAPS}/map?dryRun=All`, JSON_PATCH, [{ op: 'remove', path: '/data/zzz' }]),
  patch(`${MAPS}/map?dryRun=All`, JSON_PATCH, [{ op: 'replace', path: '/data/zzz', value: '1' }]),
  patch(`${MAPS}/map?dryRun=All`, JSON_PATCH, [{ op: 'test', path: '/data/a', value: '9' }]),
  patch(`${MAPS}/map?dryRun=All`, JSON_PATCH, [{ op: 'test', path: '/data/zzz', value: '9' }]),
  patch(`${MAPS}/map?dryRun=All`, JSON_PATCH, [{ op: 'bogus', path: '/data/a' }]),
  patch(`${MAPS}/map?dryRun=All`, JSON_PATCH, [{ op: 'add', path: 'data/a', value: '1' }]),
  patch(`${MAPS}/map?dryRun=All`, JSON_PATCH, [{ op: 'add', path: '/x/y/z', value: '1' }]),
  patch(`${MAPS}/map?dryRun=All`, JSON_PATCH, [{ op: 'move', from: '/data/a', path: '/data/m' }]),
  patch(`${MAPS}/map?dryRun=All`, JSON_PATCH, [{ op: 'copy', from: '/data/zzz', path: '/data/m' }]),
  patch(`${MAPS}/map?dryRun=All`, JSON_PATCH, [{ op: 'add', path: '/data/a' }]),
  patch(`${MAPS}/map?dryRun=All`, JSON_PATCH, [{ path: '/data/a' }]),
  patch(`${DEPLOYMENTS}/web?dryRun=All`, STRATEGIC, {
    spec: {
      template: {
        spec: {
          containers: [
            { name: 'c', image: 'j' },
            { name: 'd', image: 'k' },
          ],
        },
      },
    },
  }),
  patch(`${DEPLOYMENTS}/web?dryRun=All`, STRATEGIC, {
    spec: { template: { spec: { containers: [{ name: 'c', $patch: 'delete' }] } } },
  }),
  patch(`${DEPLOYMENTS}/web?dryRun=All`, STRATEGIC, { spec: { template: { spec: { containers: [{ image: 'j' }] } } } }),
  patch(`${DEPLOYMENTS}/web?dryRun=All`, STRATEGIC, { spec: { $patch: 'bogus' } }),
  patch(`${DEPLOYMENTS}/web?dryRun=All`, STRATEGIC, { spec: { replicas: null } }),
  patch(`${DEPLOYMENTS}/web?dryRun=All`, STRATEGIC, { spec: { replicas: 'x' } }),
  patch(`${DEPLOYMENTS}/web?dryRun=All`, STRATEGIC, {
    spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } },
  }),
  patch(`${DEPLOYMENTS}/web?dryRun=All`, STRATEGIC, { spec: { strategy: { type: 'Recreate' } } }),
  patch(`${DEPLOYMENTS}/web?dryRun=All`, STRATEGIC, { spec: { selector: { matchLabels: { app: 'y' } } } }),
  patch(`${DEPLOYMENTS}/web?dryRun=All`, STRATEGIC, { metadata: { finalizers: ['a/b'] } }),
  patch(`${DEPLOYMENTS}/web?dryRun=All`, STRATEGIC, { metadata: { '$deleteFromPrimitiveList/finalizers': ['a/b'] } }),
  patch(`${DEPLOYMENTS}/web?dryRun=All`, STRATEGIC, '['),
  patch(`${DEPLOYMENTS}/web?dryRun=All`, STRATEGIC, '[]'),
  patch(`${DEPLOYMENTS}/web?dryRun=All`, MERGE, { spec: { template: null } }),
  patch(`${DEPLOYMENTS}/web?dryRun=All`, MERGE, { spec: null }),
  patch(`${DEPLOYMENTS}/web?dryRun=All`, MERGE, { spec: { template: { spec: { containers: [] } } } }),
];

const APPLIES: Request[] = [
  patch(`${MAPS}/map?dryRun=All`, APPLY, map({ name: 'map' }, { data: { a: '1' } })),
  patch(`${MAPS}/map?dryRun=All&fieldManager=m`, APPLY, map({ name: 'map' }, { data: { a: '1' } })),
  patch(`${MAPS}/map?dryRun=All&fieldManager=m`, APPLY, map({ name: 'map' }, { data: { a: '5' } })),
  patch(`${MAPS}/map?dryRun=All&fieldManager=m&force=true`, APPLY, map({ name: 'map' }, { data: { a: '5' } })),
  patch(`${MAPS}/map?dryRun=All&fieldManager=m`, APPLY, map({ name: 'other' })),
  patch(`${MAPS}/map?dryRun=All&fieldManager=m`, APPLY, { metadata: { name: 'map' } }),
  patch(`${MAPS}/map?dryRun=All&fieldManager=m`, APPLY, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'map' },
  }),
  patch(`${MAPS}/map?dryRun=All&fieldManager=m`, APPLY, {
    apiVersion: 'v2',
    kind: 'ConfigMap',
    metadata: { name: 'map' },
  }),
  patch(`${MAPS}/map?dryRun=All&fieldManager=m`, APPLY, map({ name: 'map' }, { unknown: 1 })),
  patch(`${MAPS}/map?dryRun=All&fieldManager=m`, APPLY, map({ name: 'map' }, { data: { a: 1 } })),
  patch(`${MAPS}/map?dryRun=All&fieldManager=m`, APPLY, map({ name: 'map' }, { data: 'x' })),
  patch(`${MAPS}/map?dryRun=All&fieldManager=m`, APPLY, map({ name: 'map', managedFields: [] })),
  patch(`${MAPS}/map?dryRun=All&fieldManager=m`, APPLY, map({ name: 'map', managedFields: [{ manager: 'x' }] })),
  patch(`${MAPS}/map?dryRun=All&fieldManager=m`, APPLY, map({ name: 'map', resourceVersion: '1' })),
  patch(`${MAPS}/map?dryRun=All&fieldManager=m`, APPLY, map({ name: 'map', uid: 'x' })),
  patch(`${MAPS}/made?dryRun=All&fieldManager=m`, APPLY, map({ name: 'made' }, { data: { a: '1' } })),
  patch(`${MAPS}/made?dryRun=All&fieldManager=m`, APPLY, map({ name: 'made', resourceVersion: '5' })),
  patch(`${MAPS}/made?dryRun=All&fieldManager=m`, APPLY, map({ name: 'made', uid: 'x' })),
  patch(`${MAPS}/map?dryRun=All&fieldManager=m`, APPLY, 'a: ['),
  patch(`${MAPS}/map?dryRun=All&fieldManager=m`, APPLY, '[]'),
  patch(`${MAPS}/map?dryRun=All&fieldManager=m`, APPLY, ''),
  patch(`${DEPLOYMENTS}/web?dryRun=All&fieldManager=m`, APPLY, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: { replicas: 3 },
  }),
  patch(`${DEPLOYMENTS}/web?dryRun=All&fieldManager=m`, APPLY, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: {
      template: {
        spec: {
          containers: [
            { name: 'c', image: 'j' },
            { name: 'd', image: 'k' },
          ],
        },
      },
    },
  }),
  patch(`${DEPLOYMENTS}/web?dryRun=All&fieldManager=m`, APPLY, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: { template: { spec: { containers: [{ image: 'j' }] } } },
  }),
];

const remove = (path: string, body?: unknown): Request =>
  body === undefined ? { method: 'DELETE', path } : send('DELETE', path, JSON_TYPE, body);
const DELETES: Request[] = [
  remove(`${MAPS}/absent`),
  remove(`${MAPS}/map?dryRun=All&propagationPolicy=Bad`),
  remove(`${MAPS}/map?dryRun=All&gracePeriodSeconds=abc`),
  remove(`${MAPS}/map?dryRun=All&orphanDependents=true&propagationPolicy=Orphan`),
  remove(`${MAPS}/map?dryRun=All`, '{'),
  remove(`${MAPS}/map?dryRun=All`, { kind: 'Pod', apiVersion: 'v1' }),
  remove(`${MAPS}/map`, { dryRun: ['All'], preconditions: { uid: 'x' } }),
  remove(`${MAPS}/map`, { dryRun: ['All'], preconditions: { resourceVersion: '1' } }),
  remove(`${MAPS}/map`, { dryRun: ['Bad'] }),
  remove(`${MAPS}/map`, { dryRun: ['All'], propagationPolicy: 'Foreground' }),
  remove(`${MAPS}/map`, { dryRun: ['All'], propagationPolicy: 'Orphan', orphanDependents: true }),
  remove(`${PODS}/lone`, { dryRun: ['All'], gracePeriodSeconds: -1 }),
  remove(`${PODS}/lone`, { dryRun: ['All'] }),
  remove(`${DEPLOYMENTS}/web`, { dryRun: ['All'], propagationPolicy: 'Orphan' }),
  remove(`${MAPS}?dryRun=All&labelSelector=app%3Dx`),
  remove(`${MAPS}?dryRun=All&labelSelector=%20%20-`),
  remove('/api/v1/namespaces/absent'),
  remove(`${MAPS}/map?dryRun=Bad`),
];

const SUBRESOURCES: Request[] = [
  send('POST', `${PODS}/lone/binding?dryRun=All`, JSON_TYPE, { target: { kind: 'Node', name: 'node' } }),
  send('POST', `${PODS}/lone/binding?dryRun=All`, JSON_TYPE, { target: { kind: 'Pod', name: 'node' } }),
  send('POST', `${PODS}/lone/binding?dryRun=All`, JSON_TYPE, { target: {} }),
  send('POST', `${PODS}/absent/binding`, JSON_TYPE, {
    metadata: { name: 'absent' },
    target: { kind: 'Node', name: 'node' },
  }),
  send('POST', `${PODS}/lone/binding?dryRun=All`, JSON_TYPE, {
    metadata: { name: 'other' },
    target: { kind: 'Node', name: 'node' },
  }),
  send('POST', '/api/v1/namespaces/ns/bindings?dryRun=All', JSON_TYPE, {
    metadata: { name: 'lone' },
    target: { kind: 'Node', name: 'node' },
  }),
  send('POST', `${PODS}/lone/eviction?dryRun=All`, JSON_TYPE, {
    apiVersion: 'policy/v1beta1',
    kind: 'Eviction',
    metadata: { name: 'lone', namespace: 'ns' },
  }),
  send('POST', `${PODS}/absent/eviction`, JSON_TYPE, {
    apiVersion: 'policy/v1beta1',
    kind: 'Eviction',
    metadata: { name: 'absent', namespace: 'ns' },
  }),
  send('POST', `${PODS}/lone/eviction`, JSON_TYPE, {
    apiVersion: 'policy/v1beta1',
    kind: 'Eviction',
    metadata: { name: 'other', namespace: 'ns' },
  }),
  get(`${PODS}/lone/log`),
  get(`${PODS}/absent/log`),
  get(`${PODS}/lone/log?container=zzz`),
  get(`${PODS}/lone/log?tailLines=-1`),
  get(`${PODS}/lone/log?limitBytes=0`),
  get(`${PODS}/lone/log?sinceSeconds=0`),
  get(`${PODS}/lone/log?sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z`),
  get(`${PODS}/absent/exec?command=a`),
  get(`${PODS}/lone/exec`),
  get(`${PODS}/absent/portforward`),
  get(`${PODS}/absent/proxy`),
  get('/api/v1/nodes/absent/proxy'),
  get('/api/v1/namespaces/ns/services/absent/proxy'),
  send('POST', '/api/v1/namespaces/ns/serviceaccounts/absent/token', JSON_TYPE, { spec: {} }),
  send('POST', '/api/v1/namespaces/ns/serviceaccounts/sa/token', JSON_TYPE, { spec: { expirationSeconds: 1 } }),
  send('POST', '/api/v1/namespaces/ns/serviceaccounts/sa/token', JSON_TYPE, {
    spec: { expirationSeconds: 99_999_999_999 },
  }),
  send('POST', '/api/v1/namespaces/ns/serviceaccounts/sa/token', JSON_TYPE, {
    spec: { boundObjectRef: { kind: 'Node', apiVersion: 'v1', name: 'x' } },
  }),
  send('POST', '/api/v1/namespaces/ns/serviceaccounts/sa/token', JSON_TYPE, {
    spec: { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'absent' } },
  }),
  send('POST', '/api/v1/namespaces/ns/serviceaccounts/sa/token', JSON_TYPE, {
    spec: { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'lone', uid: 'x' } },
  }),
  patch('/api/v1/nodes/node/status?dryRun=All', STRATEGIC, {
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  }),
  patch(`${PODS}/lone/status?dryRun=All`, STRATEGIC, {
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  }),
  patch(`${PODS}/lone/status?dryRun=All`, STRATEGIC, { status: { phase: 'Bogus' } }),
  patch(`${PODS}/lone?dryRun=All`, STRATEGIC, { spec: { nodeName: 'node' } }),
  patch(`${PODS}/lone?dryRun=All`, STRATEGIC, { spec: { containers: [{ name: 'c', image: 'j' }] } }),
  patch(`${PODS}/lone?dryRun=All`, STRATEGIC, { spec: { containers: [{ name: 'd', image: 'j' }] } }),
];

const review = (plural: string, body: object, namespace = ''): Request =>
  send('POST', `/apis/authorization.k8s.io/v1${namespace}/${plural}`, JSON_TYPE, body);
const REVIEWS: Request[] = [
  review('subjectaccessreviews', { spec: {} }),
  review('subjectaccessreviews', { spec: { user: 'u', resourceAttributes: { verb: 'get', resource: 'pods' } } }),
  review('subjectaccessreviews', {
    spec: { user: 'u', nonResourceAttributes: { verb: 'get', path: '/x' }, resourceAttributes: {} },
  }),
  review('subjectaccessreviews', {
    spec: { groups: ['system:masters'], resourceAttributes: { verb: 'get', resource: 'pods' } },
  }),
  review('subjectaccessreviews', { metadata: { name: 'x' }, spec: { user: 'u', resourceAttributes: {} } }),
  review('selfsubjectaccessreviews', { spec: { resourceAttributes: { verb: 'get', resource: 'pods' } } }),
  review('selfsubjectaccessreviews', { spec: {} }),
  review(
    'localsubjectaccessreviews',
    { spec: { user: 'u', resourceAttributes: { namespace: 'other', verb: 'get', resource: 'pods' } } },
    '/namespaces/ns',
  ),
  review(
    'localsubjectaccessreviews',
    {
      metadata: { namespace: 'ns' },
      spec: { user: 'u', resourceAttributes: { namespace: 'ns', verb: 'get', resource: 'pods' } },
    },
    '/namespaces/ns',
  ),
  review('selfsubjectrulesreviews', { spec: {} }),
  send('POST', '/apis/authentication.k8s.io/v1/tokenreviews', JSON_TYPE, { spec: {} }),
  send('POST', '/apis/authentication.k8s.io/v1/tokenreviews', JSON_TYPE, { spec: { token: 'x' } }),
];

const FORMS: Request[] = [
  get(MAPS, 'text/html'),
  get(MAPS, 'application/xml'),
  get(MAPS, '*/*'),
  get(MAPS, 'application/*'),
  get(MAPS, 'application/yaml'),
  get(MAPS, ''),
  get(MAPS, 'application/json;as=Table;v=v1;g=meta.k8s.io'),
  get(MAPS, 'application/json;as=Table;v=v9;g=meta.k8s.io'),
  get(MAPS, 'application/json;as=Bogus;v=v1;g=meta.k8s.io'),
  get(`${MAPS}/map`, 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'),
  get(MAPS, 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'),
  get(`${MAPS}/map`, 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'),
  get(MAPS, 'application/json;as=Table;v=v1beta1;g=meta.k8s.io'),
  get(`${MAPS}?includeObject=None`, 'application/json;as=Table;v=v1;g=meta.k8s.io'),
  get(`${MAPS}?includeObject=Bad`, 'application/json;as=Table;v=v1;g=meta.k8s.io'),
  get(`${MAPS}/absent`, 'application/json;as=Table;v=v1;g=meta.k8s.io'),
  get(`${MAPS}/absent`, 'application/yaml'),
  get('/api', 'application/yaml'),
  get('/openapi/v2', 'application/xml'),
  { method: 'GET', path: MAPS, headers: { 'impersonate-user': 'alice' } },
  { method: 'GET', path: `${MAPS}/map`, headers: { 'impersonate-user': 'alice' } },
  { method: 'GET', path: '/apis/apps/v1/deployments', headers: { 'impersonate-user': 'alice' } },
  { method: 'GET', path: '/metrics', headers: { 'impersonate-user': 'alice' } },
  { method: 'GET', path: MAPS, headers: { 'impersonate-group': 'x' } },
  { ...create(map({ name: 'y' })), headers: { 'content-type': JSON_TYPE, 'impersonate-user': 'alice' } },
  { method: 'GET', path: `${PODS}/lone/log`, headers: { 'impersonate-user': 'alice' } },
  { method: 'GET', path: '/api/v1/namespaces/ns/nothing', headers: { 'impersonate-user': 'alice' } },
];

export const WRONG: Readonly<Record<string, readonly Request[]>> = {
  path: PATHS.map((path) => get(path)),
  query: QUERIES.map((query) => get(`${MAPS}?${query}${query.includes('watch') ? '&timeoutSeconds=1' : ''}`)),
  method: METHODS,
  body: BODIES,
  update: UPDATES,
  patch: PATCHES,
  apply: APPLIES,
  delete: DELETES,
  subresource: SUBRESOURCES,
  review: REVIEWS,
  form: FORMS,
};
