import type { ConfigMap, Pod, Secret } from 'kubernetes-types/core/v1';
import type { KubeObject, ResourceType } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import type { Clock } from '../../../base/clock.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { ApiClient } from '../../../client/types.ts';

export type ConfigData = ReadonlyMap<string, Uint8Array>;

/**
 * Reads what a pod refers to. Undefined only for an optional object that is not there; otherwise throws with upstream's
 * text.
 */
export interface ConfigReader {
  configMap(pod: Pod, name: string, optional: boolean): Promise<ConfigData | undefined>;
  secret(pod: Pod, name: string, optional: boolean): Promise<ConfigData | undefined>;
  /** The whole secret, for its type. */
  secretObject(pod: Pod, name: string): Promise<Secret | undefined>;
}

/** The same, for one use: an object that is referred to many times is decoded once. */
export function decodingOnce(reader: ConfigReader): ConfigReader {
  const known = new Map<string, Promise<ConfigData | undefined>>();
  const once = (kind: 'configMap' | 'secret') => (pod: Pod, name: string, optional: boolean) => {
    const key = `${kind}/${optional}/${name}`;
    const found = known.get(key) ?? reader[kind](pod, name, optional);
    known.set(key, found);
    return found;
  };
  return {
    configMap: once('configMap'),
    secret: once('secret'),
    secretObject: (pod, name) => reader.secretObject(pod, name),
  };
}

interface Entry {
  readonly users: Set<string>;
  readonly stopping: AbortController;
  /** null: the API server says that it does not exist; undefined: not known yet. */
  object: KubeObject | null | undefined;
  watching: boolean;
}

const RETRY_MS = 2_000;

/**
 * Config maps and secrets of this node's pods: fetched when first needed, then followed by a watch of that one object,
 * which is all that a node may see. Source: pkg/kubelet/util/manager watch_based_manager.go.
 */
export class ConfigObjects implements ConfigReader {
  private client: ApiClient | undefined;
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly onChanged: (uid: string) => void;
  private readonly entries = new Map<string, Entry>();

  constructor(options: { readonly clock: Clock; readonly log: Log; readonly onChanged: (uid: string) => void }) {
    this.clock = options.clock;
    this.log = options.log;
    this.onChanged = options.onChanged;
  }

  connect(client: ApiClient): void {
    this.client = client;
  }

  async configMap(pod: Pod, name: string, optional: boolean): Promise<ConfigData | undefined> {
    const object = (await this.read(resources.configMaps, pod, name)) as ConfigMap | undefined;
    if (object === undefined) {
      if (optional) return undefined;
      throw new Error(`configmap "${name}" not found`);
    }
    const data = new Map<string, Uint8Array>();
    for (const [key, text] of Object.entries(object.data ?? {})) data.set(key, Buffer.from(text, 'utf8'));
    for (const [key, base64] of Object.entries(object.binaryData ?? {})) data.set(key, Buffer.from(base64, 'base64'));
    return data;
  }

  async secret(pod: Pod, name: string, optional: boolean): Promise<ConfigData | undefined> {
    const object = await this.secretObject(pod, name);
    if (object === undefined) {
      if (optional) return undefined;
      throw new Error(`secret "${name}" not found`);
    }
    const data = new Map<string, Uint8Array>();
    for (const [key, base64] of Object.entries(object.data ?? {})) data.set(key, Buffer.from(base64, 'base64'));
    return data;
  }

  async secretObject(pod: Pod, name: string): Promise<Secret | undefined> {
    return (await this.read(resources.secrets, pod, name)) as Secret | undefined;
  }

  /** A pod is gone: what only it used is no longer followed. */
  release(uid: string): void {
    for (const [key, entry] of this.entries) {
      if (!entry.users.delete(uid) || entry.users.size > 0) continue;
      entry.stopping.abort();
      this.entries.delete(key);
    }
  }

  stop(): void {
    for (const entry of this.entries.values()) entry.stopping.abort();
    this.entries.clear();
  }

  private async read<T extends KubeObject>(type: ResourceType<T>, pod: Pod, name: string): Promise<T | undefined> {
    const { client } = this;
    if (client === undefined) throw new Error(`${type.kind} ${name} cannot be read: there is no API server yet`);
    const namespace = pod.metadata?.namespace ?? 'default';
    const key = `${type.plural}/${namespace}/${name}`;
    let entry = this.entries.get(key);
    if (entry === undefined) {
      entry = { users: new Set(), stopping: new AbortController(), object: undefined, watching: false };
      this.entries.set(key, entry);
    }
    entry.users.add(pod.metadata?.uid ?? '');
    if (entry.object !== undefined && entry.watching) return (entry.object ?? undefined) as T | undefined;
    try {
      entry.object = await client.resource(type).get(name, namespace);
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
      entry.object = null;
    }
    if (!entry.watching && !entry.stopping.signal.aborted) void this.follow(client, type, namespace, name, entry);
    return (entry.object ?? undefined) as T | undefined;
  }

  private async follow<T extends KubeObject>(
    client: ApiClient,
    type: ResourceType<T>,
    namespace: string,
    name: string,
    entry: Entry,
  ): Promise<void> {
    const { signal } = entry.stopping;
    while (!signal.aborted) {
      try {
        const events = client.resource(type).watch({ namespace, fieldSelector: `metadata.name=${name}`, signal });
        entry.watching = true;
        for await (const event of events) {
          if (event.type === 'BOOKMARK') continue;
          const next = event.type === 'DELETED' ? null : event.object;
          const changed = versionOf(entry.object) !== versionOf(next);
          entry.object = next;
          if (changed) for (const uid of entry.users) this.onChanged(uid);
        }
      } catch (error) {
        if (!signal.aborted)
          this.log.v(4, 'watch ended', { kind: type.kind, namespace, name, error: messageOf(error) });
      }
      entry.watching = false;
      await new Promise<void>((resolve) => {
        const timer = this.clock.setTimer(RETRY_MS, resolve);
        signal.addEventListener(
          'abort',
          () => {
            timer.cancel();
            resolve();
          },
          { once: true },
        );
      });
    }
  }
}

const versionOf = (object: KubeObject | null | undefined): string | undefined => object?.metadata?.resourceVersion;
