/** Session of one invocation: the connection, the server's resources, and requests for objects of any kind. */
import { ClientError } from './core/errors.ts';
import type { AnyObject } from './core/objects.ts';
import type { OpenApiDocument } from './core/openapi.ts';
import {
  apiVersionOf,
  type GroupDiscoveryList,
  pathOf,
  ResourceIndex,
  type ResourceInfo,
  resourcesOf,
} from './core/resources.ts';
import type { Connection, VerbContext } from './port.ts';

const DISCOVERY = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json';

interface ResourceListDocument {
  readonly resources?: readonly {
    readonly name: string;
    readonly singularName?: string;
    readonly kind: string;
    readonly namespaced: boolean;
    readonly verbs?: readonly string[];
    readonly shortNames?: readonly string[];
    readonly categories?: readonly string[];
  }[];
}

/** Time for which discovery results are cached, as in kubectl. */
const CACHE_AGE_MS = 6 * 3_600_000;

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** A query string with its question mark; empty if there are no values. */
export function queryText(query: Query): string {
  const text = new URLSearchParams(
    Object.entries(query).flatMap(([key, value]): [string, string][] =>
      value === undefined || value === '' ? [] : [[key, String(value)]],
    ),
  ).toString();
  return text === '' ? '' : `?${text}`;
}

async function objectOf<T>(call: string, response: Promise<T>): Promise<T> {
  const object: unknown = await response;
  if (typeof object !== 'object' || object === null || Array.isArray(object))
    throw new ClientError(`${call}: the response of the server is no object; check the address of the server`);
  return object as T;
}

/** The objects in a list of a response. Other entries are omitted. */
export const entriesOf = <T extends object>(list: readonly T[] | undefined): readonly T[] =>
  Array.isArray(list) ? list.filter((each: T | null): each is T => typeof each === 'object' && each !== null) : [];

export class Session {
  readonly connection: Connection;
  readonly context: VerbContext;
  #resources: Promise<ResourceIndex> | undefined;
  #isFresh = false;
  readonly #openApi = new Map<string, Promise<OpenApiDocument>>();

  constructor(context: VerbContext, connection: Connection) {
    this.context = context;
    this.connection = connection;
  }

  get namespace(): string {
    return this.connection.namespace;
  }

  /** All resources of the server. They are kept in a cache file, as kubectl does. */
  resources(): Promise<ResourceIndex> {
    this.#resources ??= this.#cached();
    return this.#resources;
  }

  /** Reads the resources again. Used when the cache does not contain a named resource. */
  refreshed(): Promise<ResourceIndex> {
    if (this.#isFresh) return this.resources();
    this.#resources = this.#discoverAndKeep();
    return this.#resources;
  }

  async #cached(): Promise<ResourceIndex> {
    const text = await this.context.system.readCache(this.#cacheName(), CACHE_AGE_MS);
    if (text === undefined) return this.#discoverAndKeep();
    try {
      const all: readonly ResourceInfo[] = JSON.parse(text);
      return new ResourceIndex(all);
    } catch {
      // The cache file is damaged, so it is replaced.
      return this.#discoverAndKeep();
    }
  }

  async #discoverAndKeep(): Promise<ResourceIndex> {
    this.#isFresh = true;
    const index = await this.#discover();
    await this.context.system.writeCache(this.#cacheName(), JSON.stringify(index.all));
    return index;
  }

  #cacheName(): string {
    return `${this.connection.server.replace(/^https?:\/\//, '').replaceAll(/[^\w.-]/g, '_')}.json`;
  }

  async #discover(): Promise<ResourceIndex> {
    const lists = await Promise.all(['/api', '/apis'].map((path) => this.get<GroupDiscoveryList>(path, {}, DISCOVERY)));
    if (lists.every(({ kind }) => kind === 'APIGroupDiscoveryList')) return new ResourceIndex(resourcesOf(lists));
    return new ResourceIndex(await this.#discoverOneByOne(lists as unknown[]));
  }

  /** Discovery for servers that do not support aggregated discovery. */
  async #discoverOneByOne(documents: readonly unknown[]): Promise<ResourceInfo[]> {
    const [core, groups] = documents as [
      { readonly versions?: readonly string[] },
      {
        readonly groups?: readonly {
          readonly name: string;
          readonly versions: readonly { readonly version: string }[];
        }[];
      },
    ];
    const versions = [
      ...(Array.isArray(core.versions) ? core.versions : []).map((version) => ({ group: '', version })),
      ...entriesOf(groups.groups).flatMap(({ name, versions: all }) =>
        entriesOf(all).map(({ version }) => ({ group: name, version })),
      ),
    ];
    const found = await Promise.all(
      versions.map(async ({ group, version }) => {
        const path = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
        // If the server of an aggregated group is down, its resources are unknown.
        const list = await this.get<ResourceListDocument>(path).catch(() => ({}) as ResourceListDocument);
        const all = entriesOf(list.resources).filter(
          ({ name, kind }) => typeof name === 'string' && typeof kind === 'string',
        );
        return all
          .filter(({ name }) => !name.includes('/'))
          .map((each) => ({
            group,
            version,
            name: each.name,
            kind: each.kind,
            namespaced: each.namespaced,
            singular: each.singularName ?? '',
            shortNames: each.shortNames ?? [],
            categories: each.categories ?? [],
            verbs: each.verbs ?? [],
            subresources: all
              .filter(({ name }) => name.startsWith(`${each.name}/`))
              .map(({ name }) => name.slice(each.name.length + 1)),
          }));
      }),
    );
    return found.flat();
  }

  /** Finds a resource by the name that the user typed. Throws ClientError with kubectl's message. */
  async resource(text: string): Promise<ResourceInfo> {
    return (await this.resources()).find(text) ?? (await this.refreshed()).get(text);
  }

  async kind(apiVersion: string, kind: string): Promise<ResourceInfo> {
    return (await this.resources()).findKind(apiVersion, kind) ?? (await this.refreshed()).byKind(apiVersion, kind);
  }

  /** Resources of a comma-separated list of names and categories. */
  async expand(text: string): Promise<ResourceInfo[]> {
    const index = await this.resources();
    const isKnown = text
      .split(',')
      .every((name) => index.find(name) !== undefined || index.all.some(({ categories }) => categories.includes(name)));
    return (isKnown ? index : await this.refreshed()).expand(text);
  }

  /** An OpenAPI document, which is read only once. */
  openApi(path: string): Promise<OpenApiDocument> {
    const known = this.#openApi.get(path) ?? this.get<OpenApiDocument>(path);
    this.#openApi.set(path, known);
    return known;
  }

  get<T = AnyObject>(path: string, query: Query = {}, accept?: string): Promise<T> {
    return this.send<T>('GET', path, { query, ...(accept === undefined ? {} : { accept }) });
  }

  send<T = AnyObject>(
    method: string,
    path: string,
    options: {
      readonly query?: Query;
      readonly body?: unknown;
      readonly accept?: string;
      readonly contentType?: string;
    } = {},
  ): Promise<T> {
    const { query = {}, body, accept, contentType } = options;
    return objectOf(
      `${method} ${path}`,
      this.connection.client.request<T>(method, path + queryText(query), body, {
        signal: this.context.signal,
        ...(accept === undefined ? {} : { accept }),
        ...(contentType === undefined ? {} : { contentType }),
      }),
    );
  }

  stream(path: string, query: Query, accept?: string): Promise<AsyncIterable<Uint8Array>> {
    return this.connection.client.stream(path + queryText(query), {
      signal: this.context.signal,
      ...(accept === undefined ? {} : { accept }),
    });
  }

  postText(path: string, text: string): Promise<AsyncIterable<Uint8Array>> {
    return this.connection.client.postText(path, text, { signal: this.context.signal });
  }

  /** Namespace for requests about a resource. Undefined for all namespaces and for cluster-scoped resources. */
  namespaceFor(resource: ResourceInfo, allNamespaces = false): string | undefined {
    return resource.namespaced && !allNamespaces ? this.namespace : undefined;
  }

  /**
   * The resource and the namespace of an object. Throws ClientError if `--namespace` differs from the object's
   * namespace.
   */
  async place(object: AnyObject): Promise<{ readonly resource: ResourceInfo; readonly namespace: string | undefined }> {
    const resource = await this.kind(object.apiVersion ?? '', object.kind ?? '');
    if (!resource.namespaced) return { resource, namespace: undefined };
    const own = object.metadata?.namespace;
    if (own !== undefined && own !== '' && this.connection.namespaceGiven && own !== this.namespace)
      throw new ClientError(
        `the namespace from the provided object "${own}" does not match the namespace "${this.namespace}". ` +
          `You must pass '--namespace=${own}' to perform this operation.`,
      );
    return { resource, namespace: own === undefined || own === '' ? this.namespace : own };
  }

  object(resource: ResourceInfo, namespace: string | undefined, name: string): Promise<AnyObject> {
    return this.get(pathOf(resource, namespace, name));
  }

  /** All objects of a resource that match, read in pages of 500. Items of a list have no kind, so it is added. */
  async list(resource: ResourceInfo, namespace: string | undefined, query: Query = {}): Promise<AnyObject[]> {
    const items: AnyObject[] = [];
    for (let next = '', before = ''; ; before = next) {
      const page = await this.get<AnyObject & { metadata?: { continue?: string } }>(pathOf(resource, namespace), {
        limit: 500,
        ...query,
        continue: next,
      });
      for (const item of entriesOf(page.items))
        items.push({
          ...item,
          apiVersion: item.apiVersion ?? apiVersionOf(resource),
          kind: item.kind ?? resource.kind,
        });
      next = page.metadata?.continue ?? '';
      if (next === '') return items;
      if (next === before) throw new ClientError('the server returned the same part of the list twice; try again');
    }
  }
}
