/**
 * Writes objects with the permissions of an installer: the service account of the operator group, or the lifecycle
 * manager, which has all permissions. Source: operator-lifecycle-manager pkg/lib/scoped.
 */

import { apiVersionOf, type KubeObject, type ResourceType } from '../../../../api/meta/object.ts';
import { ApiError, isApiError } from '../../../../api/meta/status.ts';
import { builtinKinds } from '../../../../api/registry/index.ts';
import type { Impersonated } from '../../../../client/types.ts';
import type { Capabilities } from '../../../../controllers/framework/capabilities.ts';
import { LIFECYCLE_MANAGER } from '../core/index.ts';
import type { OperatorGroup } from '../kinds/types.ts';

const BUILT_IN: ReadonlyMap<string, ResourceType> = new Map(
  builtinKinds.map((each) => [`${apiVersionOf(each)}/${each.kind}`, each]),
);

/** API groups that the server itself serves, and the groups of definitions that the product installs. */
export const SERVER_GROUPS: ReadonlySet<string> = new Set([
  ...builtinKinds.map(({ group }) => group),
  ...builtinKinds.flatMap(({ aliases }) => (aliases ?? []).map(({ group }) => group)),
  'gateway.networking.k8s.io',
]);

export class Actors {
  readonly #requestAs: Capabilities['requestAs'];
  readonly #discovery: Capabilities['discovery'];

  constructor(requestAs: Capabilities['requestAs'], discovery: Capabilities['discovery']) {
    this.#requestAs = requestAs;
    this.#discovery = discovery;
  }

  /** Actor with all permissions. */
  get manager(): ImpersonatedClient {
    return new ImpersonatedClient({ name: LIFECYCLE_MANAGER }, this.#requestAs, this.#discovery);
  }

  serviceAccount(namespace: string, name: string): ImpersonatedClient {
    const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
    return new ImpersonatedClient(
      { name: `system:serviceaccount:${namespace}:${name}`, groups },
      this.#requestAs,
      this.#discovery,
    );
  }

  /**
   * Actor that installs operators in the namespace of the group: its service account, or the manager if it names none.
   */
  installer(group: OperatorGroup | undefined): ImpersonatedClient {
    const account = group?.spec?.serviceAccountName ?? '';
    return account === '' ? this.manager : this.serviceAccount(group?.metadata?.namespace ?? '', account);
  }
}

export class ImpersonatedClient {
  readonly #user: Impersonated;
  readonly #requestAs: Capabilities['requestAs'];
  readonly #discovery: Capabilities['discovery'];

  constructor(user: Impersonated, requestAs: Capabilities['requestAs'], discovery: Capabilities['discovery']) {
    this.#user = user;
    this.#requestAs = requestAs;
    this.#discovery = discovery;
  }

  request<R>(method: string, path: string, body?: unknown): Promise<R> {
    return this.#requestAs<R>(this.#user, method, path, body);
  }

  /** Reads the object; undefined if it does not exist. */
  async get<T extends KubeObject>(object: KubeObject): Promise<T | undefined> {
    try {
      return await this.request<T>('GET', await this.#pathOf(object, 'object'));
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  }

  async create(object: KubeObject): Promise<KubeObject> {
    return this.request<KubeObject>('POST', await this.#pathOf(object, 'collection'), object);
  }

  async update(object: KubeObject): Promise<KubeObject> {
    return this.request<KubeObject>('PUT', await this.#pathOf(object, 'object'), object);
  }

  async remove(object: KubeObject): Promise<void> {
    const options = { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: 'Background' };
    try {
      await this.request('DELETE', await this.#pathOf(object, 'object'), options);
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
  }

  /** Lists the objects of a kind that match a label selector, in all namespaces. */
  async labelled(kind: string, apiVersion: string, selector: string): Promise<KubeObject[]> {
    const path = await this.#pathOf({ kind, apiVersion, metadata: {} }, 'collection');
    const list = await this.request<{ items?: KubeObject[] }>(
      'GET',
      `${path}?labelSelector=${encodeURIComponent(selector)}`,
    );
    return (list.items ?? []).map((each) => ({ ...each, kind, apiVersion }));
  }

  /**
   * Creates or updates the object. An update merges labels, annotations and owner references and replaces everything
   * else. Returns true if the object was created.
   */
  async ensure(object: KubeObject): Promise<boolean> {
    try {
      await this.create(object);
      return true;
    } catch (error) {
      if (!isApiError(error, 'AlreadyExists')) throw error;
    }
    const found = await this.get<KubeObject>(object);
    if (found === undefined) throw new ApiError('Conflict', `${object.kind} ${object.metadata?.name} is being deleted`);
    const merged = mergedWith(found, object);
    if (merged !== undefined) await this.update(merged);
    return false;
  }

  async #pathOf(object: KubeObject, of: 'object' | 'collection'): Promise<string> {
    const { apiVersion = '', kind = '', metadata } = object;
    const type = await this.#typeOf(apiVersion, kind);
    const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const inNamespace =
      type.namespaced && metadata?.namespace !== undefined
        ? `/namespaces/${encodeURIComponent(metadata.namespace)}`
        : '';
    const name = of === 'object' ? `/${encodeURIComponent(metadata?.name ?? '')}` : '';
    return `${root}${inNamespace}/${type.plural}${name}`;
  }

  async #typeOf(apiVersion: string, kind: string): Promise<ResourceType> {
    const builtIn = BUILT_IN.get(`${apiVersion}/${kind}`);
    if (builtIn !== undefined) return builtIn;
    const { kinds } = await this.#discovery();
    const found = kinds.find((each) => each.kind === kind && apiVersionOf(each) === apiVersion);
    if (found === undefined)
      throw new ApiError('NotFound', `no matches for kind ${JSON.stringify(kind)} in version ${apiVersion}`);
    return found;
  }
}

/** Object to write for an update; undefined if nothing changes. */
function mergedWith(found: KubeObject, wanted: KubeObject): KubeObject | undefined {
  const [own, given] = [found.metadata ?? {}, wanted.metadata ?? {}];
  const owners = [...(own.ownerReferences ?? [])];
  for (const owner of given.ownerReferences ?? []) if (!owners.some(({ uid }) => uid === owner.uid)) owners.push(owner);
  const merged: KubeObject = {
    ...found,
    ...wanted,
    metadata: {
      ...own,
      ...(given.labels === undefined ? {} : { labels: { ...own.labels, ...given.labels } }),
      ...(given.annotations === undefined ? {} : { annotations: { ...own.annotations, ...given.annotations } }),
      ...(owners.length === 0 ? {} : { ownerReferences: owners }),
    },
  };
  keepAssigned(found, merged);
  return JSON.stringify(sorted(found)) === JSON.stringify(sorted(merged)) ? undefined : merged;
}

/** Keeps fields of a Service that the server has assigned and the new object omits, such as its cluster IP. */
function keepAssigned(found: KubeObject, merged: KubeObject): void {
  if (found.kind !== 'Service') return;
  const [own, given] = [found, merged] as { spec?: Record<string, unknown> }[];
  if (own === undefined || given === undefined) return;
  given.spec = { ...own.spec, ...given.spec };
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, each]) => [key, sorted(each)]),
  );
}
