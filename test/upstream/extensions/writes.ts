/** Other writes: subresources, versions, deletions, unknown fields, content types. */
import type { Part } from '../api/judge.ts';
import { type Fields, GROUP, type Json } from './definitions.ts';
import {
  GADGETS_PATH as GADGETS,
  get,
  patch,
  post,
  put,
  ROOT,
  remove,
  send,
  TYPE,
  WIDGETS_PATH as WIDGETS,
} from './requests.ts';
import { Session } from './session.ts';
import { widget } from './widgets.ts';

const SCALES: readonly Json[] = [
  {},
  { spec: {} },
  { spec: { replicas: 2 } },
  { spec: { replicas: -1 } },
  { spec: { replicas: 'x' } },
  { spec: { replicas: 1.5 } },
  { spec: { replicas: 2147483648 } },
  { metadata: { name: 'w' }, spec: { replicas: 2 } },
  { metadata: { name: 'w', namespace: 'ns' }, spec: { replicas: 2 } },
  { metadata: { name: 'other', namespace: 'ns' }, spec: { replicas: 2 } },
  { metadata: { name: 'w', namespace: 'other' }, spec: { replicas: 2 } },
  { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'w', namespace: 'ns' }, spec: { replicas: 2 } },
  { apiVersion: 'autoscaling/v2', kind: 'Scale', metadata: { name: 'w', namespace: 'ns' }, spec: { replicas: 2 } },
  { apiVersion: `${GROUP}/v1`, kind: 'Widget', metadata: { name: 'w', namespace: 'ns' }, spec: { replicas: 2 } },
  { metadata: { name: 'w', namespace: 'ns', resourceVersion: '1' }, spec: { replicas: 2 } },
  { metadata: { name: 'w', namespace: 'ns', uid: 'x' }, spec: { replicas: 2 } },
  { metadata: { name: 'w', namespace: 'ns', labels: { a: 'b' } }, spec: { replicas: 2 }, status: { replicas: 7 } },
  { metadata: { name: 'w', namespace: 'ns' }, spec: { replicas: 2 }, unknown: 1 },
];

export const subresources: Part = async (pair, findings) => {
  const session = new Session(pair, findings, 'subresource');
  const one = `${WIDGETS}/w`;
  await session.ask(
    post(WIDGETS, widget('w', { fixed: 'f' }, { labels: { a: 'b' } }, { status: { phase: 'ignored' } })),
  );
  await session.ask(get(`${one}/status`));
  await session.ask(get(`${one}/scale`));
  await session.ask(get(`${one}/scale`, 'application/yaml'));
  await session.ask(get(`${one}/scale`, 'application/vnd.kubernetes.protobuf'));
  await session.ask(get(`${one}/scale`, 'application/json;as=Table;v=v1;g=meta.k8s.io'));
  await session.ask(get(`${WIDGETS}/absent/scale`));
  await session.ask(get(`${WIDGETS}/absent/status`));
  await session.ask(get(`${one.replace('/v1/', '/v1alpha1/')}/scale`));
  await session.ask(get(`${one.replace('/v1/', '/v1beta1/')}/scale`));
  for (const body of SCALES) {
    await session.ask(put(`${one}/scale?dryRun=All`, body));
    await session.ask(patch(`${one}/scale?dryRun=All`, TYPE.merge, body));
    await session.ask(patch(`${one}/scale?dryRun=All&fieldManager=m`, TYPE.apply, body));
    await session.ask(put(`${one}/scale?dryRun=All&fieldValidation=Strict`, body));
  }
  await session.ask(
    patch(`${one}/scale?dryRun=All`, TYPE.jsonPatch, [{ op: 'replace', path: '/spec/replicas', value: 4 }]),
  );
  await session.ask(patch(`${one}/scale?dryRun=All`, TYPE.strategic, { spec: { replicas: 4 } }));
  await session.ask(put(`${one}/scale`, { metadata: { name: 'w', namespace: 'ns' }, spec: { replicas: 4 } }));
  await session.ask(
    put(`${WIDGETS}/absent/scale`, { metadata: { name: 'absent', namespace: 'ns' }, spec: { replicas: 4 } }),
  );
  await session.note('w', one);
  const statuses: readonly Json[] = [
    {},
    widget('w', { color: 'red', fixed: 'g' }, { labels: { c: 'd' } }, { status: { phase: 'x' } }),
    widget('w', {}, { annotations: { c: 'd' }, finalizers: ['a/b'] }, { status: { replicas: 'x' } }),
    widget('w', {}, {}, { status: { replicas: 3, selector: 'a=b', unknown: 1 } }),
    widget('w', {}, { resourceVersion: '1' }, { status: { phase: 'y' } }),
    widget('w', {}, { resourceVersion: '<w.resourceVersion>' }, { status: { phase: 'y' } }),
    widget('w', { replicas: -5 }, { resourceVersion: '<w.resourceVersion>' }, { status: { phase: 'y' } }),
    widget('w', {}, { resourceVersion: '<w.resourceVersion>' }, { status: null }),
    widget('w', {}, { resourceVersion: '<w.resourceVersion>' }, { status: 'x' }),
    widget('w', {}, { resourceVersion: '<w.resourceVersion>' }),
    widget('other', {}, {}, { status: { phase: 'x' } }),
    { apiVersion: `${GROUP}/v1`, kind: 'Widget', metadata: { name: 'w' }, status: { phase: 'z' } },
  ];
  for (const body of statuses) {
    await session.ask(put(`${one}/status?dryRun=All`, body));
    await session.ask(patch(`${one}/status?dryRun=All`, TYPE.merge, body));
  }
  await session.ask(patch(`${one}/status`, TYPE.merge, { status: { replicas: 3, selector: 'a=b' } }));
  await session.ask(get(`${one}/scale`));
  await session.ask(patch(one, TYPE.merge, { status: { phase: 'not this way' }, spec: { color: 'red' } }));
  await session.ask(patch(`${one}/status`, TYPE.merge, { status: null }));
  await session.ask(get(`${one}/scale`));
  await session.ask(post(`${one}/status`, {}));
  await session.ask(remove(`${one}/status`));
  await session.ask(remove(`${one}/scale`));
  await session.ask(
    post(GADGETS, {
      apiVersion: `${GROUP}/v1`,
      kind: 'Gadget',
      metadata: { name: 'g' },
      spec: 1,
      status: 2,
      x: [null, { y: null }],
    }),
  );
  await session.ask(get(`${GADGETS}/g/status`));
  await session.ask(get(`${GADGETS}/g/scale`));
  await session.ask(patch(`${GADGETS}/g`, TYPE.merge, { status: { a: 1 } }));
  await session.ask(remove(`${GADGETS}/g`));
  await session.ask(remove(one));
};

export const versions: Part = async (pair, findings) => {
  const session = new Session(pair, findings, 'version');
  const at = (version: string, rest = ''): string => `${ROOT}/${version}/namespaces/ns/widgets${rest}`;
  const as = (version: string, name: string, fields: Fields = {}): Fields => ({
    ...widget(name, fields),
    apiVersion: `${GROUP}/${version}`,
  });
  for (const version of ['v1', 'v1beta1', 'v1alpha1', 'v0', 'v9']) {
    const name = `made-${version}`;
    await session.ask(post(at(version), as(version, name, { color: 'red' })));
    await session.ask(post(at(version), as('v1', `${name}-x`)));
    await session.ask(post(at(version), { metadata: { name: `${name}-y` } }));
    for (const other of ['v1', 'v1beta1', 'v1alpha1']) await session.ask(get(at(other, `/${name}`)));
    await session.ask(get(at(version)));
    await session.ask(put(at(version, `/${name}`), as(version, name, { color: 'blue' })));
    await session.ask(put(at(version, `/${name}`), as('v1', name, { color: 'green' })));
    await session.ask(patch(at(version, `/${name}`), TYPE.merge, { spec: { size: 3 } }));
    await session.ask(get(at('v1', `/${name}`)));
    await session.ask({
      method: 'GET',
      path: at(version, '?watch=true&timeoutSeconds=1&resourceVersion=0&fieldSelector=metadata.name%3Dmade-v1'),
    });
    await session.ask(remove(at(version, `/${name}`)));
    await session.ask(remove(at(version)));
  }
};

export const deletions: Part = async (pair, findings) => {
  const session = new Session(pair, findings, 'delete');
  const one = `${WIDGETS}/w`;
  await session.ask(post(WIDGETS, widget('w', {}, { finalizers: ['a/b'] })));
  await session.note('w', one);
  const options: readonly Json[] = [
    {},
    { propagationPolicy: 'Foreground' },
    { propagationPolicy: 'Orphan' },
    { propagationPolicy: 'Background' },
    { propagationPolicy: 'Bad' },
    { orphanDependents: true },
    { orphanDependents: true, propagationPolicy: 'Orphan' },
    { gracePeriodSeconds: 0 },
    { gracePeriodSeconds: 30 },
    { gracePeriodSeconds: -1 },
    { gracePeriodSeconds: 'x' },
    { preconditions: { uid: 'x' } },
    { preconditions: { uid: '<w.uid>' } },
    { preconditions: { resourceVersion: '1' } },
    { preconditions: { resourceVersion: '<w.resourceVersion>', uid: '<w.uid>' } },
    { preconditions: {} },
    { preconditions: 'x' },
    { dryRun: ['Bad'] },
    { unknown: 1 },
    { kind: 'DeleteOptions', apiVersion: 'v1' },
    { kind: 'DeleteOptions', apiVersion: 'meta.k8s.io/v1' },
    { kind: 'DeleteOptions', apiVersion: `${GROUP}/v1` },
    { kind: 'DeleteOptions', apiVersion: 'x/v1' },
    { kind: 'Widget', apiVersion: `${GROUP}/v1` },
    { ignoreStoreReadErrorWithClusterBreakingPotential: true },
    [],
    'x',
  ];
  for (const body of options) {
    // For upstream, a body of DeleteOptions replaces all options in the query.
    const dry = typeof body === 'object' && body !== null && !Array.isArray(body) ? { dryRun: ['All'], ...body } : body;
    await session.ask(remove(one, JSON.stringify(dry)));
    await session.ask(remove(WIDGETS, JSON.stringify(dry)));
  }
  for (const query of [
    'propagationPolicy=Bad',
    'propagationPolicy=Orphan',
    'gracePeriodSeconds=x',
    'gracePeriodSeconds=5',
    'orphanDependents=x',
    'dryRun=Bad',
    'dryRun=All&dryRun=All',
    'uid=x',
  ])
    await session.ask(remove(`${one}?dryRun=All&${query}`));
  for (const body of ['', '{', 'a: b', '[', '{"gracePeriodSeconds":1,"gracePeriodSeconds":2}']) {
    for (const type of [TYPE.json, TYPE.yaml, 'text/plain', 'application/vnd.kubernetes.protobuf', ''])
      await session.ask(send('DELETE', `${one}?dryRun=All`, type, body));
    await session.ask(send('DELETE', `${WIDGETS}?dryRun=All`, TYPE.json, body));
  }
  for (const query of [
    'labelSelector=a%20b',
    'fieldSelector=spec.color%3Dred',
    'fieldSelector=spec.size%3D1',
    'fieldSelector=metadata.name%3Dw',
    'limit=1',
    'limit=-1',
    'resourceVersion=x',
    'watch=true',
    'continue=x',
    'timeoutSeconds=x',
  ])
    await session.ask(remove(`${WIDGETS}?dryRun=All&${query}`));
  await session.ask(remove(`${WIDGETS}/absent`));
  await session.ask(remove(one, { propagationPolicy: 'Foreground' }));
  await session.ask(remove(one, { propagationPolicy: 'Orphan' }));
  await session.ask(remove(one));
  await session.ask(remove(WIDGETS));
  await session.ask(get(one));
  await session.ask(patch(one, TYPE.merge, { metadata: { finalizers: ['c/d'] } }));
  await session.ask(patch(one, TYPE.merge, { metadata: { finalizers: ['a/b', 'foregroundDeletion', 'c/d'] } }));
  await session.ask(patch(one, TYPE.merge, { metadata: { finalizers: [] }, spec: { color: 'violet' } }));
  await session.ask(patch(one, TYPE.merge, { metadata: { finalizers: [] } }));
  await session.ask(get(one));
  await session.ask(post(WIDGETS, widget('o', {}, { finalizers: ['orphan'] })));
  await session.ask(remove(`${WIDGETS}/o`, { propagationPolicy: 'Background' }));
  await session.ask(post(WIDGETS, widget('p', {}, { labels: { app: 'x' } })));
  await session.ask(post(WIDGETS, widget('q', { color: 'red' })));
  await session.ask(remove(`${WIDGETS}?labelSelector=app%3Dx`));
  await session.ask(remove(`${WIDGETS}?fieldSelector=spec.color%3Dred`));
  await session.ask(remove(`${ROOT}/v1/widgets`));
  await session.ask(remove(WIDGETS));
};

const UNKNOWN: readonly (readonly [type: string, body: string])[] = [
  [TYPE.json, JSON.stringify(widget('w', { unknown: 1, color: 'red' }))],
  [
    TYPE.json,
    JSON.stringify(
      widget(
        'w',
        {
          nested: { x: 1, deeper: { y: 1 } },
          ports: [
            { port: 1, z: 1 },
            { port: 2, z: 1 },
          ],
        },
        { bogus: 1 },
        { top: 1, status: { w: 1 } },
      ),
    ),
  ],
  [
    TYPE.json,
    `{"apiVersion":"${GROUP}/v1","kind":"Widget","metadata":{"name":"w","name":"w"},"spec":{"color":"red","color":"blue","map":{"a":"1","a":"2"}},"spec":{"color":"red"}}`,
  ],
  [
    TYPE.json,
    JSON.stringify(
      widget('w', { template: { apiVersion: 'v1', kind: 'Pod', metadata: { bogus: 1, name: 'x' }, x: 1 } }),
    ),
  ],
  [TYPE.json, JSON.stringify(widget('w', { Color: 'red', any: { x: 1 } }))],
  [TYPE.json, JSON.stringify(widget('w', { unknown: 1, replicas: 'x', color: 'violet' }))],
  [
    TYPE.yaml,
    `apiVersion: ${GROUP}/v1\nkind: Widget\nmetadata:\n  name: w\nspec:\n  color: red\n  color: blue\n  unknown: 1\n`,
  ],
  [
    TYPE.yaml,
    `apiVersion: ${GROUP}/v1\nkind: Widget\nmetadata: {name: w}\nspec: {color: red, when: 2020-01-02T03:04:05Z, flag: yes, size: 0x10, replicas: 1e1}\n`,
  ],
  [TYPE.yaml, `apiVersion: ${GROUP}/v1\nkind: Widget\nmetadata: &m {name: w}\nspec: {any: *m}\n---\nkind: Other\n`],
  [TYPE.json, JSON.stringify(widget('w', {}, { labels: { a: 1 } }))],
  [TYPE.json, JSON.stringify(widget('w', {}, { labels: 'x' }))],
  [TYPE.json, JSON.stringify(widget('w', {}, { finalizers: [1] }))],
  [
    TYPE.json,
    JSON.stringify(
      widget('w', {}, { generation: 7, uid: 'x', selfLink: '/x', creationTimestamp: '2020-01-01T00:00:00Z' }),
    ),
  ],
  [
    TYPE.json,
    JSON.stringify(widget('w', {}, { deletionTimestamp: '2020-01-01T00:00:00Z', deletionGracePeriodSeconds: 4 })),
  ],
  [TYPE.json, JSON.stringify(widget('w', {}, { resourceVersion: '5' }))],
  [TYPE.json, JSON.stringify(widget('', {}, { generateName: 'gen-' }))],
  [TYPE.json, JSON.stringify(widget('', {}, { generateName: 'Bad_' }))],
  [TYPE.json, JSON.stringify(widget('', {}, { generateName: 'x'.repeat(300) }))],
  [TYPE.json, JSON.stringify(widget('', {}, {}))],
  [TYPE.json, JSON.stringify(widget('Bad', {}, {}))],
  [TYPE.json, JSON.stringify(widget('a/b', {}, {}))],
  [TYPE.json, JSON.stringify(widget('x'.repeat(254), {}, {}))],
  [TYPE.json, JSON.stringify(widget('w', {}, { namespace: 'other' }))],
  [TYPE.json, JSON.stringify(widget('w', {}, { namespace: '' }))],
  [TYPE.json, JSON.stringify({ ...widget('w'), kind: 'Other' })],
  [TYPE.json, JSON.stringify({ ...widget('w'), kind: '' })],
  [TYPE.json, JSON.stringify({ ...widget('w'), apiVersion: 'v1' })],
  [TYPE.json, JSON.stringify({ ...widget('w'), apiVersion: '' })],
  [TYPE.json, JSON.stringify({ ...widget('w'), metadata: null })],
  [TYPE.json, JSON.stringify({ ...widget('w'), metadata: 'x' })],
  [TYPE.json, JSON.stringify({ ...widget('w'), metadata: [] })],
  [TYPE.json, JSON.stringify({ ...widget('w'), spec: null })],
  [TYPE.json, '{}'],
  [TYPE.json, ''],
  [TYPE.json, 'null'],
  [TYPE.json, '[]'],
  [TYPE.json, '1'],
  [TYPE.json, '{'],
  [TYPE.json, '{"a":1}x'],
  [TYPE.json, JSON.stringify(widget('w', { replicas: 1 })).replace('"replicas":1', '"replicas":9223372036854775808')],
  [TYPE.json, JSON.stringify(widget('w', { size: 1 })).replace('"size":1', '"size":1e400')],
  [TYPE.json, JSON.stringify(widget('w', { replicas: 1 })).replace('"replicas":1', '"replicas":1.0')],
  [TYPE.json, JSON.stringify(widget('w', { size: 1 })).replace('"size":1', '"size":1.0')],
  [TYPE.json, JSON.stringify(widget('w', { size: 1 })).replace('"size":1', '"size":-0')],
  [
    TYPE.json,
    JSON.stringify(widget('w', { any: 1 })).replace('"any":1', '"any":[1.0,1e3,-0.0,12345678901234567890,0.1e-7]'),
  ],
  [TYPE.json, JSON.stringify(widget('w', { any: '<>&\u2028é😀' }))],
  [
    TYPE.json,
    '{"apiVersion":"judge.example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"any":"\\ud800","color":"red"}}',
  ],
  [TYPE.yaml, ''],
  [TYPE.yaml, 'x'],
  [TYPE.yaml, 'a: ['],
  [TYPE.yaml, '\t'],
];

/** Removes parts that are too large to print or too deep to compare. */
function short(body: unknown): unknown {
  const { status, message, code } = body as Fields;
  return { status: typeof status === 'string' ? status : 'made', message: message ?? '', code: code ?? 0 };
}

export const fields: Part = async (pair, findings) => {
  const session = new Session(pair, findings, 'fields');
  for (const [type, body] of UNKNOWN) {
    for (const validation of ['', '&fieldValidation=Strict', '&fieldValidation=Warn', '&fieldValidation=Ignore'])
      await session.ask(send('POST', `${WIDGETS}?dryRun=All${validation}`, type, body));
  }
  await session.tell(post(WIDGETS, widget('w')));
  for (const [type, body] of UNKNOWN) {
    for (const validation of ['', '&fieldValidation=Strict'])
      await session.ask(send('PUT', `${WIDGETS}/w?dryRun=All${validation}`, type, body));
  }
  await session.ask(send('POST', `${WIDGETS}?dryRun=All&fieldValidation=Bad`, TYPE.json, widget('w')));
  await session.ask(send('POST', `${WIDGETS}?fieldManager=${'x'.repeat(129)}`, TYPE.json, widget('w')));
  await session.ask(send('POST', `${WIDGETS}?fieldManager=%09`, TYPE.json, widget('w')));
  await session.ask(post(WIDGETS, widget('w')));
  await session.ask(post(`${ROOT}/v1/widgets`, widget('w')));
  await session.ask(post(`${ROOT}/v1/widgets`, widget('w', {}, { namespace: 'ns' })));
  await session.ask(post(`${ROOT}/v1/namespaces/absent/widgets`, widget('w')));
  for (const type of [
    '',
    'text/plain',
    'application/vnd.kubernetes.protobuf',
    'application/cbor',
    'application/json; charset=utf-8',
    'application/json;x',
    'nonsense',
    'application/x-yaml',
    TYPE.merge,
  ])
    for (const method of ['POST', 'PUT'])
      await session.ask(send(method, `${WIDGETS}${method === 'PUT' ? '/w' : ''}?dryRun=All`, type, widget('w')));
  for (const size of [1 << 20, 3 << 20, 4 << 20]) {
    const body = JSON.stringify(widget('huge', { any: 'x'.repeat(size) }));
    await session.ask(send('POST', `${WIDGETS}?dryRun=All`, TYPE.json, body), (answer) =>
      JSON.stringify(answer).slice(0, 300),
    );
    await session.ask(send('POST', WIDGETS, TYPE.json, body), short);
    await session.ask(patch(`${WIDGETS}/w?dryRun=All`, TYPE.merge, body), (answer) =>
      JSON.stringify(answer).slice(0, 300),
    );
  }
  const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;
  for (const levels of [100, 9_000, 11_000])
    await session.ask(
      send(
        'POST',
        `${WIDGETS}?dryRun=All`,
        TYPE.json,
        JSON.stringify(widget('deep', { any: 0 })).replace('"any":0', `"any":${deep(levels)}`),
      ),
      short,
    );
  for (const count of [10_000, 10_001])
    await session.ask(
      patch(
        `${WIDGETS}/w?dryRun=All`,
        TYPE.jsonPatch,
        Array.from({ length: count }, () => ({ op: 'add', path: '/spec/color', value: 'red' })),
      ),
    );
  await session.tell(remove(WIDGETS));
};
