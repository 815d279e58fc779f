/** Maps kinds to the paths at which the server serves them. */
import type { KubeObject, ResourceType } from '../../api/meta/object.ts';
import { isApiError } from '../../api/meta/status.ts';
import type { ApiClient } from '../../client/types.ts';

interface ResourceList {
  readonly resources?: readonly { readonly name: string; readonly kind: string; readonly namespaced: boolean }[];
}

interface Group {
  readonly preferredVersion?: { readonly version: string };
}

/** Number of attempts to find a kind. The kind of a new CustomResourceDefinition is served after a short delay. */
const TRIES = 20;
const RETRY_MS = 250;

export class NoSuchKind extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NoSuchKind';
  }
}

export class RestMapper {
  readonly #client: ApiClient;
  readonly #pause: (ms: number) => Promise<void>;
  readonly #known = new Map<string, ResourceType<KubeObject>>();

  constructor(client: ApiClient, pause: (ms: number) => Promise<void>) {
    this.#client = client;
    this.#pause = pause;
  }

  /** The type that serves a kind. Waits some seconds for a kind that is not served yet. Throws NoSuchKind. */
  async typeOf(wanted: {
    readonly group: string;
    readonly version: string;
    readonly kind: string;
  }): Promise<ResourceType<KubeObject>> {
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const found = await this.#look(wanted.group, wanted.version, wanted.kind);
      if (found !== undefined) return found;
      await this.#pause(RETRY_MS);
    }
    const apiVersion = wanted.group === '' ? wanted.version : `${wanted.group}/${wanted.version}`;
    throw new NoSuchKind(`no matches for kind "${wanted.kind}" in version "${apiVersion}"`);
  }

  /** The type of a kind in the version that the server prefers; undefined if the server does not serve the kind. */
  async preferred({
    group,
    kind,
  }: {
    readonly group: string;
    readonly kind: string;
  }): Promise<ResourceType<KubeObject> | undefined> {
    if (group === '') return this.#look('', 'v1', kind);
    try {
      const { preferredVersion } = await this.#client.request<Group>('GET', `/apis/${group}`);
      return preferredVersion === undefined ? undefined : await this.#look(group, preferredVersion.version, kind);
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  }

  async #look(group: string, version: string, kind: string): Promise<ResourceType<KubeObject> | undefined> {
    const key = `${group}/${version}/${kind}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    let list: ResourceList;
    try {
      list = await this.#client.request('GET', group === '' ? `/api/${version}` : `/apis/${group}/${version}`);
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
    const found = list.resources?.find((each) => each.kind === kind && !each.name.includes('/'));
    if (found === undefined) return undefined;
    const type = { group, version, kind, plural: found.name, namespaced: found.namespaced };
    this.#known.set(key, type);
    return type;
  }
}
