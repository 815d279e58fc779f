/** Stored objects of a fuzz run: removes those that affect other requests, and checks round trips of all at the end. */
import { isDeepStrictEqual } from 'node:util';
import { documentOf } from './judge.ts';
import { NAMESPACES } from './requests.ts';
import type { Reply } from './wire.ts';

export type Ask = (method: string, path: string, body?: object) => Promise<Reply>;

interface Item {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly resourceVersion: string };
}

/**
 * Kinds to delete after each run: they change how later requests are processed, or accumulate because of random names.
 */
const SWEPT = [
  '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations',
  '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
  '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings',
  '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies',
  ...NAMESPACES.flatMap((namespace) => [
    `/api/v1/namespaces/${namespace}/limitranges`,
    `/api/v1/namespaces/${namespace}/resourcequotas`,
  ]),
];

/**
 * Upstream's conversion moves the CPU metric to the end, so writing an autoscaler back in these versions reorders its
 * metrics.
 */
const REORDERED = /autoscaling\/(?:v1|v2beta1)\/horizontalpodautoscalers$/;

const json = <T>(reply: Reply): T => JSON.parse(reply.body.toString('utf8')) as T;

export async function tidy(ask: Ask): Promise<void> {
  for (const path of SWEPT) await ask('DELETE', path);
  for (const namespace of NAMESPACES) {
    const path = `/api/v1/namespaces/${namespace}`;
    const found = await ask('GET', path);
    const phase = found.code === 200 ? json<{ status?: { phase?: string } }>(found).status?.phase : undefined;
    // No namespace controller runs here.
    if (phase === 'Terminating')
      await ask('PUT', `${path}/finalize`, { ...json<object>(found), spec: { finalizers: [] } });
    if (phase !== 'Active') {
      const made = await ask('POST', '/api/v1/namespaces', {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: namespace },
      });
      if (made.code !== 201 && made.code !== 409)
        throw new Error(`namespace ${namespace}: ${made.code} ${made.body.toString('utf8').slice(0, 300)}`);
    }
  }
}

/** All collections in discovery. */
async function collections(ask: Ask): Promise<{ path: string; namespaced: boolean }[]> {
  const groups = json<{ groups: { versions: { groupVersion: string }[] }[] }>(await ask('GET', '/apis')).groups;
  const roots = [
    '/api/v1',
    ...groups.flatMap((group) => group.versions.map((version) => `/apis/${version.groupVersion}`)),
  ];
  const found: { path: string; namespaced: boolean }[] = [];
  for (const root of roots) {
    const { resources } = json<{ resources: { name: string; namespaced: boolean; verbs: string[] }[] }>(
      await ask('GET', root),
    );
    for (const { name, namespaced, verbs } of resources)
      if (verbs.includes('list') && verbs.includes('update') && !REORDERED.test(`${root}/${name}`))
        found.push({ path: `${root}/${name}`, namespaced });
  }
  return found;
}

/** Number and size of the stored objects, to which the server's memory is proportional. */
export async function stored(ask: Ask): Promise<{ objects: number; bytes: number }> {
  let objects = 0;
  let bytes = 0;
  for (const { path } of await collections(ask)) {
    const listed = await ask('GET', path);
    if (listed.code !== 200) continue;
    objects += json<{ items: Item[] }>(listed).items.length;
    bytes += listed.body.length;
  }
  return { objects, bytes };
}

/** Views of image streams: a write changes the specification of the stream. */
const VIEWS = /\/image(?:stream)?tags$/;

/** Checks that lists and reads of each object are equal, and that writing back a read object changes nothing. */
export async function checkRoundTrips(ask: Ask): Promise<string[]> {
  const faults: string[] = [];
  for (const { path, namespaced } of await collections(ask)) {
    if (VIEWS.test(path)) continue;
    const listed = await ask('GET', path);
    if (listed.code !== 200) {
      faults.push(`GET ${path}: ${listed.code} ${listed.body.toString('utf8').slice(0, 300)}`);
      continue;
    }
    for (const item of json<{ items: Item[] }>(listed).items.slice(0, 40)) {
      const at = path.lastIndexOf('/');
      const scope = namespaced ? `/namespaces/${item.metadata.namespace}` : '';
      const own = `${path.slice(0, at)}${scope}${path.slice(at)}/${encodeURIComponent(item.metadata.name)}`;
      const fault = await checkOne(ask, own, item);
      if (fault !== undefined) faults.push(`${own}: ${fault}`);
    }
  }
  return faults;
}

async function checkOne(ask: Ask, path: string, item: Item): Promise<string | undefined> {
  const read = await ask('GET', path);
  if (read.code === 404) return undefined;
  if (read.code !== 200) return `read answers ${read.code}: ${read.body.toString('utf8').slice(0, 300)}`;
  const object = documentOf('application/json', read.body) as unknown as Item;
  if (object.metadata.resourceVersion === item.metadata.resourceVersion && !isDeepStrictEqual(rid(object), rid(item)))
    return 'list and read differ';
  const written = await ask('PUT', path, object);
  if (written.code !== 200)
    return `cannot be written back: ${written.code} ${written.body.toString('utf8').slice(0, 600)}`;
  const after = documentOf('application/json', written.body) as unknown as Item;
  if (after.metadata.resourceVersion !== object.metadata.resourceVersion)
    return `writing back what was read changed it: ${difference(object, after)}`;
  return undefined;
}

/** Removes apiVersion and kind, because items in lists of built-in kinds have none, as in upstream. */
function rid(item: Item): object {
  const { apiVersion: _apiVersion, kind: _kind, ...rest } = item;
  return rest;
}

function difference(before: object, after: object): string {
  const changed = Object.keys({ ...before, ...after }).filter(
    (key) => !isDeepStrictEqual((before as Record<string, unknown>)[key], (after as Record<string, unknown>)[key]),
  );
  const part = (object: object) =>
    JSON.stringify(Object.fromEntries(changed.map((key) => [key, (object as Record<string, unknown>)[key]]))).slice(
      0,
      600,
    );
  return `${part(before)} became ${part(after)}`;
}
