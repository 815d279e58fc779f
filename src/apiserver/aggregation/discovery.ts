/**
 * Discovery and OpenAPI documents of aggregated API servers. They are fetched on changes and every minute, cached with
 * their ETag, and marked stale while the server does not respond. Source:
 * k8s.io/kube-aggregator/pkg/apiserver/handler_discovery.go, controllers/openapiv3.
 */
import { resourcesInDiscovery, resourcesInList } from '../../api/discovery/foreign.ts';
import { type AggregatedResource, aggregatedContentType, type ForeignVersion } from '../../api/discovery/index.ts';
import type { JsonValue } from '../../api/meta/object.ts';
import { fieldOf, isObject } from '../../api/structural/schema.ts';
import { messageOf } from '../../base/errors.ts';
import { decodeJson } from '../http/decode.ts';
import type { BackendContext, ServerContext } from '../rest/context.ts';
import { Work } from '../rest/name-queue.ts';
import { type BackendResponse, endpointOf, queryBackend } from './backend.ts';
import type { Delegated } from './services.ts';

type DiscoveryContext = BackendContext & Pick<ServerContext, 'apiServices' | 'log'>;

const REFRESH_MS = 60_000;
const TIMEOUT_MS = 5_000;
/** The size is limited because parsing blocks the event loop. */
const MAX_BYTES = 1024 * 1024;
const ACCEPT = [aggregatedContentType('v2'), aggregatedContentType('v2beta1'), 'application/json;q=0.9'].join(',');

interface Known {
  resources: readonly AggregatedResource[];
  fresh: boolean;
  /** ETag of the aggregated document, for conditional requests. */
  etag: string | undefined;
  /** Digest of the OpenAPI v3 document; undefined if none is known. */
  openapiHash: string | undefined;
}

export class ForeignDiscovery {
  readonly #context: DiscoveryContext;
  readonly #known = new Map<string, Known>();
  readonly #requested = new Map<string, string>();
  readonly #work: Work;
  #generation = 0;

  constructor(context: DiscoveryContext) {
    this.#context = context;
    this.#work = new Work({
      clock: context.clock,
      stopping: context.stopping,
      workers: 2,
      firstRetryMs: 1_000,
      lastRetryMs: REFRESH_MS,
      sync: (name) => this.#sync(name),
      failed: (name, error) =>
        context.log.v(2, 'cannot fetch discovery of an APIService', { name, error: messageOf(error) }),
    });
  }

  start(): void {
    const { apiServices } = this.#context;
    apiServices.onChange((name) => this.#changed(name));
    for (const { name } of apiServices.delegated) this.#changed(name);
    this.#refresh();
  }

  /** Changes whenever the results of `versions` and `openapiHashOf` change. */
  get generation(): number {
    return this.#generation;
  }

  /** All groups and versions that are registered for other servers. */
  versions(): ForeignVersion[] {
    return this.#context.apiServices.delegated.map(({ name, group, version, priority }) => {
      const known = this.#known.get(name);
      return {
        group,
        version,
        priority,
        resources: known?.resources ?? [],
        freshness: known?.fresh === true ? 'Current' : 'Stale',
      };
    });
  }

  openapiHashOf(name: string): string | undefined {
    return this.#known.get(name)?.openapiHash;
  }

  /** A change of the availability also triggers a fetch, because a server that is available again must be queried. */
  #changed(name: string): void {
    const now = this.#context.apiServices.get(name);
    if (now?.service === undefined) {
      this.#requested.delete(name);
      if (this.#known.delete(name)) this.#generation += 1;
      return;
    }
    const text = `${now.available} ${now.specText}`;
    if (this.#requested.get(name) === text) return;
    this.#requested.set(name, text);
    this.#work.add(name);
  }

  #refresh(): void {
    this.#context.clock.setTimer(REFRESH_MS, () => {
      if (this.#context.stopping.aborted) return;
      for (const { name } of this.#context.apiServices.delegated) this.#work.add(name);
      this.#refresh();
    });
  }

  async #sync(name: string): Promise<void> {
    const registered = this.#context.apiServices.get(name);
    const to =
      registered === undefined ? undefined : this.#context.apiServices.delegate(registered.group, registered.version);
    if (to === undefined) return;
    const before = this.#known.get(name);
    try {
      // The availability controller decides whether the server is available. A change triggers another run of this
      // function.
      const known = to.available ? await this.#fetch(to, before) : undefined;
      this.#keep(name, known ?? { ...(before ?? NOTHING), fresh: false });
    } catch (error) {
      this.#keep(name, { ...(before ?? NOTHING), fresh: false });
      throw error;
    }
  }

  #keep(name: string, known: Known): void {
    if (this.#context.apiServices.get(name)?.service === undefined) return;
    const before = this.#known.get(name);
    this.#known.set(name, known);
    const facts = (each: Known | undefined): string =>
      JSON.stringify([each?.fresh, each?.resources, each?.openapiHash]);
    if (facts(before) !== facts(known)) this.#generation += 1;
  }

  async #fetch(to: Delegated, before: Known | undefined): Promise<Known> {
    const { group, version } = to;
    const etag = before?.etag;
    const answer = await this.#get(to, group === '' ? '/api' : '/apis', ACCEPT, etag);
    const openapiHash = await this.#openapiHash(to).catch(() => before?.openapiHash);
    if (answer.code === 304 && before !== undefined) return { ...before, fresh: true, openapiHash };
    if (answer.code === 200 && String(answer.headers['content-type']).includes('g=apidiscovery.k8s.io')) {
      const found = resourcesInDiscovery(decodeJson(answer.body), to);
      return { ...NOTHING, resources: found ?? [], fresh: true, etag: answer.headers.etag, openapiHash };
    }
    if (answer.code === 503) throw new Error(`discovery returned status ${answer.code}`);
    // The server supports only unaggregated discovery.
    const path = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
    const list = await this.#get(to, path, 'application/json');
    if (list.code !== 200) throw new Error(`${path} returned status ${list.code}`);
    return { ...NOTHING, resources: resourcesInList(decodeJson(list.body), to), fresh: true, openapiHash };
  }

  /** Digest from the OpenAPI index of the server; undefined if it has no index and therefore no document. */
  async #openapiHash(to: Delegated): Promise<string | undefined> {
    const { code, body } = await this.#get(to, '/openapi/v3', 'application/json');
    if (code !== 200) return undefined;
    const paths = fieldOf(objectOf(decodeJson(body)), 'paths');
    const entry = fieldOf(objectOf(paths), openapiPathOf(to));
    const url = fieldOf(objectOf(entry), 'serverRelativeURL');
    if (typeof url !== 'string') return undefined;
    return new URLSearchParams(url.slice(url.indexOf('?') + 1)).get('hash')?.slice(0, 256) ?? '';
  }

  #get(to: Delegated, path: string, accept: string, etag?: string): Promise<BackendResponse> {
    return queryBackend(this.#context, {
      at: endpointOf(this.#context, to),
      path,
      accept,
      tls: to.tls,
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_BYTES,
      ...(etag === undefined ? {} : { etag }),
    });
  }
}

const NOTHING: Known = {
  resources: [],
  fresh: false,
  etag: undefined,
  openapiHash: undefined,
};

/** Key of the document in an OpenAPI v3 index. */
export function openapiPathOf({ group, version }: { readonly group: string; readonly version: string }): string {
  return group === '' ? `api/${version}` : `apis/${group}/${version}`;
}

function objectOf(value: JsonValue | undefined) {
  return value !== undefined && isObject(value) ? value : {};
}
