/**
 * Collects objects and logs of a cluster from its API server. Secrets, tokens and reviews are omitted. The layout is
 * that of `oc adm inspect`, for tools that read it.
 */
import type { Node, Pod } from '../../api/generated/core/v1.ts';
import type { KubeList, KubeObject, ResourceType } from '../../api/meta/object.ts';
import { messageOf } from '../../base/errors.ts';
import type { ApiClient } from '../../client/index.ts';
import type { SectionSink } from '../../support-bundle/port.ts';

const PAGE = 500;
const MAX_LOG_BYTES = 20 << 20;
const MAX_NODE_LINES = 10_000;
const MAX_COPY_MS = 60_000;
const MAX_OBJECTS = 5000;
/** Resources that contain credentials, and resources that can only be created. */
const NOT_COLLECTED = /^(?:secrets|componentstatuses|oauthclients|(?:user)?oauth.*tokens|bindings|.*reviews)$/;
/** API groups that serve the same objects as another group. */
const OTHER_VIEWS = new Set(['authorization.openshift.io', 'events.k8s.io', 'extensions', 'project.openshift.io']);
/**
 * Resources that are collected from all namespaces if `everywhere` is set, because they show faults of applications.
 */
const OF_ALL = new Set(['pods', 'events']);
export const OWN_NAMESPACE = /^(?:default|kube-.*|openshift(?:-.*)?)$/;

const PODS: ResourceType<Pod> = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };
const NODES: ResourceType<Node> = { group: '', version: 'v1', kind: 'Node', plural: 'nodes', namespaced: false };

interface Discovered extends ResourceType {
  readonly verbs: readonly string[];
}

interface ResourceList {
  readonly resources: readonly {
    readonly name: string;
    readonly namespaced: boolean;
    readonly kind: string;
    readonly verbs: readonly string[];
  }[];
}

interface Groups {
  readonly groups: readonly { readonly name: string; readonly preferredVersion: { readonly version: string } }[];
}

export interface ClusterCollection {
  readonly client: ApiClient;
  readonly sink: SectionSink;
  readonly signal: AbortSignal;
  readonly print: (line: string) => void;
  /** Directory in the bundle to which the files are written. */
  readonly prefix: string;
}

/** Runs one part of the collection. A failure is recorded, and the collection continues. */
async function attempt({ sink, signal }: ClusterCollection, what: string, work: () => Promise<void>): Promise<void> {
  if (signal.aborted) return;
  try {
    await work();
  } catch (error) {
    sink.missing(what, messageOf(error));
  }
}

/**
 * Collects all resources. Namespaced objects are collected from the cluster's own namespaces; with `everywhere`, pods
 * and events are collected from all namespaces.
 */
export async function collectObjects(collection: ClusterCollection, everywhere: boolean): Promise<void> {
  const types = await discover(collection);
  for (const type of types) {
    collection.print(`Gathering ${type.plural}${type.group === '' ? '' : `.${type.group}`}`);
    await attempt(collection, type.plural, () => collectKind(collection, type, everywhere && OF_ALL.has(type.plural)));
  }
}

async function discover(collection: ClusterCollection): Promise<readonly Discovered[]> {
  const { client, signal } = collection;
  const { groups } = await client.request<Groups>('GET', '/apis', undefined, { signal });
  const places = [
    { group: '', version: 'v1', path: '/api/v1' },
    ...groups
      .filter(({ name }) => !OTHER_VIEWS.has(name))
      .map(({ name, preferredVersion: { version: preferred } }) => ({
        group: name,
        version: preferred,
        path: `/apis/${name}/${preferred}`,
      })),
  ];
  const found: Discovered[] = [];
  for (const { group, version: served, path } of places)
    await attempt(collection, path, async () => {
      const { resources } = await client.request<ResourceList>('GET', path, undefined, { signal });
      for (const { name, namespaced, kind, verbs } of resources)
        if (verbs.includes('list') && !name.includes('/') && !NOT_COLLECTED.test(name))
          found.push({ group, version: served, kind, plural: name, namespaced, verbs });
    });
  return found;
}

export async function* pagesOf<T extends KubeObject>(
  client: ApiClient,
  type: ResourceType<T>,
  signal: AbortSignal,
): AsyncGenerator<KubeList<T>> {
  let after: string | undefined;
  do {
    const next = after === undefined ? {} : { continue: after };
    const page: KubeList<T> = await client.resource(type).list({ limit: PAGE, signal, ...next });
    yield page;
    after = page.metadata?.continue === '' ? undefined : page.metadata?.continue;
  } while (after !== undefined && !signal.aborted);
}

async function collectKind(
  { client, sink, signal, prefix }: ClusterCollection,
  type: Discovered,
  everywhere: boolean,
): Promise<void> {
  const group = type.group === '' ? 'core' : type.group;
  const apiVersion = type.group === '' ? type.version : `${type.group}/${type.version}`;
  const whole = (object: KubeObject): object => ({ ...object, apiVersion, kind: type.kind });
  const byNamespace = new Map<string, object[]>();
  let count = 0;
  for await (const { items } of pagesOf(client, type, signal)) {
    for (const object of items) {
      const { name = '', namespace = '' } = object.metadata ?? {};
      if (!type.namespaced)
        await sink.object(
          `${prefix}cluster-scoped-resources/${group}/${type.plural}/${fileName(name)}.yaml`,
          whole(object),
        );
      else if (everywhere || OWN_NAMESPACE.test(namespace)) {
        const known = byNamespace.get(namespace);
        if (known === undefined) byNamespace.set(namespace, [whole(object)]);
        else known.push(whole(object));
      }
    }
    count += items.length;
    if (count < MAX_OBJECTS) continue;
    sink.missing(type.plural, `only the first ${count} objects`);
    break;
  }
  for (const [namespace, items] of byNamespace)
    await sink.object(`${prefix}namespaces/${fileName(namespace)}/${group}/${type.plural}.yaml`, {
      apiVersion,
      kind: `${type.kind}List`,
      items,
    });
}

/** Name of an object as a file name. Object names may contain slashes and begin with dots. */
const fileName = (name: string): string => name.replaceAll('/', '_').replace(/^\.+/, '_');

export async function collectPodLogs(collection: ClusterCollection): Promise<void> {
  const { client, signal, prefix } = collection;
  for await (const { items } of pagesOf(client, PODS, signal))
    for (const { metadata, spec } of items) {
      const { name = '', namespace = '' } = metadata ?? {};
      if (!OWN_NAMESPACE.test(namespace) || namespace.startsWith('openshift-must-gather-')) continue;
      for (const { name: container } of [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])])
        await copy(
          collection,
          `logs of ${namespace}/${name}/${container}`,
          `/api/v1/namespaces/${namespace}/pods/${name}/log?container=${container}&timestamps=true&limitBytes=${MAX_LOG_BYTES}`,
          `${prefix}namespaces/${namespace}/pods/${name}/${container}/${container}/logs/current.log`,
        );
    }
}

export async function collectNodeLogs(collection: ClusterCollection): Promise<void> {
  for await (const { items } of pagesOf(collection.client, NODES, collection.signal))
    for (const { metadata } of items)
      await copy(
        collection,
        `logs of node ${metadata?.name}`,
        `/api/v1/nodes/${metadata?.name}/proxy/logs/?query=kubelet&tailLines=${MAX_NODE_LINES}`,
        `${collection.prefix}host_service_logs/${metadata?.name}/hyperedge_service.log`,
      );
}

/** Writes the body of a GET response to a file. */
export function copy(collection: ClusterCollection, what: string, from: string, to: string): Promise<void> {
  const { client, sink, signal } = collection;
  return attempt(collection, what, async () => {
    // A host that does not answer must not block the collection.
    const limited = AbortSignal.any([signal, AbortSignal.timeout(MAX_COPY_MS)]);
    const { body } = await client.stream('GET', from, undefined, { signal: limited });
    await sink.stream(to, textOf(body), { maxBytes: MAX_LOG_BYTES, keepEnd: true });
  });
}

async function* textOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const chunk of body) yield decoder.decode(chunk, { stream: true });
}
