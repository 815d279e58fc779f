/** Requests with v1beta1 definitions of custom resources, and with resources that keep unknown fields. */
import type { Request } from '../../differential/exchange.ts';
import { DEFINITIONS, type Fields, GROUP, type Json } from '../extensions/definitions.ts';
import { get, patch, post, put, remove, TYPE } from '../extensions/requests.ts';
import { Session } from '../extensions/session.ts';
import type { Part } from './judge.ts';
import type { Pair } from './pair.ts';

const OLDER = '/apis/apiextensions.k8s.io/v1beta1/customresourcedefinitions';
const NEWER = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const THINGS = `/apis/${GROUP}/v1/namespaces/ns/things`;
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';

const isFields = (value: Json | undefined): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const columnsOf = (columns: Json): Json =>
  Array.isArray(columns)
    ? columns.map((column) => {
        if (!isFields(column)) return column;
        const { jsonPath, ...rest } = column;
        return { ...rest, ...(jsonPath === undefined ? {} : { JSONPath: jsonPath }) };
      })
    : columns;

/** Converts a v1 definition to v1beta1. `hoisted`: parts of a single version are moved to the top of the spec. */
function older({ spec, ...rest }: Fields, hoisted: boolean, more: Fields = {}): Fields {
  if (!isFields(spec)) return { ...rest, apiVersion: 'apiextensions.k8s.io/v1beta1' };
  const { versions, conversion, ...others } = spec;
  const list = (Array.isArray(versions) ? versions : []).map((each): Json => {
    if (!isFields(each) || each['additionalPrinterColumns'] === undefined) return each;
    return { ...each, additionalPrinterColumns: columnsOf(each['additionalPrinterColumns']) };
  });
  const [only] = list;
  const parts: { [key: string]: Json } = {};
  if (hoisted && list.length === 1 && isFields(only)) {
    const { schema, subresources, additionalPrinterColumns, ...version } = only;
    if (schema !== undefined) parts['validation'] = schema;
    if (subresources !== undefined) parts['subresources'] = subresources;
    if (additionalPrinterColumns !== undefined) parts['additionalPrinterColumns'] = additionalPrinterColumns;
    list[0] = version;
  }
  if (versions !== undefined) parts['versions'] = versions === null ? null : list;
  if (isFields(conversion)) {
    const { webhook, ...how } = conversion;
    const { clientConfig, conversionReviewVersions } = isFields(webhook) ? webhook : {};
    parts['conversion'] = {
      ...how,
      ...(clientConfig === undefined ? {} : { webhookClientConfig: clientConfig }),
      ...(conversionReviewVersions === undefined ? {} : { conversionReviewVersions }),
    };
  } else if (conversion !== undefined) parts['conversion'] = conversion;
  return { ...rest, apiVersion: 'apiextensions.k8s.io/v1beta1', spec: { ...others, ...parts, ...more } };
}

const thingsOf = (spec: Fields): Fields => ({
  apiVersion: 'apiextensions.k8s.io/v1beta1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `things.${GROUP}` },
  spec: { group: GROUP, names: { plural: 'things', kind: 'Thing' }, ...spec },
});
const validation = (schema: Fields): Fields => ({ openAPIV3Schema: schema });
const named = (name: string, more: Fields = {}): Fields => ({ name, served: true, storage: name === 'v1', ...more });
const column = { name: 'X', type: 'string', JSONPath: '.spec.x' };

/** Definitions that are only possible in v1beta1. */
const FORMS: readonly Fields[] = [
  thingsOf({}),
  thingsOf({ version: 'v1' }),
  thingsOf({ version: 'V1' }),
  thingsOf({ version: 'v1', scope: 'Cluster', preserveUnknownFields: false }),
  thingsOf({ version: 'v1', preserveUnknownFields: false, validation: validation({ type: 'object' }) }),
  thingsOf({ version: 'v2', versions: [named('v1')] }),
  thingsOf({ version: 'v1', versions: [named('v1'), named('v2')] }),
  thingsOf({ versions: [named('v1'), named('v2')] }),
  thingsOf({ versions: [named('v1', { storage: false })] }),
  thingsOf({ version: 'v1', validation: validation({ properties: { spec: { type: 'foo' } } }) }),
  thingsOf({ version: 'v1', validation: validation({ type: 'object', $schema: 'x' }) }),
  thingsOf({ version: 'v1', validation: {} }),
  thingsOf({
    validation: validation({ type: 'object' }),
    versions: [named('v1', { schema: validation({ type: 'object' }) }), named('v2')],
  }),
  thingsOf({
    versions: [
      named('v1', { schema: validation({ type: 'object' }) }),
      named('v2', { schema: validation({ type: 'object' }) }),
    ],
  }),
  thingsOf({
    versions: [
      named('v1', { schema: validation({ type: 'object' }), subresources: { status: {} } }),
      named('v2', { schema: validation({ type: 'object', required: ['spec'] }), additionalPrinterColumns: [column] }),
    ],
  }),
  thingsOf({ subresources: { status: {} }, versions: [named('v1', { subresources: { status: {} } })] }),
  thingsOf({ additionalPrinterColumns: [column], versions: [named('v1', { additionalPrinterColumns: [column] })] }),
  thingsOf({ version: 'v1', additionalPrinterColumns: [{ name: 'X', type: 'string', jsonPath: '.x' }] }),
  thingsOf({ version: 'v1', conversion: { strategy: 'Webhook' } }),
  thingsOf({
    version: 'v1',
    preserveUnknownFields: false,
    validation: validation({ type: 'object' }),
    conversion: { strategy: 'Webhook', webhookClientConfig: { url: 'https://x.test/' } },
  }),
];

/** A schema that is not structural, as in old charts. */
const LOOSE = thingsOf({
  version: 'v1',
  subresources: { status: {}, scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' } },
  additionalPrinterColumns: [column],
  validation: validation({
    properties: {
      spec: {
        required: ['x'],
        properties: {
          x: { type: 'string', maxLength: 4 },
          replicas: { type: 'integer', minimum: 0 },
          either: { anyOf: [{ type: 'string', pattern: '^a' }, { type: 'integer' }] },
          deep: { properties: { a: { type: 'array', items: { required: ['b'] } } } },
        },
      },
    },
  }),
});

const thing = (name: string, spec: Json, more: Fields = {}): Fields => ({
  apiVersion: `${GROUP}/v1`,
  kind: 'Thing',
  metadata: { name },
  spec,
  ...more,
});

const SPECS: readonly Json[] = [
  {},
  'x',
  null,
  { x: 'a' },
  { x: 'abcde' },
  { x: 1 },
  { x: 'a', unknown: { nested: [1, { a: null }] }, empty: {}, none: null },
  { x: 'a', either: 'abc' },
  { x: 'a', either: 'bc' },
  { x: 'a', either: 3 },
  { x: 'a', replicas: -1 },
  { x: 'a', deep: { a: [{}] } },
  { x: 'a', deep: { a: [{ b: 1, c: 2 }] } },
  { x: 'a', deep: 'text' },
];

/** Removes managed fields and anything that depends on the order of controllers. */
function plain(body: unknown): unknown {
  if (typeof body !== 'object' || body === null) return body;
  const { metadata, status, ...rest } = body as { metadata?: object; status?: { conditions?: { type: string }[] } };
  const { managedFields: _, ...shown } = (metadata ?? {}) as Record<string, unknown>;
  const conditions = status?.conditions?.toSorted((a, b) => (a.type < b.type ? -1 : 1));
  return {
    ...rest,
    metadata: shown,
    ...(status === undefined ? {} : { status: conditions === undefined ? status : { ...status, conditions } }),
  };
}

async function settled(
  pair: Pair,
  request: Request,
  isSettled: (text: string, code: number) => boolean,
): Promise<void> {
  for (const server of [pair.ours, pair.upstream]) {
    for (let attempt = 0; ; attempt++) {
      const { bytes, code } = await server.send(request);
      if (isSettled(bytes.toString(), code)) break;
      if (attempt > 300) throw new Error(`${request.path}: ${bytes.toString().slice(0, 500)}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

/** Requests for stored definitions and their objects. */
async function kept(session: Session, pair: Pair): Promise<void> {
  const one = `${OLDER}/things.${GROUP}`;
  const ask = (request: Request): Promise<void> => session.ask(request, plain);
  await session.tell(post(OLDER, LOOSE));
  await settled(pair, get(one), (text) => text.includes('NonStructuralSchema') && text.includes('"Established"'));
  await settled(pair, get(THINGS), (_text, code) => code === 200);
  for (const path of [one, `${NEWER}/things.${GROUP}`]) {
    await ask(get(path));
    await ask(get(path, TABLE));
    await ask(patch(`${path}?dryRun=All`, TYPE.merge, { spec: { scope: 'Namespaced' } }));
    await ask(patch(`${path}?dryRun=All`, TYPE.merge, { spec: { preserveUnknownFields: false } }));
    await ask(patch(`${path}?dryRun=All`, TYPE.merge, { spec: { version: 'v2' } }));
    await ask(patch(`${path}/status?dryRun=All`, TYPE.merge, { status: { storedVersions: ['v1', 'v2'] } }));
    const more = [named('v1'), named('v2')];
    await ask(patch(`${path}?dryRun=All`, TYPE.merge, { spec: { versions: more } }));
    await ask(patch(`${path}?dryRun=All`, TYPE.merge, { spec: { additionalPrinterColumns: null, validation: null } }));
  }
  for (const [index, spec] of SPECS.entries()) {
    await ask(post(`${THINGS}?dryRun=All`, thing(`t${index}`, spec)));
    await ask(post(THINGS, thing(`t${index}`, spec, { more: { a: 1 }, status: { replicas: 1 } })));
    await ask(get(`${THINGS}/t${index}`));
  }
  await ask(get(THINGS, TABLE));
  await ask(get(`${THINGS}/t3/scale`));
  await ask(patch(`${THINGS}/t3`, TYPE.merge, { spec: { other: { a: null, b: { c: 1 } } }, rest: [1] }));
  await ask(patch(`${THINGS}/t3/status`, TYPE.merge, { status: { replicas: 3, unknown: true }, spec: { x: 'no' } }));
  await ask(patch(`${THINGS}/t3/status`, TYPE.merge, { status: { replicas: -3 } }));
  await ask(patch(`${THINGS}/t3/scale`, TYPE.merge, { spec: { replicas: 2 } }));
  await ask(
    patch(`${THINGS}/t3?fieldManager=m`, TYPE.apply, thing('t3', { x: 'a', list: [{ n: 1 }], map: { k: 'v' } })),
  );
  await ask(patch(`${THINGS}/t3?fieldManager=n`, TYPE.apply, thing('t3', { x: 'b', list: [{ n: 2 }] })));
  await ask(patch(`${THINGS}/t9?fieldManager=m`, TYPE.apply, thing('t9', { x: 'a', list: [{ n: 1 }], map: {} })));
  await ask(get(`${THINGS}/t3`));
  await session.note('t3', `${THINGS}/t3`);
  await ask(
    put(
      `${THINGS}/t3`,
      thing('t3', { x: 'c', q: {} }, { metadata: { name: 't3', resourceVersion: '<t3.resourceVersion>' } }),
    ),
  );
  await session.tell(remove(one));
  await settled(pair, get(one), (_text, code) => code === 404);
}

export const olderDefinitions: Part = async (pair, findings) => {
  await pair.ours.send(post('/api/v1/namespaces', { metadata: { name: 'ns' } }));
  await pair.upstream.send(post('/api/v1/namespaces', { metadata: { name: 'ns' } }));
  const documents = [
    ...FORMS,
    ...DEFINITIONS.map((each) => older(each, true)),
    ...DEFINITIONS.map((each) => older(each, true, { preserveUnknownFields: false })),
    older(DEFINITIONS[0] ?? {}, false),
  ];
  for (const document of documents) {
    const topic = JSON.stringify(document['spec'] ?? document).slice(0, 600);
    await findings.ask(pair, post(`${OLDER}?dryRun=All`, document), { topic, view: plain, warnings: true });
  }
  await kept(new Session(pair, findings, 'kept'), pair);
};
