/** Patches and server-side apply of custom resources. */
import type { Part } from '../api/judge.ts';
import { type Fields, GROUP, type Json } from './definitions.ts';
import { get, patch, post, put, remove, send, TYPE, WIDGETS_PATH as WIDGETS } from './requests.ts';
import { Session } from './session.ts';
import { widget } from './widgets.ts';

const FULL = widget(
  'full',
  {
    color: 'red',
    size: 1.5,
    fixed: 'f',
    nested: { a: 'x', deeper: { b: 1 } },
    map: { a: '1', b: '2' },
    atomic: ['a', 'b'],
    set: ['a', 'b'],
    ports: [{ port: 80 }, { port: 53, protocol: 'UDP' }],
    items: [
      { name: 'a', value: '1' },
      { name: 'b', value: '2', tags: ['x'] },
    ],
  },
  { labels: { a: 'b' }, annotations: { c: 'd' } },
);

const MERGES: readonly Json[] = [
  {},
  { spec: { color: 'blue' } },
  { spec: { color: 'violet' } },
  { spec: { color: null } },
  { spec: { replicas: null } },
  { spec: { replicas: -1 } },
  { spec: { replicas: 'x' } },
  { spec: { replicas: 1.5 } },
  { spec: { fixed: 'g' } },
  { spec: { fixed: null } },
  { spec: { unknown: 1 } },
  { spec: { nested: { deeper: null } } },
  { spec: { nested: { deeper: {} } } },
  { spec: { nested: { deeper: { b: null, c: null } } } },
  { spec: { map: { a: null, c: '3' } } },
  { spec: { map: { a: 1 } } },
  { spec: { map: 'x' } },
  { spec: { set: ['a', 'a'] } },
  { spec: { ports: [{ port: 1 }, { port: 1 }] } },
  { spec: { ports: [{ protocol: 'UDP' }] } },
  { spec: { items: [{ name: 'c' }] } },
  { spec: { template: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x', labels: { a: 'b' } } } } },
  { spec: { template: { apiVersion: 'v1' } } },
  { spec: null },
  { spec: 'x' },
  { spec: [] },
  { status: { phase: 'x' } },
  { status: null },
  { unknown: 1 },
  { metadata: null },
  { metadata: { name: 'other' } },
  { metadata: { name: null } },
  { metadata: { namespace: 'other' } },
  { metadata: { labels: null } },
  { metadata: { labels: { 'bad key!': 'x' } } },
  { metadata: { labels: { a: 1 } } },
  { metadata: { annotations: { a: null } } },
  { metadata: { finalizers: ['x'] } },
  { metadata: { finalizers: ['a/b'] } },
  { metadata: { finalizers: ['a b/c'] } },
  { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'x' }] } },
  { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'x', uid: 'y' }] } },
  {
    metadata: {
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Pod', name: 'x', uid: 'y', controller: true },
        { apiVersion: 'v1', kind: 'Pod', name: 'z', uid: 'z', controller: true },
      ],
    },
  },
  { metadata: { resourceVersion: '1' } },
  { metadata: { resourceVersion: 'x' } },
  { metadata: { resourceVersion: '' } },
  { metadata: { resourceVersion: null } },
  { metadata: { uid: 'x' } },
  { metadata: { uid: null } },
  { metadata: { generation: 100 } },
  { metadata: { creationTimestamp: null } },
  { metadata: { creationTimestamp: '2020-01-01T00:00:00Z' } },
  { metadata: { creationTimestamp: 'x' } },
  { metadata: { deletionTimestamp: '2020-01-01T00:00:00Z' } },
  { metadata: { managedFields: [] } },
  { metadata: { managedFields: [{}] } },
  { metadata: { managedFields: null } },
  { metadata: { managedFields: [{ manager: 'x', operation: 'Bad' }] } },
  { metadata: { selfLink: '/x' } },
  { metadata: { unknown: 1 } },
  { kind: 'Other' },
  { kind: '' },
  { kind: null },
  { apiVersion: 'v2' },
  { apiVersion: `${GROUP}/v1beta1` },
  { apiVersion: null },
];

const op = (op: string, path: string, value?: Json, from?: string): Json => ({
  op,
  path,
  ...(value === undefined ? {} : { value }),
  ...(from === undefined ? {} : { from }),
});
const JSON_PATCHES: readonly Json[] = [
  [],
  [op('add', '/spec/color', 'blue')],
  [op('add', '/spec/color')],
  [op('add', '/spec/set/-', 'c')],
  [op('add', '/spec/set/0', 'c')],
  [op('add', '/spec/set/2', 'c')],
  [op('add', '/spec/set/3', 'c')],
  [op('add', '/spec/set/-1', 'c')],
  [op('add', '/spec/set/-3', 'c')],
  [op('add', '/spec/set/-4', 'c')],
  [op('add', '/spec/set/x', 'c')],
  [op('add', '/spec/set/01', 'c')],
  [op('add', '', { spec: {} })],
  [op('replace', '', { spec: {} })],
  [op('remove', '')],
  [op('add', '/', 1)],
  [op('replace', '/spec/flag', true)],
  [op('remove', '/spec/flag')],
  [op('remove', '/spec/set/0')],
  [op('remove', '/spec/set/-1')],
  [op('remove', '/spec/set/9')],
  [op('remove', '/spec/set/-')],
  [op('test', '/spec/color', 'red')],
  [op('test', '/spec/color', 'blue')],
  [op('test', '/spec/size', 1.5)],
  [op('test', '/spec/size', 1)],
  [op('test', '/spec/flag', null)],
  [op('test', '/spec/flag')],
  [op('test', '/spec/nested', { deeper: { c: 'c', b: 1 }, a: 'x' })],
  [op('test', '/spec/set', ['b', 'a'])],
  [op('move', '/spec/map/z', undefined, '/spec/map/a')],
  [op('move', '/spec/map/z', undefined, '/spec/map/none')],
  [op('move', '/spec/map/z')],
  [op('copy', '/spec/map/z', undefined, '/spec/map/a')],
  [op('copy', '/spec/set/-', undefined, '/spec/set/0')],
  [op('add', '/metadata/labels/x~1y', 'z')],
  [op('add', '/metadata/labels/x~0y', 'z')],
  [op('add', '/spec/nosuch/deep', 1)],
  [op('add', 'spec', 1)],
  [op('bogus', '/spec')],
  [{}],
  [{ op: 'add' }],
  [{ op: 1, path: '/x' }],
  [op('add', '/spec/unknown', 1)],
  [op('replace', '/metadata/name', 'other')],
  [op('replace', '/metadata/resourceVersion', '1')],
  [op('remove', '/metadata/resourceVersion')],
  [op('remove', '/spec/ports')],
  [op('remove', '/metadata')],
  [op('remove', '/kind')],
  {},
  'x',
  null,
  1,
];

export const patches: Part = async (pair, findings) => {
  const session = new Session(pair, findings, 'patch');
  await session.ask(post(WIDGETS, FULL));
  const one = `${WIDGETS}/full?dryRun=All`;
  for (const body of MERGES) {
    await session.ask(patch(one, TYPE.merge, JSON.stringify(body)));
    await session.ask(patch(`${one}&fieldValidation=Strict`, TYPE.merge, JSON.stringify(body)));
  }
  for (const body of JSON_PATCHES) await session.ask(patch(one, TYPE.jsonPatch, JSON.stringify(body)));
  for (const body of ['', '{', '[', 'null', '[]', '"x"', '{"spec":{"color":"red","color":"blue"}}', 'a: b']) {
    for (const type of Object.values(TYPE)) await session.ask(patch(one, type, body));
    await session.ask(patch(`${one}&fieldValidation=Strict`, TYPE.merge, body));
    await session.ask(patch(`${one}&fieldValidation=Warn`, TYPE.merge, body));
  }
  for (const type of ['', 'text/plain', 'application/merge-patch+json; charset=utf-8', TYPE.strategic, TYPE.json])
    await session.ask(patch(one, type, { spec: { color: 'blue' } }));
  await session.ask(patch(`${WIDGETS}/absent`, TYPE.merge, {}));
  await session.ask(patch(`${one}&force=true`, TYPE.merge, {}));
  await session.ask(patch(`${one}&fieldManager=m`, TYPE.merge, { spec: { color: 'blue' } }));
  await session.note('full', `${WIDGETS}/full`);
  await session.ask(patch(one, TYPE.merge, { metadata: { resourceVersion: '<full.resourceVersion>' } }));
  await session.ask(patch(one, TYPE.merge, { metadata: { uid: '<full.uid>' } }));
  await session.ask(patch(`${WIDGETS}/full`, TYPE.merge, { spec: { color: 'blue' } }));
  await session.ask(patch(`${WIDGETS}/full`, TYPE.merge, { spec: { color: 'blue' } }));
  await session.ask(patch(`${WIDGETS}/full`, TYPE.merge, { metadata: { resourceVersion: '<full.resourceVersion>' } }));
  await session.ask(put(`${WIDGETS}/full`, { ...FULL, metadata: { name: 'full' } }));
  const conflicting = { ...FULL, metadata: { name: 'full', resourceVersion: '<full.resourceVersion>' } };
  await session.ask(put(`${WIDGETS}/full`, conflicting));
  await session.ask(remove(`${WIDGETS}/full`));
};

/** Sequences on one object: field manager, applied fields and query, or another request in between. */
type Step = readonly [manager: string, fields: Fields, query?: string];
const APPLIED: readonly (readonly Step[])[] = [
  [
    ['a', { color: 'red' }],
    ['a', { color: 'red' }],
    ['b', { color: 'red' }],
    ['b', { color: 'blue' }],
    ['b', { color: 'blue' }, 'force=true'],
    ['a', {}],
    ['b', {}],
  ],
  [
    ['a', { ports: [{ port: 80 }], items: [{ name: 'x', value: '1' }] }],
    ['b', { ports: [{ port: 80, protocol: 'UDP', name: 'u' }], items: [{ name: 'x', tags: ['p'] }, { name: 'y' }] }],
    ['b', { ports: [{ port: 80, protocol: 'TCP', name: 't' }], items: [{ name: 'x', value: '2' }] }],
    ['b', { ports: [{ port: 80, name: 't', options: ['q'] }], items: [{ name: 'y', value: '2' }] }],
    ['a', { ports: [{ port: 81 }] }],
    ['b', {}],
    ['a', { ports: [] }],
  ],
  [
    ['a', { set: ['x', 'y'], ints: [1, 2] }],
    ['b', { set: ['y', 'z'], ints: [2, 3] }],
    ['a', { set: ['x'] }],
    ['b', { set: ['w'] }],
    ['a', {}],
    ['a', { set: ['q', 'q'] }],
  ],
  [
    ['a', { atomic: ['x'], atomicMap: { a: '1' }, atomicObject: { a: '1' } }],
    ['b', { atomic: ['x'] }],
    ['b', { atomic: ['y'] }],
    ['b', { atomicMap: { b: '1' } }],
    ['b', { atomicObject: { b: '1' } }],
    ['b', { atomic: ['y'], atomicMap: { b: '1' }, atomicObject: { b: '1' } }, 'force=true'],
    ['a', { atomic: ['x', 'y'] }],
    ['b', {}],
  ],
  [
    ['a', { nested: { a: '1', deeper: { b: 1 } }, map: { a: '1' }, mapOfObjects: { k: { a: 'x' } } }],
    ['b', { nested: { deeper: { b: 2 } }, map: { b: '1' }, mapOfObjects: { k: { b: 1 }, l: { a: 'y' } } }],
    ['b', { nested: { deeper: { c: 'd' } }, map: { b: '1' }, mapOfObjects: { k: { b: 1 }, l: { a: 'y' } } }],
    ['a', { nested: { a: '1' } }],
    ['a', { nested: {} }],
    ['a', { nested: null }],
    ['b', { map: { a: '2', b: '2' } }],
  ],
  [
    ['a', { any: { x: 1, y: [1, 2], z: { w: null } }, template: { apiVersion: 'v1', kind: 'Pod', spec: { a: 1 } } }],
    ['b', { any: { x: 2 } }],
    ['b', { any: { v: 2 } }],
    ['b', { template: { apiVersion: 'v1', kind: 'Pod', spec: { b: 1 } } }],
    ['b', { any: 'text' }],
    ['b', { any: 'text' }, 'force=true'],
    ['a', { either: 1 }],
    ['b', { either: '1' }],
  ],
  [
    ['a', { fixed: 'x', replicas: 3 }],
    ['a', { fixed: 'y', replicas: 3 }],
    ['a', { fixed: 'x', replicas: -1 }],
    ['a', { fixed: 'x', replicas: '3' }],
    ['a', { color: 'violet' }],
    ['a', { unknown: 1 }],
    ['a', { unknown: 1 }, 'fieldValidation=Strict'],
    ['a', { unknown: 1 }, 'fieldValidation=Ignore'],
    ['a', { ports: [{ protocol: 'TCP' }] }],
    ['a', { ports: [{ port: 'x' }] }],
    ['a', { ports: [{ port: 1 }, { port: 1 }] }],
    ['a', { ports: {} }],
    ['a', { items: [{ value: '1' }] }],
    ['a', { items: [null] }],
    ['a', { set: [null] }],
    ['a', { set: 'x' }],
    ['a', { nested: [] }],
    ['a', { map: { a: 1 } }],
    ['a', { map: { a: null } }],
    ['a', { set: null, ports: null }],
  ],
];

const WRONG_APPLIES: readonly Json[] = [
  widget('other'),
  { apiVersion: `${GROUP}/v1`, metadata: { name: 'w' } },
  { kind: 'Widget', metadata: { name: 'w' } },
  { apiVersion: `${GROUP}/v1`, kind: 'Gadget', metadata: { name: 'w' } },
  { apiVersion: `${GROUP}/v1beta1`, kind: 'Widget', metadata: { name: 'w' } },
  { apiVersion: `${GROUP}/v9`, kind: 'Widget', metadata: { name: 'w' } },
  { apiVersion: 'x/v1', kind: 'Widget', metadata: { name: 'w' } },
  { apiVersion: `${GROUP}/v1`, kind: 'Widget' },
  { apiVersion: `${GROUP}/v1`, kind: 'Widget', metadata: {} },
  widget('w', {}, { namespace: 'other' }),
  widget('w', {}, { managedFields: [] }),
  widget('w', {}, { managedFields: [{}] }),
  widget('w', {}, { managedFields: null }),
  widget('w', {}, { resourceVersion: '1' }),
  widget('w', {}, { resourceVersion: 'x' }),
  widget('w', {}, { uid: 'x' }),
  widget('w', {}, { creationTimestamp: null }),
  widget('w', {}, { generateName: 'x' }),
  widget('w', {}, { labels: { a: 'b' }, annotations: { a: 'b' }, finalizers: ['a/b'] }),
  widget('w', {}, { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'x', uid: 'y' }] }),
  widget('w', {}, {}, { status: { phase: 'x' } }),
  widget('w', {}, {}, { unknown: 1 }),
  [],
  'x',
  null,
];

const applyTo = (path: string, manager: string, body: unknown, query = ''): ReturnType<typeof patch> =>
  patch(`${path}?fieldManager=${manager}${query === '' ? '' : `&${query}`}`, TYPE.apply, body);

export const applied: Part = async (pair, findings) => {
  const session = new Session(pair, findings, 'apply');
  for (const [index, steps] of APPLIED.entries()) {
    const name = `applied-${index}`;
    const one = `${WIDGETS}/${name}`;
    for (const [manager, fields, query] of steps) await session.ask(applyTo(one, manager, widget(name, fields), query));
    await session.ask(
      patch(`${one}?fieldManager=c`, TYPE.merge, { spec: { color: 'green', atomic: ['m'], map: { m: '1' } } }),
    );
    for (const [manager, fields, query] of steps) await session.ask(applyTo(one, manager, widget(name, fields), query));
    await session.ask(put(`${one}?fieldManager=d`, widget(name, { nested: { a: 'put' } })));
    for (const [manager, fields, query] of steps)
      await session.ask(
        applyTo(one, manager, widget(name, fields), `force=true${query === undefined ? '' : `&${query}`}`),
      );
    await session.ask(patch(one, TYPE.merge, { metadata: { managedFields: [{}] } }));
    await session.ask(applyTo(one, 'e', widget(name, { color: 'red', set: ['z'] })));
    await session.ask(remove(one));
  }
  for (const body of WRONG_APPLIES) {
    for (const query of ['', 'force=true', 'dryRun=All'])
      await session.ask(applyTo(`${WIDGETS}/w`, 'm', JSON.stringify(body), query));
  }
  await session.ask(patch(`${WIDGETS}/w`, TYPE.apply, widget('w')));
  await session.ask(patch(`${WIDGETS}/w?force=x`, TYPE.apply, widget('w')));
  await session.ask(applyTo(`${WIDGETS}/w`, 'm', 'a: ['));
  await session.ask(
    applyTo(
      `${WIDGETS}/w`,
      'm',
      `apiVersion: ${GROUP}/v1\nkind: Widget\nmetadata: {name: w}\nspec:\n  color: red\n  color: blue\n`,
    ),
  );
  await session.ask(
    applyTo(
      `${WIDGETS}/w`,
      'm',
      `apiVersion: ${GROUP}/v1\nkind: Widget\nmetadata: {name: w}\nspec:\n  color: red\n  replicas: 010\n`,
      'fieldValidation=Strict',
    ),
  );
  await session.ask(patch(`${WIDGETS}/w?fieldManager=m`, 'application/apply-patch+cbor', widget('w')));
  await session.ask(remove(`${WIDGETS}/w`));
};

/** Managed fields of an object that is written in several versions and through subresources. */
export const owners: Part = async (pair, findings) => {
  const session = new Session(pair, findings, 'owners');
  const one = `${WIDGETS}/w`;
  const beta = one.replace('/v1/', '/v1beta1/');
  const inBeta = (fields: Fields, rest: Fields = {}): Fields => ({
    ...widget('w', fields, {}, rest),
    apiVersion: `${GROUP}/v1beta1`,
  });
  const status = (fields: Fields): Fields => ({ ...widget('w', {}, {}, { status: fields }) });
  await session.ask(applyTo(beta, 'a', inBeta({ color: 'red', set: ['x'] })));
  await session.ask(applyTo(one, 'a', widget('w', { color: 'red', set: ['y'] })));
  await session.ask(applyTo(one, 'b', widget('w', { color: 'blue' })));
  await session.ask(applyTo(beta, 'b', inBeta({ color: 'blue' }), 'force=true'));
  await session.ask(patch(beta, TYPE.merge, { spec: { size: 3 } }));
  await session.ask(patch(one, TYPE.merge, { spec: { size: 4 } }));
  await session.ask(get(beta));
  await session.ask(applyTo(`${one}/status`, 'c', status({ phase: 'p', conditions: [{ type: 'A', status: 'True' }] })));
  await session.ask(applyTo(`${one}/status`, 'd', status({ phase: 'q' })));
  await session.ask(applyTo(`${one}/status`, 'd', status({ conditions: [{ type: 'A', status: 'False' }] })));
  await session.ask(applyTo(`${one}/status`, 'd', status({ conditions: [{ type: 'B' }] })));
  await session.ask(applyTo(`${one}/status`, 'c', { ...status({ phase: 'r' }), spec: { color: 'green' } }));
  await session.ask(applyTo(one, 'c', status({ phase: 's' })));
  const scale = (replicas: number): Fields => ({
    apiVersion: 'autoscaling/v1',
    kind: 'Scale',
    metadata: { name: 'w' },
    spec: { replicas },
  });
  await session.ask(applyTo(`${one}/scale`, 'e', scale(5)));
  await session.ask(applyTo(one, 'b', widget('w', { color: 'blue', replicas: 6 })));
  await session.ask(applyTo(one, 'b', widget('w', { color: 'blue', replicas: 6 }), 'force=true'));
  await session.ask(applyTo(`${one}/scale`, 'f', scale(7)));
  await session.ask(applyTo(`${one}/scale`, 'f', scale(7), 'force=true'));
  await session.ask(patch(`${one}/scale?fieldManager=g`, TYPE.merge, { spec: { replicas: 8 } }));
  await session.ask(
    put(`${one}/scale?fieldManager=h`, { metadata: { name: 'w', namespace: 'ns' }, spec: { replicas: 9 } }),
  );
  await session.ask(
    send('PUT', `${one}/status?fieldManager=i`, TYPE.json, { ...status({ phase: 'z' }), spec: { color: 'green' } }),
  );
  await session.ask(get(one));
  await session.ask(remove(one));
};
