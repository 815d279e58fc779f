/**
 * Finds objects for the palette. The API has no search by text. Therefore the first objects of a few kinds are listed
 * by their metadata, cached for some seconds and filtered here, and objects with exactly the given name are requested
 * from the server. `po web` searches only one kind, which is given by its plural, its kind or a short name.
 */
import type { KubeObject, ResourceType } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { BoundedMap } from '../../../base/bounded-map.ts';
import type { Clock } from '../../../base/time/clock.ts';
import { collectionPath, query } from '../../../client/resource-path.ts';
import type { Api } from './api.ts';
import { type ServedKind, servedKinds } from './discovery.ts';

/** Maximum number of objects of a kind that are listed. */
export const LISTED = 500;
const MAX_FOUND = 25;
const MAX_LISTS = 100;
const MIN_LENGTH = 2;
const FRESH_MS = 15_000;
const KINDS_FRESH_MS = 300_000;
const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';
/** Kinds that are searched if the text names no kind. */
const COMMON = [
  'pods',
  'deployments.apps',
  'statefulsets.apps',
  'daemonsets.apps',
  'services',
  'nodes',
  'namespaces',
  'configmaps',
  'routes.route.openshift.io',
];

export interface FoundObject {
  readonly type: ResourceType;
  readonly name: string;
  /** Namespace of the object; '' for cluster-scoped objects. */
  readonly namespace: string;
}

interface Kept<T> {
  readonly value: Promise<T>;
  readonly untilMs: number;
}

const fullName = ({ group, plural }: ResourceType): string => (group === '' ? plural : `${plural}.${group}`);

export class ObjectSearch {
  readonly #api: Api;
  readonly #clock: Clock;
  readonly #namespace: () => string;
  #kinds: Kept<readonly ServedKind[]> | undefined;
  readonly #lists = new BoundedMap<string, Kept<readonly FoundObject[]>>(MAX_LISTS);

  /** `namespace` returns the namespace that is searched if the user may not list all namespaces; '' for none. */
  constructor(api: Api, clock: Clock, namespace: () => string) {
    this.#api = api;
    this.#clock = clock;
    this.#namespace = namespace;
  }

  /** Objects whose names contain the words, best match first. Kinds that the user may not list are omitted. */
  async find(text: string, signal: AbortSignal): Promise<readonly FoundObject[]> {
    const words = text.trim().toLowerCase().split(/\s+/);
    if (words.join('').length < MIN_LENGTH) return [];
    const kinds = await this.#servedKinds();
    const [first = '', ...rest] = words;
    const named = rest.length === 0 ? undefined : kinds.find((kind) => isNamed(kind, first));
    const searched = named === undefined ? kinds.filter((kind) => COMMON.includes(fullName(kind))) : [named];
    const wanted = named === undefined ? words : rest;
    const lists = await Promise.all(
      searched.flatMap((kind) => [this.#list(kind), this.#withName(kind, wanted.join('-'), signal)]),
    );
    const found = new Map<string, FoundObject>();
    for (const object of lists.flat()) {
      const key = `${fullName(object.type)}/${object.namespace}/${object.name}`;
      if (wanted.every((word) => object.name.includes(word) || object.namespace === word)) found.set(key, object);
    }
    const rank = ({ name }: FoundObject): number => (name === wanted[0] ? 0 : name.startsWith(wanted[0] ?? '') ? 1 : 2);
    return [...found.values()]
      .sort((a, b) => rank(a) - rank(b) || a.name.length - b.name.length || a.name.localeCompare(b.name))
      .slice(0, MAX_FOUND);
  }

  #servedKinds(): Promise<readonly ServedKind[]> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#kinds === undefined || this.#kinds.untilMs < nowMs)
      this.#kinds = { value: servedKinds(this.#api).catch(() => []), untilMs: nowMs + KINDS_FRESH_MS };
    return this.#kinds.value;
  }

  #list(type: ServedKind): Promise<readonly FoundObject[]> {
    const key = `${fullName(type)} ${this.#namespace()}`;
    const nowMs = this.#clock.monotonicMs();
    const kept = this.#lists.get(key);
    if (kept !== undefined && kept.untilMs > nowMs) return kept.value;
    const value = this.#request(type, { limit: LISTED });
    this.#lists.set(key, { value, untilMs: nowMs + FRESH_MS });
    return value;
  }

  #withName(type: ServedKind, name: string, signal: AbortSignal): Promise<readonly FoundObject[]> {
    // Other texts cannot be names, and a comma would add a requirement to the selector.
    if (!/^[a-z0-9](?:[a-z0-9.:-]*[a-z0-9])?$/.test(name)) return Promise.resolve([]);
    return this.#request(type, { fieldSelector: `metadata.name=${name}`, limit: MAX_FOUND }, signal);
  }

  async #request(
    type: ServedKind,
    parameters: Readonly<Record<string, string | number>>,
    signal?: AbortSignal,
  ): Promise<readonly FoundObject[]> {
    const read = async (namespace: string): Promise<readonly FoundObject[]> => {
      const { items = [] } = await this.#api.json<{ readonly items?: readonly KubeObject[] }>(
        collectionPath(type, namespace) + query(parameters),
        { accept: METADATA_LIST, signal },
      );
      return items.map(({ metadata }) => ({ type, name: metadata?.name ?? '', namespace: metadata?.namespace ?? '' }));
    };
    const own = type.namespaced ? this.#namespace() : '';
    return read('')
      .catch((error: unknown) => {
        if (own === '' || !isApiError(error, 'Forbidden')) throw error;
        return read(own);
      })
      .catch(() => []);
  }
}

const isNamed = ({ plural, kind, shortNames }: ServedKind, word: string): boolean =>
  plural === word || kind.toLowerCase() === word || shortNames.includes(word);

const PAGES: Readonly<Record<string, string>> = { pods: 'pods', rigclaims: 'rigclaims' };
const WORKLOADS = ['deployments', 'statefulsets', 'daemonsets', 'jobs', 'cronjobs'];

/** Path of the page of an object. */
export function pageOf({ type, name, namespace }: FoundObject): string {
  const path = (...segments: readonly string[]): string => `/${segments.map(encodeURIComponent).join('/')}`;
  const { group, version, plural } = type;
  const page = PAGES[plural];
  if (page !== undefined && (group === '' || plural === 'rigclaims')) return path(page, namespace, name);
  if (group === '' && plural === 'nodes') return path('nodes', name);
  if (/^(?:apps|batch)$/.test(group) && WORKLOADS.includes(plural)) return path('workloads', plural, namespace, name);
  const query = namespace === '' ? '' : `?ns=${encodeURIComponent(namespace)}`;
  return path('resources', group === '' ? 'core' : group, version, plural, name) + query;
}
