/** Requests about custom resources to both servers, by part. */

import type { Part } from '../api/judge.ts';
import type { Pair } from '../api/pair.ts';
import { applied, owners, patches } from './changes.ts';
import { DEFINITIONS, type Fields, GROUP, type Json } from './definitions.ts';
import { FIELD_NAMES, OBJECTS, valuesOf } from './objects.ts';
import { lists, published, tables, watches } from './reads.ts';
import { GADGETS_PATH, WIDGETS_PATH } from './requests.ts';
import { BREAKABLE_DEFINITION, BREAKABLE_NAMES, BREAKING, RULED } from './rules.ts';
import { GADGETS, WIDGETS } from './widgets.ts';
import { deletions, fields, subresources, versions } from './writes.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const THINGS = `/apis/${GROUP}/v1/namespaces/ns/things`;
const AT_ONCE = 8;
const post = (path: string, document: unknown) =>
  ({ method: 'POST', path, headers: JSON_TYPE, body: JSON.stringify(document) }) as const;

/** Runs several jobs at a time and starts them in order. */
async function several<T>(jobs: Iterable<T>, run: (job: T) => Promise<void>): Promise<void> {
  const iterator = jobs[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (let next = iterator.next(); next.done !== true; next = iterator.next()) await run(next.value);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

/** Resolves when both servers serve the kind. */
async function define(pair: Pair, document: Fields, path = THINGS): Promise<void> {
  await pair.ours.send(post('/api/v1/namespaces', { metadata: { name: 'ns' } }));
  await Promise.all(
    [pair.ours, pair.upstream].map(async (server) => {
      const reply = await server.send(post(CRDS, document));
      if (reply.code !== 201) throw new Error(`the definition is refused: ${reply.bytes.toString()}`);
      for (let attempt = 0; attempt < 300; attempt++) {
        if ((await server.send({ method: 'GET', path })).code === 200) return;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      throw new Error(`${path} is not served`);
    }),
  );
}

async function undefine(pair: Pair, name = `things.${GROUP}`): Promise<void> {
  await Promise.all(
    [pair.ours, pair.upstream].map(async (server) => {
      await server.send({ method: 'DELETE', path: `${CRDS}/${name}` });
      for (let attempt = 0; attempt < 300; attempt++) {
        if ((await server.send({ method: 'GET', path: `${CRDS}/${name}` })).code === 404) return;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      throw new Error(`${name} does not go`);
    }),
  );
}

const thing = (spec: Fields, rest: Fields = {}): Fields => ({
  apiVersion: `${GROUP}/v1`,
  kind: 'Thing',
  metadata: { name: 'a' },
  spec,
  ...rest,
});

const definitions: Part = async (pair, findings) => {
  for (const document of DEFINITIONS) {
    const topic = JSON.stringify(document['spec'] ?? document).slice(0, 600);
    await findings.ask(pair, post(`${CRDS}?dryRun=All`, document), { topic });
  }
};

function* objectsOf(): Generator<[string, Json]> {
  for (const name of FIELD_NAMES) for (const value of valuesOf(name)) yield [name, value];
}

/** A copy without managed fields. */
function withoutOwners(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || !('metadata' in body)) return body;
  const { managedFields: _, ...metadata } = body.metadata as Record<string, unknown>;
  return { ...body, metadata };
}

const objects: Part = async (pair, findings) => {
  await define(pair, OBJECTS);
  await several(objectsOf(), async ([name, value]) => {
    const topic = `${name}=${JSON.stringify(value)}`;
    await findings.ask(pair, post(`${THINGS}?dryRun=All&fieldValidation=Strict`, thing({ [name]: value })), {
      topic,
      view: withoutOwners,
    });
    await findings.ask(pair, post(`${THINGS}?dryRun=All`, thing({ [name]: value })), { topic });
  });
  await undefine(pair);
};

const rules: Part = async (pair, findings) => {
  for (const document of RULED) {
    const topic = JSON.stringify(document['spec']).slice(-300);
    await findings.ask(pair, post(`${CRDS}?dryRun=All`, document), { topic });
  }
  await define(pair, BREAKABLE_DEFINITION);
  for (const name of BREAKABLE_NAMES) {
    for (const value of BREAKING) {
      const topic = `${name}=${JSON.stringify(value)}`;
      await findings.ask(pair, post(`${THINGS}?dryRun=All`, thing({ [name]: value })), { topic });
    }
  }
  await undefine(pair);
};

/** Runs `part` with a kind that uses all features and one that uses none. */
const ofWidgets =
  (part: Part): Part =>
  async (pair, findings) => {
    await define(pair, WIDGETS, WIDGETS_PATH);
    await define(pair, GADGETS, GADGETS_PATH);
    await part(pair, findings);
    await undefine(pair, `widgets.${GROUP}`);
    await undefine(pair, `gadgets.${GROUP}`);
  };

const OF_WIDGETS = {
  patches,
  applied,
  owners,
  subresources,
  versions,
  deletions,
  fields,
  tables,
  lists,
  watches,
  published,
};

export const PARTS: Readonly<Record<string, Part>> = {
  definitions,
  objects,
  rules,
  ...Object.fromEntries(Object.entries(OF_WIDGETS).map(([name, part]) => [name, ofWidgets(part)])),
};
