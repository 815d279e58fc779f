/** Applies the objects of one file as an ApplySet whose parent is a ConfigMap, which also shows the file's state. */
import type { ConfigMap } from '../../api/generated/core/v1.ts';
import type { KubeObject, ResourceType } from '../../api/meta/object.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import { countText } from '../../base/text/count-text.ts';
import { isConnectionError } from '../../client/errors.ts';
import type { ApiClient } from '../../client/types.ts';
import {
  applySetId,
  groupKindsText,
  groupKindText,
  ID_LABEL,
  inApplyOrder,
  KINDS_ANNOTATION,
  NAMESPACES_ANNOTATION,
  PART_OF_LABEL,
  parseGroupKinds,
  TOOLING_ANNOTATION,
} from './core/apply-set.ts';
import type { ManifestObject } from './documents.ts';
import { RestMapper } from './rest-mapper.ts';

export const NAMESPACE = 'kube-system';
/** Label of the ConfigMaps that are parents of manifest files. */
export const MANIFEST_LABEL = 'hyperedge.dev/manifest';
const MANAGER = 'hyperedge-manifests';

export interface FileIdentity {
  readonly file: string;
  readonly host: string;
}

export interface ApplyOutcome {
  readonly parent: ConfigMap;
  readonly applied: number;
  readonly pruned: readonly string[];
  /** Number of objects that a later call has to prune. */
  readonly toPrune: number;
  /** One line for each rejected object. */
  readonly errors: readonly string[];
}

interface Leftover {
  readonly type: ResourceType;
  readonly name: string;
  readonly namespace: string | undefined;
  readonly uid: string | undefined;
}

/** Name of the parent ConfigMap of a file. It is a valid object name and unique per file. */
export function parentName(file: string, hash: (text: string) => string): string {
  const slug = file
    .toLowerCase()
    .replace(/\.(ya?ml|json)$/, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 40);
  const digest = hash(file)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '')
    .slice(0, 8);
  return `manifest-${slug === '' ? 'file' : slug}-${digest}`;
}

export class Applier {
  readonly #client: ApiClient;
  readonly #hash: (text: string) => string;
  readonly #mapper: RestMapper;

  constructor(client: ApiClient, hash: (text: string) => string, pause: (ms: number) => Promise<void>) {
    this.#client = client;
    this.#hash = hash;
    this.#mapper = new RestMapper(client, pause);
  }

  /** Parents of the files that this host was the last to apply. */
  async ownParents(host: string): Promise<ConfigMap[]> {
    const list = await this.#client
      .resource(resources.configMaps)
      .list({ namespace: NAMESPACE, labelSelector: MANIFEST_LABEL });
    return list.items.filter(({ data }) => data?.['host'] === host);
  }

  /** @param prune When objects that the file no longer contains are deleted: in this call or in a later one. */
  async apply(
    identity: FileIdentity,
    objects: readonly ManifestObject[],
    prune: 'now' | 'later',
  ): Promise<ApplyOutcome> {
    const before = await this.#parent(identity.file);
    const known = parseGroupKinds(before?.metadata?.annotations?.[KINDS_ANNOTATION]);
    const name = parentName(identity.file, this.#hash);
    const id = this.#idOf(name);
    // The parent is written before the first object. Its annotation lists the kinds, so that all objects can be found
    // after an interruption.
    await this.#writeParent(identity, id, [...known, ...objects], objects, { state: 'Applying' });
    const errors: string[] = [];
    const kept = new Set<string>();
    let applied = 0;
    for (const object of inApplyOrder(objects)) {
      try {
        kept.add(await this.#applyObject(object, id));
        applied += 1;
      } catch (error) {
        if (!isRejection(error)) throw error;
        errors.push(`${groupKindText(object)} ${object.name}: ${messageOf(error)}`);
      }
    }
    // If an object was rejected, nothing is pruned: a new object may replace an old one, which must not be lost before.
    const pruned: string[] = [];
    let toPrune = 0;
    const leftovers = errors.length > 0 ? [] : await this.#leftovers(id, known, kept);
    // A power failure can leave an empty file.
    if (objects.length === 0 && leftovers.length > 0)
      errors.push(
        `the file has no objects, but ${countText(leftovers.length, 'object')} of it exist; ` +
          'delete the file to delete them',
      );
    for (const leftover of errors.length > 0 ? [] : leftovers) {
      if (prune === 'now') pruned.push(await this.#delete(leftover));
      else toPrune += 1;
    }
    const kinds = errors.length > 0 || toPrune > 0 ? [...known, ...objects] : objects;
    const parent = await this.#writeParent(identity, id, kinds, objects, {
      state: stateOf(errors, toPrune),
      objects: String(applied),
      ...(errors.length > 0 ? { message: errors.join('\n').slice(0, 4096) } : {}),
    });
    return { parent, applied, pruned, toPrune, errors };
  }

  /** Writes to the parent that the file cannot be read. The objects of the file are not changed. */
  async fail(identity: FileIdentity, message: string): Promise<ConfigMap> {
    const before = await this.#parent(identity.file);
    const kinds = parseGroupKinds(before?.metadata?.annotations?.[KINDS_ANNOTATION]);
    const id = this.#idOf(parentName(identity.file, this.#hash));
    return this.#writeParent(identity, id, kinds, [], { state: 'Failed', message: message.slice(0, 4096) });
  }

  /** Deletes the objects of a deleted file, then its parent. */
  async remove(parent: ConfigMap): Promise<readonly string[]> {
    const { name = '', uid, labels, annotations } = parent.metadata ?? {};
    const id = labels?.[ID_LABEL];
    // If another client has written the parent, its ID could select objects of other sets, so nothing is deleted.
    if (id !== this.#idOf(name)) return [];
    const pruned: string[] = [];
    for (const each of await this.#leftovers(id, parseGroupKinds(annotations?.[KINDS_ANNOTATION]), new Set()))
      pruned.push(await this.#delete(each));
    await this.#client
      .resource(resources.configMaps)
      .delete(name, NAMESPACE, uid === undefined ? {} : { preconditions: { uid } })
      .catch(ignoreNotFound);
    return pruned;
  }

  #idOf(name: string): string {
    return applySetId({ name, namespace: NAMESPACE, kind: 'ConfigMap', group: '' }, this.#hash);
  }

  async #parent(file: string): Promise<ConfigMap | undefined> {
    try {
      return await this.#client.resource(resources.configMaps).get(parentName(file, this.#hash), NAMESPACE);
    } catch (error) {
      return ignoreNotFound(error);
    }
  }

  #writeParent(
    { file, host }: FileIdentity,
    id: string,
    kinds: readonly { readonly group: string; readonly kind: string }[],
    objects: readonly ManifestObject[],
    state: Readonly<Record<string, string>>,
  ): Promise<ConfigMap> {
    const namespaces = [...new Set(objects.flatMap(({ namespace }) => namespace ?? []))].sort().join(',');
    const name = parentName(file, this.#hash);
    const body = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name,
        namespace: NAMESPACE,
        labels: { [ID_LABEL]: id, [MANIFEST_LABEL]: 'true' },
        annotations: {
          [TOOLING_ANNOTATION]: 'hyperedge/v1',
          [KINDS_ANNOTATION]: groupKindsText(kinds),
          [NAMESPACES_ANNOTATION]: namespaces,
        },
      },
      data: { file, host, ...state },
    };
    return this.#client
      .resource(resources.configMaps)
      .patch(name, NAMESPACE, 'apply', body, { fieldManager: MANAGER, force: true });
  }

  /** Applies an object. Returns its key, which excludes the object from pruning. */
  async #applyObject(object: ManifestObject, id: string): Promise<string> {
    const type = await this.#mapper.typeOf(object);
    const namespace = type.namespaced ? (object.namespace ?? 'default') : undefined;
    const { status: _, ...rest } = object.body as KubeObject & { status?: unknown };
    const body = {
      ...rest,
      metadata: { ...rest.metadata, labels: { ...rest.metadata?.labels, [PART_OF_LABEL]: id } },
    };
    await this.#client
      .resource(type)
      .patch(object.name, namespace, 'apply', body, { fieldManager: MANAGER, force: true });
    return keyOf(type, namespace, object.name);
  }

  /** Objects of the set other than `kept`. Namespaces are last, because they contain the others. */
  async #leftovers(
    id: string,
    kinds: readonly { readonly group: string; readonly kind: string }[],
    kept: ReadonlySet<string>,
  ): Promise<Leftover[]> {
    const found: Leftover[] = [];
    for (const kind of inApplyOrder(kinds).toReversed()) {
      const type = await this.#mapper.preferred(kind);
      if (type === undefined) continue;
      const client = this.#client.resource<KubeObject>(type);
      const { items } = await client.list({ labelSelector: `${PART_OF_LABEL}=${id}`, metadataOnly: true });
      for (const { metadata } of items) {
        const { name = '', namespace, uid } = metadata ?? {};
        if (!kept.has(keyOf(type, namespace, name))) found.push({ type, name, namespace, uid });
      }
    }
    return found;
  }

  /** Deletes an object. Returns its kind and name. */
  async #delete({ type, name, namespace, uid }: Leftover): Promise<string> {
    const options = { propagationPolicy: 'Background' as const };
    await this.#client
      .resource(type)
      .delete(name, namespace, uid === undefined ? options : { ...options, preconditions: { uid } })
      .catch(ignoreNotFound);
    return `${groupKindText(type)} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
  }
}

function stateOf(errors: readonly string[], toPrune: number): 'Failed' | 'Applying' | 'Applied' {
  if (errors.length > 0) return 'Failed';
  return toPrune > 0 ? 'Applying' : 'Applied';
}

const keyOf = ({ group, kind }: ResourceType, namespace: string | undefined, name: string): string =>
  `${kind}.${group}/${namespace ?? ''}/${name}`;

/**
 * Whether the error concerns only this object: the server rejected it or failed to process it, for example because a
 * webhook did not respond. Other errors, such as an unreachable server, end the attempt for the whole file.
 */
const isRejection = (error: unknown): boolean =>
  (isApiError(error) && !isConnectionError(error)) || (error instanceof Error && error.name === 'NoSuchKind');

function ignoreNotFound(error: unknown): undefined {
  if (!isApiError(error, 'NotFound')) throw error;
  return undefined;
}
