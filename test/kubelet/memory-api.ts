/** In-memory API with the functions that a kubelet uses: versions, patches, graceful deletion, watches and reviews. */
import type { JsonObject, KubeObject, ResourceType } from '../../src/api/meta/object.ts';
import { apiVersionOf, objectKey } from '../../src/api/meta/object.ts';
import { ApiError, errors } from '../../src/api/meta/status.ts';
import { schemaOf } from '../../src/api/schema/index.ts';
import { mergePatch, strategicMergePatch } from '../../src/apiserver/core/patch/index.ts';
import { silentLog } from '../../src/base/log.ts';
import { createInformerFactory, type LastKnown } from '../../src/client/index.ts';
import type { ApiClient, EventRecorder, ResourceClient, WatchEvent, WatchOptions } from '../../src/client/types.ts';
import type { ApiAccess } from '../../src/kubelet/index.ts';
import { realClock } from './lab.ts';

interface Watcher {
  readonly kind: string;
  readonly options: WatchOptions;
  readonly queue: WatchEvent<KubeObject>[];
  wake: () => void;
}

export interface RecordedEvent {
  readonly object: string;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
}

export class MemoryApi {
  readonly objects = new Map<string, Map<string, KubeObject>>();
  readonly events: RecordedEvent[] = [];
  readonly requests: string[] = [];
  /** While true, every call fails like a refused connection. */
  down = false;
  private revision = 0;
  private readonly watchers = new Set<Watcher>();

  readonly recorder: EventRecorder = {
    event: (object, type, reason, message) => {
      this.events.push({ object: objectKey(object), type, reason, message });
    },
    stop: async () => {},
  };

  access(lastKnown?: LastKnown): ApiAccess {
    const client = this.client();
    return {
      client,
      recorder: this.recorder,
      informers: createInformerFactory({
        client,
        lastKnown,
        log: silentLog,
        clock: realClock,
        random: { random: Math.random, uuid: () => crypto.randomUUID(), bytes: (length) => new Uint8Array(length) },
      }),
    };
  }

  client(): ApiClient {
    return {
      resource: <T extends KubeObject>(type: ResourceType<T>) => this.resource(type),
      request: async <R>(method: string, path: string, body?: unknown): Promise<R> => {
        this.reachable(`${method} ${path}`);
        return this.review(path, body as JsonObject) as R;
      },
      stream: () => Promise.reject(new Error('not streamed')),
      close: async () => {},
    };
  }

  get<T extends KubeObject>(type: ResourceType<T>, key: string): T | undefined {
    return this.kind(type).get(key) as T | undefined;
  }

  put<T extends KubeObject>(type: ResourceType<T>, object: T): T {
    const stored = structuredClone(object);
    stored.apiVersion = apiVersionOf(type);
    stored.kind = type.kind;
    this.revision += 1;
    const key = objectKey(stored);
    const before = this.kind(type).get(key);
    stored.metadata = {
      ...stored.metadata,
      uid: stored.metadata?.uid ?? before?.metadata?.uid ?? crypto.randomUUID(),
      resourceVersion: String(this.revision),
      creationTimestamp: before?.metadata?.creationTimestamp ?? new Date().toISOString(),
    };
    this.kind(type).set(key, stored);
    this.publish(type.plural, { type: before === undefined ? 'ADDED' : 'MODIFIED', object: stored });
    return stored;
  }

  remove<T extends KubeObject>(type: ResourceType<T>, key: string): void {
    const object = this.kind(type).get(key);
    if (object === undefined) return;
    this.kind(type).delete(key);
    this.revision += 1;
    this.publish(type.plural, { type: 'DELETED', object });
  }

  private kind(type: { readonly plural: string }): Map<string, KubeObject> {
    let kind = this.objects.get(type.plural);
    if (kind === undefined) {
      kind = new Map();
      this.objects.set(type.plural, kind);
    }
    return kind;
  }

  private publish(kind: string, event: WatchEvent<KubeObject>): void {
    for (const watcher of this.watchers) {
      if (watcher.kind !== kind || !matches(event.object, watcher.options)) continue;
      watcher.queue.push(event);
      watcher.wake();
    }
  }

  private reachable(what: string): void {
    if (this.down) throw new ApiError('ServiceUnavailable', 'connect ECONNREFUSED');
    this.requests.push(what);
  }

  private resource<T extends KubeObject>(type: ResourceType<T>): ResourceClient<T> {
    const api = this;
    const found = (name: string, namespace: string | undefined): T => {
      const object = api.kind(type).get(keyOf(name, type.namespaced ? namespace : undefined)) as T | undefined;
      if (object === undefined) throw errors.notFound(type, name);
      return object;
    };
    return {
      async get(name, namespace) {
        api.reachable(`get ${type.plural} ${name}`);
        return found(name, namespace);
      },
      async list(options = {}) {
        api.reachable(`list ${type.plural}`);
        const items = [...api.kind(type).values()].filter((each) => matches(each, options)) as T[];
        return {
          apiVersion: apiVersionOf(type),
          kind: `${type.kind}List`,
          metadata: { resourceVersion: String(api.revision) },
          items,
        };
      },
      watch: (options = {}) => api.watch<T>(type, options),
      async create(object) {
        api.reachable(`create ${type.plural} ${object.metadata?.name}`);
        if (api.kind(type).has(objectKey(object))) throw errors.alreadyExists(type, object.metadata?.name ?? '');
        return api.put(type, { ...object, metadata: { ...object.metadata } } as T);
      },
      async update(object) {
        api.reachable(`update ${type.plural} ${object.metadata?.name}`);
        const current = found(object.metadata?.name ?? '', object.metadata?.namespace);
        if (current.metadata?.resourceVersion !== object.metadata?.resourceVersion) {
          throw errors.conflict(type, object.metadata?.name ?? '', 'the object has been modified');
        }
        return api.put(type, object);
      },
      async patch(name, namespace, form, body, options) {
        api.reachable(`patch ${type.plural} ${name} ${options?.subresource ?? ''}`);
        const current = found(name, namespace);
        const uid = (body as KubeObject).metadata?.uid;
        if (uid !== undefined && uid !== current.metadata?.uid) throw errors.conflict(type, name, 'uid differs');
        const document = structuredClone(current) as unknown as JsonObject;
        if (form === 'merge') return api.put(type, mergePatch(document, body as JsonObject) as unknown as T);
        if (form !== 'strategic') throw new Error(`a kubelet sends strategic and merge patches, not ${form}`);
        const schema = schemaOf(type);
        if (schema === undefined) throw new Error(`no schema for ${type.kind}`);
        return api.put(type, strategicMergePatch(document, body as JsonObject, schema) as unknown as T);
      },
      async createSubresource<R>(name: string, _namespace: string | undefined, subresource: string): Promise<R> {
        api.reachable(`create ${type.plural}/${subresource} ${name}`);
        return {
          status: { token: `token-of-${name}`, expirationTimestamp: new Date(Date.now() + 3600_000).toISOString() },
        } as R;
      },
      async delete(name, namespace, options) {
        api.reachable(`delete ${type.plural} ${name}`);
        const current = found(name, namespace);
        if (options?.preconditions?.uid !== undefined && options.preconditions.uid !== current.metadata?.uid) {
          throw errors.conflict(type, name, 'uid differs');
        }
        const grace = options?.gracePeriodSeconds ?? 30;
        if (type.plural === 'pods' && grace > 0) {
          api.put(type, {
            ...current,
            metadata: {
              ...current.metadata,
              deletionTimestamp: new Date(Date.now() + grace * 1000).toISOString(),
              deletionGracePeriodSeconds: grace,
            },
          });
        } else api.remove(type, keyOf(name, namespace));
      },
    };
  }

  private async *watch<T extends KubeObject>(
    type: ResourceType<T>,
    options: WatchOptions,
  ): AsyncGenerator<WatchEvent<T>> {
    this.reachable(`watch ${type.plural}`);
    const watcher: Watcher = { kind: type.plural, options, queue: [], wake: () => {} };
    if (options.resourceVersion === undefined) {
      for (const object of this.kind(type).values()) {
        if (matches(object, options)) watcher.queue.push({ type: 'ADDED', object });
      }
    } else {
      const since = Number(options.resourceVersion);
      for (const object of this.kind(type).values()) {
        if (Number(object.metadata?.resourceVersion) > since && matches(object, options)) {
          watcher.queue.push({ type: 'MODIFIED', object });
        }
      }
    }
    this.watchers.add(watcher);
    try {
      while (options.signal?.aborted !== true) {
        const event = watcher.queue.shift();
        if (event !== undefined) {
          yield event as WatchEvent<T>;
          continue;
        }
        await new Promise<void>((resolve) => {
          watcher.wake = resolve;
          options.signal?.addEventListener('abort', () => resolve(), { once: true });
          if (options.signal?.aborted === true || watcher.queue.length > 0) resolve();
        });
      }
    } finally {
      this.watchers.delete(watcher);
    }
  }

  private review(path: string, body: JsonObject): unknown {
    const spec = body['spec'] as JsonObject;
    if (path.endsWith('/tokenreviews')) {
      return spec['token'] === 'good'
        ? { status: { authenticated: true, user: { username: 'reader', groups: ['readers'] } } }
        : { status: { authenticated: false } };
    }
    if (path.endsWith('/subjectaccessreviews')) {
      const attributes = spec['resourceAttributes'] as JsonObject;
      // `admin` may do everything. `reader` may only get node subresources.
      const allowed = spec['user'] === 'admin' || (spec['user'] === 'reader' && attributes['verb'] === 'get');
      return { status: { allowed } };
    }
    throw errors.badRequest(path);
  }
}

const keyOf = (name: string, namespace: string | undefined): string =>
  namespace === undefined ? name : `${namespace}/${name}`;

function matches(
  object: KubeObject,
  options: { readonly namespace?: string; readonly fieldSelector?: string },
): boolean {
  if (options.namespace !== undefined && object.metadata?.namespace !== options.namespace) return false;
  for (const term of (options.fieldSelector ?? '').split(',').filter((each) => each !== '')) {
    const [path = '', value = ''] = term.split('=');
    let at: unknown = object;
    for (const part of path.split('.')) at = (at as Record<string, unknown> | undefined)?.[part];
    if (at !== value) return false;
  }
  return true;
}
