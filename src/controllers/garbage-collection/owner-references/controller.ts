/**
 * Deletes objects whose owners are deleted, blocks owners that wait for their dependents, and orphans dependents on
 * request. Graph and decisions are in controllers/garbage-collection/owner-references. Every step is verified with the
 * API before a write.
 */
import type { OwnerReference } from '../../../api/generated/meta/v1.ts';
import type { KubeObject, ResourceType } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { toUid, type Uid } from '../../../base/brand.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Informer } from '../../../client/types.ts';
import { attemptAll } from '../../framework/attempt-all.ts';
import type { DiscoveredKind } from '../../framework/discovery.ts';
import type { ControllerHandle, ControllerSpec, RunScope } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import { decideCollection, type OwnerState, withoutBlockingOwners, withoutFinalizer, withoutOwners } from './decide.ts';
import {
  type Coordinates,
  FOREGROUND_FINALIZER,
  type GraphNode,
  groupOf,
  isWide,
  ORPHAN_FINALIZER,
  OwnershipGraph,
  type Suspects,
} from './graph.ts';

/**
 * Kinds for which other controllers keep complete copies. Kinds of which quotas count more than the number of objects
 * must be among them.
 */
export const WHOLE_COPIES: readonly ResourceType[] = [
  resources.namespaces,
  resources.nodes,
  resources.persistentVolumeClaims,
  resources.persistentVolumes,
  resources.pods,
  resources.resourceQuotas,
  resources.services,
  resources.endpoints,
  resources.endpointSlices,
  resources.serviceAccounts,
  resources.replicationControllers,
  resources.deployments,
  resources.replicaSets,
  resources.statefulSets,
  resources.podDisruptionBudgets,
  resources.daemonSets,
  resources.controllerRevisions,
  resources.clusterRoles,
  resources.certificateSigningRequests,
  resources.resourceClaims,
];

/** Reads and deletes objects of every kind that the server lists. The kinds are known only at run time. */
export const garbageCollectorController: ControllerSpec = {
  name: 'garbage-collector',
  reads: WHOLE_COPIES,
  writes: [],
  uses: ['discovery', 'anyKind'],
  prepare: (handle) => (scope) => new Collector(handle, scope).start(),
};

/** Changes of these kinds may change the server's list of kinds. */
const KINDS_OF_KINDS = new Set([
  'customresourcedefinitions.apiextensions.k8s.io',
  'apiservices.apiregistration.k8s.io',
]);
const REDISCOVER_MS = 1_000;
const SYNC_WAIT_MS = 30_000;
/** Maximum number of cached UIDs of absent objects, which saves requests. A UID is never reused. */
const MAX_ABSENT = 1_000;
/**
 * Number of dependents above which the orphaning of an object has its own queue, because each of them takes two
 * requests.
 */
const MANY_DEPENDENTS = 100;

const titleOf = (kind: ResourceType): string => (kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`);

class Collector {
  readonly #handle: ControllerHandle;
  readonly #scope: RunScope;
  readonly #graph = new OwnershipGraph();
  readonly #absent = new Set<string>();
  readonly #monitored = new Set<string>();
  /** Informers that are not shared with other controllers. */
  readonly #own = new Map<string, Informer<KubeObject>>();
  #kinds = new Map<string, DiscoveredKind>();
  #rediscovery = false;
  #isOpen = false;
  readonly #early = { delete: new Set<Uid>(), orphan: new Set<Uid>() };
  readonly #deleteQueue;
  readonly #wideDeleteQueue;
  readonly #orphanQueue;
  readonly #wideOrphanQueue;

  constructor(handle: ControllerHandle, scope: RunScope) {
    this.#handle = handle;
    this.#scope = scope;
    this.#deleteQueue = scope.queue((key) => this.#examine(toUid(key)), 8);
    this.#wideDeleteQueue = scope.queue((key) => this.#examine(toUid(key)), 1);
    this.#orphanQueue = scope.queue((key) => this.#orphan(toUid(key)), 2);
    this.#wideOrphanQueue = scope.queue((key) => this.#orphan(toUid(key)), 1);
  }

  async start(): Promise<void> {
    const discovery = await this.#handle.use('discovery')(this.#scope.signal);
    for (const error of discovery.errors) this.#handle.log.warn('API group discovery failed', { error });
    this.#kinds = new Map(discovery.kinds.map((kind) => [`${kind.group}/${kind.kind}`, kind]));
    const informers: { readonly kind: DiscoveredKind; readonly informer: Informer<KubeObject> }[] = [];
    for (const kind of discovery.kinds) {
      if (this.#monitored.has(titleOf(kind)) || !isCollectable(kind)) continue;
      this.#monitored.add(titleOf(kind));
      informers.push({ kind, informer: this.#informerOf(kind) });
    }
    for (const { informer } of informers) informer.start();
    const synced = informers.map(({ kind, informer }) =>
      informer.synced.then(() => {
        if (!this.#scope.signal.aborted) this.#monitor(kind, informer);
      }),
    );
    void Promise.all(synced).then(() => this.#open());
    // A kind that cannot be listed must not block collection of the other kinds. This is safe, because absent owners
    // are verified live.
    this.#scope.after(SYNC_WAIT_MS, () => this.#open());
    if (discovery.errors.length === 0) this.#forgetKinds(new Set(discovery.kinds.map(titleOf)));
    if (discovery.errors.length > 0) this.#rediscover(10 * REDISCOVER_MS);
  }

  /**
   * Informer of a kind: the complete copy of other controllers if there is one, otherwise a copy of the metadata only.
   */
  #informerOf(kind: DiscoveredKind): Informer<KubeObject> {
    const shared = WHOLE_COPIES.find((each) => each.group === kind.group && each.plural === kind.plural);
    if (shared !== undefined) return this.#handle.informer<KubeObject>(shared);
    const own = this.#handle.use('anyKind').informer(kind);
    this.#own.set(titleOf(kind), own);
    return own;
  }

  /** Stops the informers of kinds that are no longer served. */
  #forgetKinds(served: ReadonlySet<string>): void {
    for (const [title, informer] of this.#own) {
      if (served.has(title)) continue;
      this.#own.delete(title);
      this.#monitored.delete(title);
      void informer.stop();
    }
  }

  #monitor(kind: DiscoveredKind, informer: Informer<KubeObject>): void {
    const mayChangeKinds = KINDS_OF_KINDS.has(titleOf(kind));
    this.#scope.onChange(informer, {
      added: (object) => {
        this.#follow(this.#graph.observe(object));
        if (mayChangeKinds) this.#rediscover(REDISCOVER_MS);
      },
      updated: (object, old) => {
        if (isRelevant(object, old)) this.#follow(this.#graph.observe(object));
        if (mayChangeKinds) this.#rediscover(REDISCOVER_MS);
      },
      deleted: (object) => {
        const { namespace = '', name = '' } = object.metadata ?? {};
        const uid = toUid(object.metadata?.uid);
        this.#rememberAbsent(absenceKey(uid, kind, namespace, name));
        this.#follow(this.#graph.remove(uid));
      },
    });
  }

  #rediscover(delayMs: number): void {
    if (this.#rediscovery) return;
    this.#rediscovery = true;
    this.#scope.after(delayMs, async () => {
      this.#rediscovery = false;
      try {
        await this.start();
      } catch (error) {
        this.#handle.log.warn('discovery failed; retrying', { error: messageOf(error) });
        this.#rediscover(10 * REDISCOVER_MS);
      }
    });
  }

  /**
   * Starts processing when every kind is in the graph, or after the wait for them. Earlier, an owner could seem to have
   * no dependents.
   */
  #open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#follow({ delete: this.#early.delete, orphan: this.#early.orphan });
    this.#early.delete.clear();
    this.#early.orphan.clear();
  }

  #follow(suspects: Suspects): void {
    if (!this.#isOpen) {
      for (const uid of suspects.delete) this.#early.delete.add(uid);
      for (const uid of suspects.orphan) this.#early.orphan.add(uid);
      return;
    }
    for (const uid of suspects.delete) this.#check(uid);
    for (const uid of suspects.orphan) {
      const isLong = (this.#graph.node(uid)?.dependents.size ?? 0) > MANY_DEPENDENTS;
      (isLong ? this.#wideOrphanQueue : this.#orphanQueue).add(uid);
    }
  }

  #check(uid: Uid): void {
    const node = this.#graph.node(uid);
    (node !== undefined && isWide(node) ? this.#wideDeleteQueue : this.#deleteQueue).add(uid);
  }

  #rememberAbsent(key: string): void {
    this.#absent.add(key);
    if (this.#absent.size <= MAX_ABSENT) return;
    const oldest = this.#absent.values().next();
    if (oldest.done !== true) this.#absent.delete(oldest.value);
  }

  async #examine(uid: Uid): Promise<void> {
    const node = this.#graph.node(uid);
    if (node === undefined) return;
    if (node.isDeleting && !node.isDeletingDependents) return;
    const object = await this.#read(node.at, undefined);
    if (object === undefined || object.metadata?.uid !== uid) {
      if (node.isVirtual) {
        // Whether the owner exists depends on the namespace of the reference, so each dependent is checked separately.
        this.#follow(this.#graph.markAbsent(uid));
      } else this.#follow(this.#graph.remove(uid));
      return;
    }
    if (node.isVirtual) {
      this.#follow(this.#graph.observe({ ...object, apiVersion: node.at.apiVersion, kind: node.at.kind }));
      return;
    }
    if (node.isDeletingDependents) {
      await this.#deleteDependents(node, object);
      return;
    }
    await this.#attemptToDelete(node, object);
  }

  async #attemptToDelete(node: GraphNode, object: KubeObject): Promise<void> {
    const references = object.metadata?.ownerReferences ?? [];
    const owners: { reference: OwnerReference; state: OwnerState }[] = [];
    for (const reference of references) {
      this.#scope.signal.throwIfAborted();
      owners.push({ reference, state: await this.#ownerState(reference, node.at.namespace) });
    }
    const dependents = this.#graph.dependentsOf(node.uid);
    const decision = decideCollection({
      object,
      owners,
      hasDependents: dependents.length > 0,
      hasWaitingDependents: dependents.some((dependent) => dependent.isDeletingDependents),
    });
    if (decision.kind === 'keep') return;
    if (decision.kind === 'forget-owners') {
      await this.#patch(node.at, object, { ownerReferences: withoutOwners(object, decision.uids) });
      return;
    }
    if (decision.unblockOwners) await this.#patch(node.at, object, { ownerReferences: withoutBlockingOwners(object) });
    this.#handle.log.v(2, 'deleting an object whose owners do not exist', {
      kind: node.at.kind,
      name: node.at.name,
      namespace: node.at.namespace,
      propagation: decision.propagation,
    });
    const { client, kind } = this.#clientFor(node.at);
    const resourceVersion = decision.unblockOwners ? undefined : object.metadata?.resourceVersion;
    await ignoreNotFound(() =>
      client.delete(node.at.name, kind.namespaced ? node.at.namespace : undefined, {
        propagationPolicy: decision.propagation,
        preconditions: { uid: node.uid, ...(resourceVersion === undefined ? {} : { resourceVersion }) },
      }),
    );
  }

  async #ownerState(reference: OwnerReference, namespace: string): Promise<OwnerState> {
    const at: Coordinates = { apiVersion: reference.apiVersion, kind: reference.kind, namespace, name: reference.name };
    const kind = this.#kindOf(at);
    const { namespaced } = kind;
    // A cluster-scoped object cannot be owned by a namespaced one. Such a reference is invalid, but not a reason to
    // delete.
    if (namespace === '' && namespaced) return 'solid';
    const uid = toUid(reference.uid);
    const key = absenceKey(uid, kind, namespaced ? namespace : '', reference.name);
    if (this.#absent.has(key)) return 'dangling';
    const owner = await this.#read(at, uid);
    if (owner === undefined || owner.metadata?.uid !== uid) {
      this.#rememberAbsent(key);
      return 'dangling';
    }
    const waits =
      owner.metadata.deletionTimestamp !== undefined &&
      owner.metadata.finalizers?.includes(FOREGROUND_FINALIZER) === true;
    return waits ? 'waiting' : 'solid';
  }

  /**
   * Handles the foreground deletion of an owner: deletes its dependents, and removes its finalizer when no dependent
   * blocks the owner any more.
   */
  async #deleteDependents(node: GraphNode, object: KubeObject): Promise<void> {
    const blocking = this.#graph.blockingDependents(node.uid);
    if (blocking.length === 0) {
      if (object.metadata?.finalizers?.includes(FOREGROUND_FINALIZER) !== true) return;
      await this.#patch(node.at, object, { finalizers: withoutFinalizer(object, FOREGROUND_FINALIZER) });
      return;
    }
    for (const dependent of blocking) if (!dependent.isDeletingDependents) this.#check(dependent.uid);
  }

  async #orphan(uid: Uid): Promise<void> {
    const node = this.#graph.node(uid);
    if (node === undefined) return;
    await attemptAll(this.#graph.dependentsOf(uid), async (dependent) => {
      this.#scope.signal.throwIfAborted();
      const object = await this.#read(dependent.at, dependent.uid);
      if (object === undefined || object.metadata?.uid !== dependent.uid) return;
      if (object.metadata.ownerReferences?.some((reference) => reference.uid === uid) !== true) return;
      await this.#patch(dependent.at, object, { ownerReferences: withoutOwners(object, [uid]) });
    });
    const owner = await this.#read(node.at, uid);
    if (owner === undefined || owner.metadata?.uid !== uid) return;
    if (owner.metadata.finalizers?.includes(ORPHAN_FINALIZER) !== true) return;
    await this.#patch(node.at, owner, { finalizers: withoutFinalizer(owner, ORPHAN_FINALIZER) });
  }

  /** Patches an object, conditional on the version that was read. After a conflict the object is checked again. */
  async #patch(
    at: Coordinates,
    object: KubeObject,
    metadata: Readonly<Record<string, readonly unknown[]>>,
  ): Promise<void> {
    const { client, kind } = this.#clientFor(at);
    await ignoreNotFound(async () => {
      await client.patch(at.name, kind.namespaced ? at.namespace : undefined, 'merge', {
        metadata: {
          uid: object.metadata?.uid,
          resourceVersion: object.metadata?.resourceVersion,
          // An empty list is omitted, as upstream encodes it.
          ...Object.fromEntries(Object.entries(metadata).map(([key, list]) => [key, list.length === 0 ? null : list])),
        },
      });
    });
  }

  async #read(at: Coordinates, uid: Uid | undefined): Promise<KubeObject | undefined> {
    const { client, kind } = this.#clientFor(at);
    try {
      return await client.get(at.name, kind.namespaced ? at.namespace : undefined);
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      this.#handle.log.v(4, 'cannot read an object', { kind: at.kind, name: at.name, uid, error: messageOf(error) });
      throw error;
    }
  }

  #clientFor(at: Coordinates) {
    const kind = this.#kindOf(at);
    return { client: this.#handle.use('anyKind').client(kind), kind };
  }

  /**
   * The served kind of an object. Throws if the server does not serve the kind (yet), because objects that cannot be
   * verified must not be changed.
   */
  #kindOf(at: Coordinates): DiscoveredKind {
    const kind = this.#kinds.get(`${groupOf(at.apiVersion)}/${at.kind}`);
    if (kind === undefined) throw new Error(`the server has no kind ${at.kind} in ${at.apiVersion}`);
    return kind;
  }
}

/**
 * Key of a cached absent owner. Includes group, namespace and name, because a reference with a wrong group or from the
 * wrong namespace must not mark the owner as absent for valid references.
 */
function absenceKey(uid: Uid, kind: DiscoveredKind, namespace: string, name: string): string {
  return `${uid}/${titleOf(kind)}/${namespace}/${name}`;
}

/** Whether objects of the kind are collected. Events are not: they expire, are numerous and own nothing. */
function isCollectable(kind: DiscoveredKind): boolean {
  if (kind.plural === 'events') return false;
  return ['list', 'watch', 'delete', 'get'].every((verb) => kind.verbs.has(verb));
}

/** Whether an update changes fields that the graph contains. Most updates are heartbeats and status changes. */
function isRelevant(object: KubeObject, old: KubeObject): boolean {
  const facts = (each: KubeObject): string =>
    JSON.stringify([
      each.metadata?.ownerReferences,
      each.metadata?.finalizers,
      each.metadata?.deletionTimestamp !== undefined,
    ]);
  return facts(object) !== facts(old);
}
