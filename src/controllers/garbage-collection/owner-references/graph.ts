/**
 * Graph of owner references, fed with every change of every kind. It reports which objects must be checked. The graph
 * lags behind the API, so every action on an object is first verified with the API. Source: upstream's
 * garbagecollector/graph_builder.go.
 */
import type { OwnerReference } from '../../../api/generated/meta/v1.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import { toUid, type Uid } from '../../../base/brand.ts';

export const ORPHAN_FINALIZER = 'orphan';
export const FOREGROUND_FINALIZER = 'foregroundDeletion';

export interface Coordinates {
  readonly apiVersion: string;
  readonly kind: string;
  /**
   * Namespace; '' for cluster-scoped objects. The namespace of a virtual node is a guess: that of the dependent that
   * referenced it.
   */
  readonly namespace: string;
  readonly name: string;
}

export interface GraphNode {
  readonly uid: Uid;
  readonly at: Coordinates;
  readonly owners: readonly OwnerReference[];
  readonly dependents: ReadonlySet<Uid>;
  /** Whether the object is known only from a dependent's owner reference. */
  readonly isVirtual: boolean;
  readonly isDeleting: boolean;
  /** Whether the object is being deleted and waits for its dependents (foreground deletion). */
  readonly isDeletingDependents: boolean;
}

interface MutableNode {
  readonly uid: Uid;
  at: Coordinates;
  owners: readonly OwnerReference[];
  /**
   * UIDs of the dependents. Most objects have none, so the shared set `NONE` is used until the first dependent is
   * added.
   */
  dependents: Set<Uid>;
  isVirtual: boolean;
  isDeleting: boolean;
  isDeletingDependents: boolean;
  isOrphaning: boolean;
}

/** UIDs to check: objects that may have to be deleted or released, and objects whose dependents must be orphaned. */
export interface Suspects {
  readonly delete: ReadonlySet<Uid>;
  readonly orphan: ReadonlySet<Uid>;
}

export class OwnershipGraph {
  readonly #nodes = new Map<Uid, MutableNode>();

  get size(): number {
    return this.#nodes.size;
  }

  node(uid: Uid): GraphNode | undefined {
    return this.#nodes.get(uid);
  }

  /** Dependents with `blockOwnerDeletion`, for which the owner waits. */
  blockingDependents(uid: Uid): GraphNode[] {
    const blocking: GraphNode[] = [];
    for (const each of this.dependentsOf(uid)) {
      if (each.owners.some((owner) => owner.uid === uid && owner.blockOwnerDeletion === true)) blocking.push(each);
    }
    return blocking;
  }

  dependentsOf(uid: Uid): GraphNode[] {
    const dependents: GraphNode[] = [];
    for (const each of this.#nodes.get(uid)?.dependents ?? []) {
      const node = this.#nodes.get(each);
      if (node !== undefined) dependents.push(node);
    }
    return dependents;
  }

  /** Records an added or changed object. */
  observe(object: KubeObject): Suspects {
    const { metadata } = object;
    const uid = toUid(metadata?.uid);
    const suspects = { delete: new Set<Uid>(), orphan: new Set<Uid>() };
    const at: Coordinates = {
      apiVersion: object.apiVersion ?? '',
      kind: object.kind ?? '',
      namespace: metadata?.namespace ?? '',
      name: metadata?.name ?? '',
    };
    let node = this.#nodes.get(uid);
    if (node === undefined) {
      node = newNode(uid, at, false);
      this.#nodes.set(uid, node);
    } else if (node.isVirtual) {
      // The references of dependents may contain wrong coordinates, so the dependents are checked again.
      if (!sameCoordinates(node.at, at)) for (const dependent of node.dependents) suspects.delete.add(dependent);
      node.at = at;
      node.isVirtual = false;
    }
    this.#setOwners(node, metadata?.ownerReferences ?? [], suspects);
    this.#setDeletion(node, object, suspects);
    return suspects;
  }

  /** Records that an object was deleted, or that the object of a virtual node does not exist. */
  remove(uid: Uid): Suspects {
    const suspects = { delete: new Set<Uid>(), orphan: new Set<Uid>() };
    const node = this.#nodes.get(uid);
    if (node === undefined) return suspects;
    this.#nodes.delete(uid);
    for (const owner of node.owners) this.#dropDependent(toUid(owner.uid), uid, suspects);
    // An object that references itself as owner is deleted with itself.
    node.dependents.delete(uid);
    for (const dependent of node.dependents) suspects.delete.add(dependent);
    if (node.dependents.size > 0) {
      // Dependents still reference the object. It stays as a virtual node until they have been handled.
      const ghost = newNode(uid, node.at, true);
      for (const dependent of node.dependents) addDependent(ghost, dependent);
      this.#nodes.set(uid, ghost);
    }
    return suspects;
  }

  #setOwners(node: MutableNode, owners: readonly OwnerReference[], suspects: MutableSuspects): void {
    const before = node.owners;
    if (owners.length === 0 && before.length === 0) return;
    node.owners = owners;
    const now = new Map(owners.map((owner) => [owner.uid, owner]));
    for (const old of before) {
      const current = now.get(old.uid);
      if (current === undefined) this.#dropDependent(toUid(old.uid), node.uid, suspects);
      else if (old.blockOwnerDeletion === true && current.blockOwnerDeletion !== true) {
        this.#wakeIfWaiting(toUid(old.uid), suspects);
      }
    }
    for (const owner of owners) {
      const uid = toUid(owner.uid);
      const known = this.#nodes.get(uid);
      if (known !== undefined) {
        addDependent(known, node.uid);
        // The owner's name or kind differs from the reference, which may be forged or stale.
        if (!known.isVirtual && !matchesReference(known.at, owner, node.at.namespace)) suspects.delete.add(node.uid);
        if (known.isDeletingDependents && !before.some((old) => old.uid === owner.uid)) suspects.delete.add(node.uid);
        continue;
      }
      const virtual = newNode(
        uid,
        { apiVersion: owner.apiVersion, kind: owner.kind, namespace: node.at.namespace, name: owner.name },
        true,
      );
      addDependent(virtual, node.uid);
      this.#nodes.set(uid, virtual);
      suspects.delete.add(uid);
    }
  }

  #setDeletion(node: MutableNode, object: KubeObject, suspects: MutableSuspects): void {
    const finalizers = object.metadata?.finalizers ?? [];
    const isDeleting = object.metadata?.deletionTimestamp !== undefined;
    const isOrphaning = isDeleting && finalizers.includes(ORPHAN_FINALIZER);
    const isDeletingDependents = isDeleting && finalizers.includes(FOREGROUND_FINALIZER);
    if (isOrphaning && !node.isOrphaning) suspects.orphan.add(node.uid);
    if (isDeletingDependents && !node.isDeletingDependents) {
      suspects.delete.add(node.uid);
      for (const dependent of node.dependents) suspects.delete.add(dependent);
    }
    node.isDeleting = isDeleting;
    node.isOrphaning = isOrphaning;
    node.isDeletingDependents = isDeletingDependents;
  }

  #dropDependent(owner: Uid, dependent: Uid, suspects: MutableSuspects): void {
    const node = this.#nodes.get(owner);
    if (node === undefined) return;
    node.dependents.delete(dependent);
    if (node.isVirtual && node.dependents.size === 0) this.#nodes.delete(owner);
    else this.#wakeIfWaiting(owner, suspects);
  }

  #wakeIfWaiting(owner: Uid, suspects: MutableSuspects): void {
    if (this.#nodes.get(owner)?.isDeletingDependents === true) suspects.delete.add(owner);
  }
}

interface MutableSuspects {
  readonly delete: Set<Uid>;
  readonly orphan: Set<Uid>;
}

/** Shared empty set, which must not be modified. */
const NONE: Set<Uid> = new Set();

function addDependent(node: MutableNode, uid: Uid): void {
  if (node.dependents === NONE) node.dependents = new Set();
  node.dependents.add(uid);
}

function newNode(uid: Uid, at: Coordinates, isVirtual: boolean): MutableNode {
  return {
    uid,
    at,
    owners: [],
    dependents: NONE,
    isVirtual,
    isDeleting: false,
    isDeletingDependents: false,
    isOrphaning: false,
  };
}

function sameCoordinates(a: Coordinates, b: Coordinates): boolean {
  return a.apiVersion === b.apiVersion && a.kind === b.kind && a.namespace === b.namespace && a.name === b.name;
}

/**
 * Whether the coordinates match a reference from `namespace`. An owner is in its dependent's namespace or
 * cluster-scoped.
 */
function matchesReference(at: Coordinates, owner: OwnerReference, namespace: string): boolean {
  return at.kind === owner.kind && at.name === owner.name && (at.namespace === '' || at.namespace === namespace);
}
