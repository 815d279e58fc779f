import type { ConfigMap, Pod, Secret } from '../../api/generated/core/v1.ts';
import type { KubeObject, ResourceType } from '../../api/meta/object.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { toUid, type Uid } from '../../base/brand.ts';
import { type Decoded, fields, isValid, list, nullable, object, own, text } from '../../base/decode.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import { type LastKnown, withoutVersions } from '../../client/informers/last-known.ts';
import type { ApiClient } from '../../client/types.ts';

export type ConfigData = ReadonlyMap<string, Uint8Array>;

/**
 * Reads objects that a pod references. Returns undefined only for a missing optional object, otherwise throws with
 * upstream's text.
 */
export interface ConfigReader {
  configMap(pod: Pod, name: string, optional: boolean): Promise<ConfigData | undefined>;
  secret(pod: Pod, name: string, optional: boolean): Promise<ConfigData | undefined>;
  /** Returns the whole secret, because the caller needs its type. */
  secretObject(pod: Pod, name: string): Promise<Secret | undefined>;
}

/** Wraps a reader for a single operation, so that an object with many references is decoded once. */
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
  readonly users: Set<Uid>;
  readonly stopping: AbortController;
  /** null: the API server has confirmed that the object does not exist. undefined: not known yet. */
  object: KubeObject | null | undefined;
  watching: boolean;
  /** Whether a loop keeps the object current. */
  following: boolean;
  /** Whether this process has read the object from the API server. */
  confirmed: boolean;
}

/** Saved object and the pods that used it. Survives a restart of the process. */
/** `object` is null if the object did not exist. */
const KEPT = object({ key: text, users: list(own<Uid>(text)), object: nullable<KubeObject>(fields) });
type KeptObject = Decoded<typeof KEPT>;

const RETRY_MS = 2_000;
/** Time after a failed connection during which a known object is not requested again. */
const AWAY_MS = 5_000;
const SET = 'config-objects';

/**
 * Config maps and secrets of this node's pods. Each is fetched when first needed and then watched by its name, because
 * a node may not watch more. Without a reachable API server, the last known versions are used. Source:
 * pkg/kubelet/util/manager watch_based_manager.go.
 */
export class ConfigObjects implements ConfigReader {
  private client: ApiClient | undefined;
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly onChanged: (uid: Uid) => void;
  private readonly entries = new Map<string, Entry>();
  private readonly lastKnown: LastKnown | undefined;
  private remembered: Promise<void> | undefined;
  private awayUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: {
    readonly clock: Clock;
    readonly log: Log;
    readonly lastKnown?: LastKnown | undefined;
    readonly onChanged: (uid: Uid) => void;
  }) {
    this.clock = options.clock;
    this.log = options.log;
    this.lastKnown = options.lastKnown;
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

  /** Handles a deleted pod: objects that only it used are no longer watched. */
  release(uid: Uid): void {
    this.releaseUsers((user) => user === uid);
  }

  /** Keeps the objects of these pods. Objects used only by other pods are no longer watched. */
  retain(uids: ReadonlySet<Uid>): void {
    this.releaseUsers((user) => !uids.has(user));
  }

  private releaseUsers(isGone: (uid: Uid) => boolean): void {
    for (const [key, entry] of this.entries) {
      for (const user of entry.users) if (isGone(user)) entry.users.delete(user);
      if (entry.users.size > 0) continue;
      entry.stopping.abort();
      this.entries.delete(key);
    }
    this.save();
  }

  /** Ends the watches. A write of known objects may still be pending. */
  stop(): void {
    for (const entry of this.entries.values()) entry.stopping.abort();
  }

  private async read<T extends KubeObject>(type: ResourceType<T>, pod: Pod, name: string): Promise<T | undefined> {
    const { client } = this;
    if (client === undefined)
      throw new Error(`${type.kind} ${name} cannot be read: the API server is not available yet`);
    const namespace = pod.metadata?.namespace ?? 'default';
    const key = `${type.plural}/${namespace}/${name}`;
    this.remembered ??= this.remember();
    await this.remembered;
    const entry = this.entries.get(key) ?? newEntry(undefined);
    this.entries.set(key, entry);
    entry.users.add(toUid(pod.metadata?.uid));
    const isKnown = entry.object !== undefined;
    const isAway = this.clock.monotonicMs() < this.awayUntilMs;
    const isCurrent = entry.watching && entry.confirmed;
    if (!isKnown || (!isAway && !isCurrent)) {
      try {
        await this.fetch(client, type, namespace, name, entry);
      } catch (error) {
        if (!isApiError(error, 'ServiceUnavailable') || !isKnown) throw error;
        this.awayUntilMs = this.clock.monotonicMs() + AWAY_MS;
      }
    }
    if (!entry.following && !entry.stopping.signal.aborted) {
      entry.following = true;
      void this.follow(client, type, namespace, name, entry);
    }
    return (entry.object ?? undefined) as T | undefined;
  }

  private async fetch<T extends KubeObject>(
    client: ApiClient,
    type: ResourceType<T>,
    namespace: string,
    name: string,
    entry: Entry,
  ): Promise<void> {
    try {
      entry.object = await client.resource(type).get(name, namespace);
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
      entry.object = null;
    }
    entry.confirmed = true;
    this.awayUntilMs = Number.NEGATIVE_INFINITY;
    this.save();
  }

  private async remember(): Promise<void> {
    for (const record of (await this.lastKnown?.read(SET)) ?? []) {
      if (!isValid(KEPT, record)) continue;
      const { key, users, object } = record;
      const entry = this.entries.get(key) ?? newEntry(object);
      for (const user of users) entry.users.add(user);
      this.entries.set(key, entry);
    }
  }

  private save(): void {
    const content = (): readonly KeptObject[] =>
      [...this.entries].flatMap(([key, { object, users }]) =>
        object === undefined
          ? []
          : [{ key, users: [...users].sort(), object: object === null ? null : withoutVersions(object) }],
      );
    // Saved objects of an earlier process must be read before they are replaced.
    this.remembered ??= this.remember();
    void this.remembered.then(() => this.lastKnown?.keep(SET, content, 'soon'));
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
        if (!entry.confirmed) {
          await this.fetch(client, type, namespace, name, entry);
          for (const uid of entry.users) this.onChanged(uid);
        }
        const events = client.resource(type).watch({ namespace, fieldSelector: `metadata.name=${name}`, signal });
        entry.watching = true;
        for await (const event of events) {
          if (event.type === 'BOOKMARK') continue;
          const next = event.type === 'DELETED' ? null : event.object;
          const changed = versionOf(entry.object) !== versionOf(next);
          entry.object = next;
          if (changed) this.save();
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

const newEntry = (object: Entry['object']): Entry => ({
  object,
  users: new Set<Uid>(),
  stopping: new AbortController(),
  watching: false,
  following: false,
  confirmed: false,
});

const versionOf = (object: KubeObject | null | undefined): string | undefined => object?.metadata?.resourceVersion;
