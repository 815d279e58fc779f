/**
 * Sends the requests of a script to a server, and reduces each response to the parts that are the same in every run.
 */

import { decodeProtobuf } from '../../../src/apiserver/http/protobuf/decode.ts';
import { Reader } from '../../../src/wire/protobuf/protobuf.ts';
import type { Connection, Reply } from '../exchange.ts';
import { normalise } from '../normalise.ts';
import { type Chosen, documentOf, isWatch, learn, requestOf, type Step } from './script.ts';

/** Compared parts of a response. */
export interface RecordedResponse {
  readonly code: number;
  readonly type: string;
  readonly body: unknown;
}

/** Size in characters of JSON above which only the kind and the names in a body are compared. */
const LONGEST = 6000;
/** Discovery and OpenAPI documents. They grow with every kind and have tests of their own. */
const ABOUT_THE_API = /^\/(?:openapi|apis?(?:\/[^/?]+(?:\/[^/?]+)?)?$|apis?\/?\?|version|\.well-known)|^\/api\/v1$/;

/** Lists that contain the server's bootstrap objects. */
const BOOTSTRAPPED =
  /^\/apis\/rbac\.authorization\.k8s\.io\/v1\/\w+$|\/(?:flowschemas|prioritylevelconfigurations|apiservices)$/;

type Fields = Record<string, unknown>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Returns one response for each step, in the order of the steps. Watches are sent last and concurrently, so that they
 * report the events of the whole run.
 */
export async function play(steps: readonly Step[], connection: Connection): Promise<RecordedResponse[]> {
  const chosen: Chosen = new Map();
  const responses: RecordedResponse[] = [];
  const watches: Promise<void>[] = [];
  const later: (() => Promise<void>)[] = [];
  for (const [index, step] of steps.entries()) {
    const request = requestOf(step, chosen);
    if (isWatch(step)) {
      later.push(async () => {
        responses[index] = summarizeWatch(step, await connection.send({ ...request, path: briefly(request.path) }));
      });
      continue;
    }
    const reply = await connection.send(request);
    learn(step, reply, chosen);
    responses[index] = summarize(step, reply, (text) => named(text, chosen, connection.port));
    if (step.method === 'POST' && step.path.includes('/customresourcedefinitions'))
      await established(reply, connection);
  }
  for (const watch of later) watches.push(watch());
  await Promise.all(watches);
  return responses;
}

const briefly = (path: string): string =>
  `${path.replaceAll(/([?&])timeout(?:Seconds)?=[^&]*/g, '$1').replaceAll(/&&+/g, '&')}&timeoutSeconds=1`;

/**
 * Waits until the objects of a new definition are served. The recorded client waited too, so its next requests rely on
 * it.
 */
async function established(reply: Reply, connection: Connection): Promise<void> {
  if (reply.code !== 201) return;
  const { metadata } = JSON.parse(reply.bytes.toString()) as { metadata: { name: string } };
  const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${metadata.name}`;
  for (let attempt = 0; attempt < 200; attempt++) {
    const { bytes } = await connection.send({ method: 'GET', path });
    const { spec, status } = JSON.parse(bytes.toString()) as {
      spec: { group: string; names: { plural: string }; versions: { name: string }[] };
      status: { conditions?: { type: string; status: string }[] };
    };
    const ready = status.conditions?.some((each) => each.type === 'Established' && each.status === 'True') === true;
    const objects = `/apis/${spec.group}/${spec.versions[0]?.name}/${spec.names.plural}`;
    if (ready && (await connection.send({ method: 'GET', path: objects })).code === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${metadata.name} is not established`);
}

const NUMBER = /^\d+$/;
const UUID = /^[0-9a-f-]{36}$/;

/** Replaces generated names by their marks wherever they occur, and the port of the server by `<port>`. */
function named(text: string, chosen: Chosen, port: number): string {
  let result = text.replaceAll(`"port":${port}`, '"port":"<port>"');
  for (const [mark, value] of chosen)
    if (!NUMBER.test(value) && !UUID.test(value)) result = result.replaceAll(value, `<<${mark}>>`);
  return result;
}

function summarize(step: Step, reply: Reply, name: (text: string) => string): RecordedResponse {
  const type = reply.type.split(';')[0] ?? '';
  const head = { code: reply.code, type };
  const [path = ''] = step.path.split('?');
  if (ABOUT_THE_API.test(path) || BOOTSTRAPPED.test(path)) return { ...head, body: null };
  const document = documentOf(reply);
  if (document === undefined)
    return { ...head, body: type.includes('protobuf') ? null : reply.bytes.toString('latin1').slice(0, 500) };
  const text = name(JSON.stringify(masked(normalise(document))));
  const body: unknown = JSON.parse(text);
  return { ...head, body: text.length > LONGEST ? outline(body) : body };
}

const ADDRESSES = new Set(['clusterIP', 'clusterIPs']);
const AGES = /^(?:Age|Duration|Last Seen|First Seen|Created At)$/;

/** Replaces assigned addresses and ports, and the ages in tables, and removes the descriptions of table columns. */
function masked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(masked);
  if (!isFields(value)) return value;
  if (value['kind'] === 'Table') return maskedTable(value);
  const copy: Fields = {};
  for (const [name, each] of Object.entries(value)) {
    if (ADDRESSES.has(name) && JSON.stringify(each).includes('.')) copy[name] = '<address>';
    else if (name === 'nodePort' && each !== 0) copy[name] = '<port>';
    else copy[name] = masked(each);
  }
  return copy;
}

function maskedTable(table: Fields): Fields {
  const columns = (table['columnDefinitions'] ?? []) as Fields[];
  const rows = ((table['rows'] ?? []) as Fields[]).map(({ cells, ...row }) => ({
    ...row,
    cells: (cells as unknown[]).map((cell, at) => {
      if (typeof cell !== 'string') return cell;
      const name = String(columns[at]?.['name']);
      if (name === 'Cluster-IP') return '<address>';
      return AGES.test(name) ? '<age>' : cell;
    }),
  }));
  return { ...table, columnDefinitions: columns.map(({ description: _, ...column }) => column), rows };
}

function nameOf(object: unknown): string {
  const metadata = isFields(object) ? object['metadata'] : undefined;
  if (!isFields(metadata)) return '';
  return [metadata['namespace'], metadata['name']].filter((part) => part !== undefined).join('/');
}

function outline(body: unknown): unknown {
  if (!isFields(body)) return body;
  const { items, ...rest } = body;
  if (Array.isArray(items)) return { ...rest, items: items.map(nameOf) };
  const { kind, apiVersion } = rest;
  return { kind, apiVersion, name: nameOf(rest), length: 'long' };
}

/** The server itself changes objects of these kinds, so their events differ from run to run. */
const UNSETTLED = /customresourcedefinitions|apiservices|leases|flowschemas|prioritylevelconfigurations/;

function summarizeWatch(step: Step, reply: Reply): RecordedResponse {
  if (UNSETTLED.test(step.path)) return { code: reply.code, type: reply.type.split(';')[0] ?? '', body: null };
  const events = reply.type.includes('protobuf') ? protobufEvents(reply.bytes) : jsonEvents(reply.bytes);
  const body = events
    .filter(({ type }) => type !== 'BOOKMARK')
    .map(({ type, object }) => `${type} ${nameOf(normalise(object))}`);
  return { code: reply.code, type: reply.type.split(';')[0] ?? '', body };
}

interface Event {
  readonly type: string;
  readonly object: unknown;
}

function jsonEvents(bytes: Buffer): Event[] {
  const lines = bytes.toString('utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Event);
}

/** Decodes frames of a length and a WatchEvent, which has a type and an object in its envelope. */
function protobufEvents(bytes: Buffer): Event[] {
  const events: Event[] = [];
  for (let at = 0; at + 4 <= bytes.length; ) {
    const length = bytes.readUInt32BE(at);
    const reader = new Reader(bytes.subarray(at + 4, at + 4 + length));
    let type = '';
    let object: unknown;
    for (let field = reader.field(); field !== 0; field = reader.field()) {
      if (field === 1) type = reader.string();
      else if (field === 2) {
        const raw = new Reader(reader.bytes());
        if (raw.field() === 1) object = decodeProtobuf(raw.bytes());
      } else reader.skip();
    }
    events.push({ type, object });
    at += 4 + length;
  }
  return events;
}
