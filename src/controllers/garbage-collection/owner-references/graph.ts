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
  /**
   * Whether each dependent of a virtual node is checked on its own, because the object was not found or is not looked
   * up.
   */
  readonly checksEach: boolean;
  readonly isDeleting: boolean;
  /** Whether the object is being deleted and waits for its dependents (foreground deletion). */
  readonly isDeletingDependents: boolean;
}

/**
 * Number of owners above which an object is checked separately from other objects. Each owner takes a request, so a few
 * such objects could delay the checks of all others.
 */
const MAX_OWNERS = 100;

export const isWide = ({ owners }: Pick<GraphNode, 'owners'>): boolean => owners.length > MAX_OWNERS;

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
  checksEach: boolean;
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
      node = newNode(uid, at, { isVirtual: false });
      this.#nodes.set(uid, node);
    } else if (node.isVirtual) {
      // The references of dependents may contain wrong coordinates, so the dependents are checked again.
      if (!sameCoordinates(node.at, at)) for (const dependent of node.dependents) suspects.delete.add(dependent);
      node.at = at;
      node.isVirtual = false;
      node.checksEach = false;
    }
    this.#setOwners(node, metadata?.ownerReferences ?? [], suspects);
    this.#setDeletion(node, object, suspects);
    return suspects;
  }

  /**
   * Records that the object of a virtual node was not found. Its dependents must be checked, and also each dependent
   * that is added later.
   */
  markAbsent(uid: Uid): Suspects {
    const node = this.#nodes.get(uid);
    if (node?.isVirtual !== true) return { delete: NONE, orphan: NONE };
    node.checksEach = true;
    return { delete: new Set(node.dependents), orphan: NONE };
  }

  /** Records that an object was deleted. */
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
      const ghost = newNode(uid, node.at, { isVirtual: true });
      ghost.checksEach = true;
      for (const dependent of node.dependents) addDependent(ghost, dependent);
      this.#nodes.set(uid, ghost);
    }
    return suspects;
  }

  #setOwners(node: MutableNode, owners: readonly OwnerReference[], suspects: MutableSuspects): void {
    const before = node.owners;
    if (owners.length === 0 && before.length === 0) return;
    const known = new Set(before.map((owner) => owner.uid));
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
      const present = this.#nodes.get(uid);
      if (present !== undefined) {
        addDependent(present, node.uid);
        // The coordinates of the owner differ from the reference, which may be forged or stale.
        if (!matchesReference(present.at, owner, node.at.namespace)) suspects.delete.add(node.uid);
        // An owner that was not found is not looked up again for the dependents that it gets later.
        if ((present.checksEach || present.isDeletingDependents) && !known.has(owner.uid))
          suspects.delete.add(node.uid);
        continue;
      }
      const virtual = newNode(
        uid,
        { apiVersion: owner.apiVersion, kind: owner.kind, namespace: node.at.namespace, name: owner.name },
        { isVirtual: true },
      );
      addDependent(virtual, node.uid);
      this.#nodes.set(uid, virtual);
      // The check of an object with many owners looks up all of them.
      virtual.checksEach = isWide(node);
      suspects.delete.add(virtual.checksEach ? node.uid : uid);
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

function newNode(uid: Uid, at: Coordinates, { isVirtual }: { readonly isVirtual: boolean }): MutableNode {
  return {
    uid,
    at,
    owners: [],
    dependents: NONE,
    isVirtual,
    checksEach: false,
    isDeleting: false,
    isDeletingDependents: false,
    isOrphaning: false,
  };
}

/** Group of an `apiVersion`; '' for the core group. */
export function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf('/');
  return slash < 0 ? '' : apiVersion.slice(0, slash);
}

function sameCoordinates(a: Coordinates, b: Coordinates): boolean {
  return a.apiVersion === b.apiVersion && a.kind === b.kind && a.namespace === b.namespace && a.name === b.name;
}

/**
 * Whether the coordinates match a reference from `namespace`. An owner is in its dependent's namespace or
 * cluster-scoped.
 */
function matchesReference(at: Coordinates, owner: OwnerReference, namespace: string): boolean {
  if (at.kind !== owner.kind || at.name !== owner.name) return false;
  return groupOf(at.apiVersion) === groupOf(owner.apiVersion) && (at.namespace === '' || at.namespace === namespace);
}
