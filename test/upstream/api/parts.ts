/** Requests to both servers, by part. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { differences } from '../../differential/normalise.ts';
import { play } from '../../differential/recorded/play.ts';
import { parseScript } from '../../differential/recorded/script.ts';
import type { Findings } from './findings.ts';
import type { Part } from './judge.ts';
import { type Json, Mutations } from './mutations.ts';
import { olderDefinitions } from './older-definitions.ts';
import type { Pair } from './pair.ts';
import { FIXTURES, WRONG } from './requests.ts';
import { type Subject, subjects } from './subjects.ts';

type Document = { readonly [key: string]: Json };

const JSON_TYPE = { 'content-type': 'application/json' };
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';
const AT_ONCE = 8;

const post = (path: string, document: unknown) =>
  ({ method: 'POST', path, headers: JSON_TYPE, body: JSON.stringify(document) }) as const;
const put = (path: string, document: unknown) =>
  ({ method: 'PUT', path, headers: JSON_TYPE, body: JSON.stringify(document) }) as const;

const nameOf = (document: unknown): string =>
  String((document as { metadata?: { name?: unknown } }).metadata?.name ?? 'x');

async function both(pair: Pair, path: string, document: unknown): Promise<void> {
  await Promise.all([pair.ours, pair.upstream].map((server) => server.send(post(path, document))));
}

async function prepare(pair: Pair): Promise<void> {
  await both(pair, '/api/v1/namespaces', { metadata: { name: 'ns' } });
}

/** Runs several jobs at a time and starts them in order. */
async function several<T>(jobs: Iterable<T>, run: (job: T) => Promise<void>): Promise<void> {
  const iterator = jobs[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (let next = iterator.next(); next.done !== true; next = iterator.next()) await run(next.value);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

async function mutationsOf(pair: Pair): Promise<Mutations> {
  const reply = await pair.upstream.send({ method: 'GET', path: '/openapi/v2' });
  return new Mutations(JSON.parse(reply.bytes.toString()));
}

/** Fields below the pod template are changed for pods only. */
const deep = (subject: Subject): boolean => subject.kind === 'Pod';

/** A copy without managed fields. */
function withoutOwners(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || !('metadata' in body)) return body;
  const { managedFields: _, ...metadata } = body.metadata as Record<string, unknown>;
  return { ...body, metadata };
}

/** Lifecycle of one object per kind: create, read in every version, as a table and in lists, update, delete. */
const samples: Part = async (pair, findings) => {
  await prepare(pair);
  const all = await subjects(pair);
  const stored = new Set<string>();
  for (const { path, document, kind, apiVersion } of all) {
    const topic = `${kind} ${apiVersion} create`;
    await findings.ask(pair, post(`${path}?dryRun=All`, document), { topic });
    if (stored.has(kind)) continue;
    stored.add(kind);
    await both(pair, path, document);
  }
  for (const { path, document, kind, apiVersion } of all) {
    const one = `${path}/${nameOf(document)}`;
    const ask = (what: string, request: Parameters<Findings['ask']>[1]) =>
      findings.ask(pair, request, { topic: `${kind} ${apiVersion} ${what}` });
    await ask('get', { method: 'GET', path: one });
    await ask('table', { method: 'GET', path: one, headers: { accept: TABLE } });
    await ask('list', { method: 'GET', path: `${path}?fieldSelector=metadata.name%3D${nameOf(document)}` });
    await ask('partial', {
      method: 'GET',
      path: one,
      headers: { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' },
    });
    await ask('selector', { method: 'GET', path: `${path}?fieldSelector=no.such%3Dfield` });
    await ask('same', put(`${one}?dryRun=All`, document));
    await ask('merge patch', {
      method: 'PATCH',
      path: `${one}?dryRun=All`,
      headers: { 'content-type': 'application/merge-patch+json' },
      body: '{"metadata":{"labels":{"a":"b"}}}',
    });
    await ask('strategic patch', {
      method: 'PATCH',
      path: `${one}?dryRun=All`,
      headers: { 'content-type': 'application/strategic-merge-patch+json' },
      body: '{"metadata":{"annotations":{"a":"b"}}}',
    });
    await ask('apply', {
      method: 'PATCH',
      path: `${one}?dryRun=All&fieldManager=m&force=true`,
      headers: { 'content-type': 'application/apply-patch+yaml' },
      body: JSON.stringify(document),
    });
    await ask('delete', { method: 'DELETE', path: `${one}?dryRun=All` });
    await ask('delete collection', { method: 'DELETE', path: `${path}?dryRun=All&labelSelector=no%3Dsuch` });
    for (const subresource of ['status', 'scale', 'nosuch']) {
      await ask(subresource, { method: 'GET', path: `${one}/${subresource}` });
    }
    await ask('status patch', {
      method: 'PATCH',
      path: `${one}/status?dryRun=All`,
      headers: { 'content-type': 'application/merge-patch+json' },
      body: '{"metadata":{"labels":{"a":"b"}},"spec":{"x":1},"status":{}}',
    });
  }
};

/** Creates objects with one invalid field each. */
const invalid: Part = async (pair, findings) => {
  await prepare(pair);
  const mutations = await mutationsOf(pair);
  for (const subject of await subjects(pair)) {
    const ask = (document: Json, topic: string, known?: ReadonlySet<string>) => {
      const options = { topic, view: withoutOwners, ...(known === undefined ? {} : { known }) };
      return findings.ask(pair, post(`${subject.path}?dryRun=All`, document), options);
    };
    const known = await ask(subject.document, `${subject.kind} ${subject.apiVersion} as it is`);
    const changed = mutations.of(subject.document, subject.apiVersion, subject.kind, deep(subject));
    await several(changed, async ({ path, value, document }) => {
      await ask(
        document,
        `${subject.kind} ${subject.apiVersion} ${path}=${JSON.stringify(value)?.slice(0, 80)}`,
        known,
      );
    });
  }
};

/** Updates objects in one field each. */
const updates: Part = async (pair, findings) => {
  await prepare(pair);
  const mutations = await mutationsOf(pair);
  for (const subject of await subjects(pair)) {
    await both(pair, subject.path, subject.document);
    const one = `${subject.path}/${nameOf(subject.document)}`;
    const ask = (document: Json, topic: string, known?: ReadonlySet<string>) => {
      const options = { topic, view: withoutOwners, ...(known === undefined ? {} : { known }) };
      return findings.ask(pair, put(`${one}?dryRun=All`, document as Document), options);
    };
    const stored = await pair.ours.send({ method: 'GET', path: one });
    if (stored.code !== 200) continue;
    const known = await ask(subject.document, `${subject.kind} ${subject.apiVersion} update as it is`);
    const changed = mutations.of(subject.document, subject.apiVersion, subject.kind, deep(subject));
    await several(changed, async ({ path, value, document }) => {
      const topic = `${subject.kind} ${subject.apiVersion} update ${path}=${JSON.stringify(value)?.slice(0, 80)}`;
      await ask(document, topic, known);
    });
  }
};

/** Sends requests with one error each. */
const wrong: Part = async (pair, findings) => {
  for (const [path, document] of FIXTURES) await both(pair, path, document);
  for (const [topic, requests] of Object.entries(WRONG)) {
    for (const request of requests) {
      const body = request.body === undefined ? '' : ` ${String(request.body).slice(0, 200)}`;
      const headers = Object.values(request.headers ?? {}).join(' ');
      await findings.ask(pair, request, { topic: `${topic} ${request.method} ${request.path} ${headers}${body}` });
    }
  }
};

/** Sends the recorded requests of real clients. */
const recorded: Part = async (pair, findings) => {
  const directory = join(import.meta.dirname, '../../differential/recorded/scripts');
  for (const file of readdirSync(directory).filter((name) => name.endsWith('.jsonl'))) {
    const steps = parseScript(readFileSync(join(directory, file), 'utf8'));
    const [ours, theirs] = await Promise.all([play(steps, pair.ours), play(steps, pair.upstream)]);
    for (const [index, step] of steps.entries()) {
      const topic = `${file} ${index + 1} ${step.method} ${step.path}`;
      for (const { path, left, right } of differences(ours[index], theirs[index]))
        findings.add(topic, `${path}: ${JSON.stringify(left)} upstream ${JSON.stringify(right)}`, step.body ?? '');
    }
  }
};

export const PARTS: Readonly<Record<string, Part>> = {
  wrong,
  samples,
  invalid,
  updates,
  recorded,
  definitions: olderDefinitions,
};
