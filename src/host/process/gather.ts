/**
 * Data collection of `oc adm must-gather`, run in its pod: objects as YAML and logs, without secrets and tokens. The
 * layout is that of `oc adm inspect`, for tools that read it.
 */
import { createWriteStream } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { stringify } from 'yaml';
import type { Node, Pod } from '../../api/generated/core/v1.ts';
import type { KubeList, KubeObject, ResourceType } from '../../api/meta/object.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import { PRODUCT_VERSION } from '../../base/versions/version.ts';
import { type ApiClient, createApiClient } from '../../client/index.ts';
import { systemClock as clock } from './process.ts';

const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
const PAGE = 500;
const MAX_LOG_BYTES = 20 * 1024 * 1024;
const MAX_NODE_LINES = 10_000;
const MAX_COPY_MS = 60_000;
/** Kinds that contain credentials or exist only as requests. */
const LEFT_OUT = /^(?:secrets|componentstatuses|oauthclients|(?:user)?oauth.*tokens|bindings|.*reviews)$/;
/** API groups that serve the objects of another group. */
const OTHER_VIEWS = new Set(['authorization.openshift.io', 'events.k8s.io', 'extensions', 'project.openshift.io']);
const OWN_NAMESPACE = /^(?:default|kube-.*|openshift(?:-.*)?)$/;

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
  readonly groups: readonly {
    readonly name: string;
    readonly preferredVersion: { readonly version: string };
  }[];
}

interface Collection {
  readonly client: ApiClient;
  readonly directory: string;
  /** Runs a part of the collection. A failure is logged and counted, and the collection continues. */
  attempt(what: string, work: () => Promise<void>): Promise<void>;
}

/** Returns the number of parts that could not be collected. Throws CodedError 'no-cluster' outside of a pod. */
export async function gather(directory: string, print: (line: string) => void): Promise<number> {
  const client = await ownClient();
  let missed = 0;
  const collection: Collection = {
    client,
    directory,
    attempt: async (what, work) => {
      try {
        await work();
      } catch (error) {
        missed += 1;
        print(`error: ${what}: ${messageOf(error)}`);
      }
    },
  };
  try {
    await put(collection, 'version', `hyperedge/must-gather\n${PRODUCT_VERSION}\n`);
    await put(collection, 'timestamp', `${new Date(clock.nowMs()).toISOString()}\n`);
    const types = await discover(collection);
    for (const type of types) {
      print(`Gathering ${type.plural}${type.group === '' ? '' : `.${type.group}`}`);
      await collection.attempt(type.plural, () => gatherKind(collection, type));
    }
    await gatherPodLogs(collection);
    await gatherNodeLogs(collection);
  } finally {
    await client.close();
  }
  print(`Wrote what was gathered to ${directory}; ${missed} parts are missing`);
  return missed;
}

async function ownClient(): Promise<ApiClient> {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;
  if (host === undefined || port === undefined)
    throw new CodedError('no-cluster', 'KUBERNETES_SERVICE_HOST: not set; run oc adm must-gather, which makes a pod');
  return createApiClient({
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    ca: await readFile(join(ACCOUNT, 'ca.crt'), 'utf8'),
    tokenFile: join(ACCOUNT, 'token'),
    userAgent: 'must-gather/hyperedge',
    log: silentLog,
    clock,
  });
}

async function discover({ client, attempt }: Collection): Promise<readonly Discovered[]> {
  const { groups } = await client.request<Groups>('GET', '/apis');
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
    await attempt(path, async () => {
      const { resources } = await client.request<ResourceList>('GET', path);
      for (const { name, namespaced, kind, verbs } of resources)
        if (verbs.includes('list') && !name.includes('/') && !LEFT_OUT.test(name))
          found.push({ group, version: served, kind, plural: name, namespaced, verbs });
    });
  return found;
}

async function* pages(client: ApiClient, type: ResourceType): AsyncGenerator<KubeList<KubeObject>> {
  let after: string | undefined;
  do {
    const page = await client.resource(type).list({ limit: PAGE, ...(after === undefined ? {} : { continue: after }) });
    yield page;
    after = page.metadata?.continue === '' ? undefined : page.metadata?.continue;
  } while (after !== undefined);
}

async function gatherKind(collection: Collection, type: Discovered): Promise<void> {
  const group = type.group === '' ? 'core' : type.group;
  const apiVersion = type.group === '' ? type.version : `${type.group}/${type.version}`;
  const whole = (object: KubeObject): object => ({ ...object, apiVersion, kind: type.kind });
  const byNamespace = new Map<string, object[]>();
  for await (const { items } of pages(collection.client, type))
    for (const object of items) {
      const { name = '', namespace = '' } = object.metadata ?? {};
      if (!type.namespaced)
        await put(
          collection,
          join('cluster-scoped-resources', group, type.plural, `${name}.yaml`),
          stringify(whole(object)),
        );
      else if (OWN_NAMESPACE.test(namespace)) {
        const known = byNamespace.get(namespace);
        if (known === undefined) byNamespace.set(namespace, [whole(object)]);
        else known.push(whole(object));
      }
    }
  for (const [namespace, items] of byNamespace)
    await put(
      collection,
      join('namespaces', namespace, group, `${type.plural}.yaml`),
      stringify({ apiVersion, kind: `${type.kind}List`, items }),
    );
}

async function gatherPodLogs(collection: Collection): Promise<void> {
  const type: ResourceType<Pod> = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };
  for await (const { items } of pages(collection.client, type))
    for (const { metadata, spec } of items as readonly Pod[]) {
      const { name = '', namespace = '' } = metadata ?? {};
      if (!OWN_NAMESPACE.test(namespace) || namespace.startsWith('openshift-must-gather-')) continue;
      for (const { name: container } of [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])])
        await collection.attempt(`logs of ${namespace}/${name}/${container}`, () =>
          copy(
            collection,
            `/api/v1/namespaces/${namespace}/pods/${name}/log?container=${container}&timestamps=true&limitBytes=${MAX_LOG_BYTES}`,
            join('namespaces', namespace, 'pods', name, container, container, 'logs/current.log'),
          ),
        );
    }
}

async function gatherNodeLogs(collection: Collection): Promise<void> {
  const type: ResourceType<Node> = { group: '', version: 'v1', kind: 'Node', plural: 'nodes', namespaced: false };
  for await (const { items } of pages(collection.client, type))
    for (const { metadata } of items)
      await collection.attempt(`logs of node ${metadata?.name}`, () =>
        copy(
          collection,
          `/api/v1/nodes/${metadata?.name}/proxy/logs/?query=kubelet&tailLines=${MAX_NODE_LINES}`,
          join('host_service_logs', metadata?.name ?? '', 'hyperedge_service.log'),
        ),
      );
}

async function copy(collection: Collection, from: string, to: string): Promise<void> {
  // A host that does not answer must not block the collection.
  const signal = AbortSignal.timeout(MAX_COPY_MS);
  const { body } = await collection.client.stream('GET', from, undefined, { signal });
  const path = join(collection.directory, to);
  await mkdir(dirname(path), { recursive: true });
  await pipeline(body, createWriteStream(path, { mode: 0o600 }));
}

async function put({ directory }: Collection, to: string, text: string): Promise<void> {
  const path = join(directory, to);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text, { mode: 0o600 });
}
