/**
 * A simple model of the API server's storage as an oracle: a map of objects, a list of changes, and a sequence of
 * rules. The server chooses revisions, UIDs and times; the model only determines when there must be a new one. Source:
 * the API conventions, the reference of ObjectMeta, DeleteOptions and Status.
 */
import { afterUpdate, applied, type Owner, type Owners } from './ownership.ts';
import { type Leaf, same, sameLeaves, type Tree, treeOf } from './tree.ts';

export interface KindRules {
  readonly apiVersion: string;
  readonly kind: string;
  /** Name in error messages: `configmaps` or `rigs.lab.test`. */
  readonly resource: string;
  /** Whether the kind has a generation, which counts changes outside metadata and status. */
  readonly generations: boolean;
  /** Whether the kind has a `/status` subresource. */
  readonly status: boolean;
  /** Whether a PUT without a resourceVersion overwrites the object. */
  readonly unconditional: boolean;
}

/**
 * A stored object. `leaves` are all its values, including labels and annotations, except those that the server sets.
 */
export interface Stored {
  readonly name: string;
  readonly leaves: ReadonlyMap<string, Leaf>;
  readonly finalizers: readonly string[];
  readonly owners: Owners;
  /**
   * Whether the object has managed fields. Taken from the server, because the model does not track empty maps and
   * finalizers.
   */
  readonly tracked: boolean;
  readonly generation: number;
  readonly terminating: boolean;
  /** UID, which the server chooses. */
  readonly uid: string;
  readonly revision: number;
}

export interface Change {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: Stored;
  readonly before: Stored | undefined;
}

export type Expected =
  | { readonly answer: 'object'; readonly code: 200 | 201; readonly object: Stored; readonly fresh: boolean }
  | { readonly answer: 'deleted'; readonly object: Stored }
  | { readonly answer: 'failure'; readonly code: number; readonly reason: string };

export interface Draft {
  readonly leaves: ReadonlyMap<string, Leaf>;
  readonly finalizers: readonly string[];
}

const failure = (code: number, reason: string): Expected => ({ answer: 'failure', code, reason });
const notFound = failure(404, 'NotFound');
const conflict = failure(409, 'Conflict');
const invalid = failure(422, 'Invalid');

const isStatus = (path: string): boolean => path.startsWith('status/');
const isMetadata = (path: string): boolean => path.startsWith('metadata/');

function pick(leaves: ReadonlyMap<string, Leaf>, wanted: (path: string) => boolean): Map<string, Leaf> {
  return new Map([...leaves].filter(([path]) => wanted(path)));
}

export class Model {
  readonly rules: KindRules;
  readonly namespace: string;
  readonly objects = new Map<string, Stored>();
  readonly log: Change[] = [];

  constructor(rules: KindRules, namespace: string) {
    this.rules = rules;
    this.namespace = namespace;
  }

  create(name: string, draft: Draft, owner: Owner, dryRun: boolean): Expected {
    if (!/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name)) return invalid;
    if (this.objects.has(name)) return failure(409, 'AlreadyExists');
    const leaves = this.#withoutStatus(draft.leaves);
    const object: Stored = {
      name,
      leaves,
      finalizers: draft.finalizers,
      owners: afterUpdate(new Map(), owner, new Map(), leaves),
      generation: this.rules.generations ? 1 : 0,
      terminating: false,
      tracked: true,
      uid: '',
      revision: 0,
    };
    if (!dryRun) this.#change('ADDED', object, undefined);
    return { answer: 'object', code: 201, object, fresh: true };
  }

  /** `status`: the update is for `/status`. `revision`: resourceVersion in the body; undefined if there is none. */
  update(
    name: string,
    draft: Draft,
    owner: Owner,
    options: {
      dryRun: boolean;
      status: boolean;
      revision?: number | undefined;
      uid?: string | undefined;
      put: boolean;
    },
  ): Expected {
    const before = this.objects.get(name);
    if (before === undefined) return notFound;
    if (options.revision !== undefined && options.revision !== before.revision) return conflict;
    if (options.put && options.revision === undefined && !this.rules.unconditional) return invalid;
    if (options.uid !== undefined && options.uid !== before.uid) return conflict;
    const leaves = this.#written(before, draft.leaves, options.status);
    const finalizers = options.status ? before.finalizers : draft.finalizers;
    if (before.terminating && finalizers.some((each) => !before.finalizers.includes(each))) return invalid;
    const by = options.status ? `${owner}|status` : owner;
    return this.#store(
      before,
      leaves,
      finalizers,
      // Managed fields are not started by an update of an object without any, only by an apply.
      before.tracked ? afterUpdate(before.owners, by, before.leaves, leaves) : before.owners,
      options.dryRun,
    );
  }

  apply(name: string, wanted: ReadonlyMap<string, Leaf>, owner: Owner, force: boolean, dryRun: boolean): Expected {
    const before = this.objects.get(name);
    const own = this.#withoutStatus(wanted);
    if (before === undefined) {
      const object: Stored = {
        name,
        leaves: own,
        finalizers: [],
        owners: own.size === 0 ? new Map() : new Map([[owner, new Set(own.keys())]]),
        generation: this.rules.generations ? 1 : 0,
        terminating: false,
        tracked: true,
        uid: '',
        revision: 0,
      };
      if (!dryRun) this.#change('ADDED', object, undefined);
      return { answer: 'object', code: 201, object, fresh: true };
    }
    const all = this.#withoutStatus(before.leaves);
    const owners: Owners =
      before.tracked || all.size === 0 ? before.owners : new Map([['before-first-apply|Update', new Set(all.keys())]]);
    const result = applied(owners, owner, before.leaves, own, force);
    if (result.conflicts.length > 0 && !force) return conflict;
    return this.#store(before, result.leaves, before.finalizers, result.owners, dryRun);
  }

  delete(
    name: string,
    options: { uid?: string | undefined; revision?: number | undefined; dryRun: boolean },
  ): Expected {
    const before = this.objects.get(name);
    if (before === undefined) return notFound;
    if (options.uid !== undefined && options.uid !== before.uid) return conflict;
    if (options.revision !== undefined && options.revision !== before.revision) return conflict;
    if (before.finalizers.length === 0) {
      if (!options.dryRun) this.#change('DELETED', before, before);
      return { answer: 'deleted', object: before };
    }
    if (before.terminating) return { answer: 'object', code: 200, object: before, fresh: false };
    const generation = before.generation + (this.rules.generations ? 1 : 0);
    const object = { ...before, terminating: true, generation };
    if (options.dryRun) return { answer: 'object', code: 200, object: before, fresh: false };
    this.#change('MODIFIED', object, before);
    return { answer: 'object', code: 200, object, fresh: true };
  }

  /** Objects in a list, sorted by name. */
  list(matches: (object: Stored) => boolean): Stored[] {
    return [...this.objects.values()].filter(matches).sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Records the values that the server chose for the last write. */
  settle(name: string, chosen: { uid: string; revision: number; tracked: boolean }): void {
    const last = this.log.at(-1) as Change;
    const object = { ...last.object, ...chosen };
    this.log[this.log.length - 1] = { ...last, object };
    if (this.objects.has(name)) this.objects.set(name, object);
  }

  #store(
    before: Stored,
    leaves: ReadonlyMap<string, Leaf>,
    finalizers: readonly string[],
    owners: Owners,
    dryRun: boolean,
  ): Expected {
    const content = (path: string): boolean => !isMetadata(path) && !isStatus(path);
    const changed = !sameLeaves(pick(before.leaves, content), pick(leaves, content));
    const generation = before.generation + (this.rules.generations && changed ? 1 : 0);
    const object: Stored = { ...before, leaves, finalizers, owners, generation };
    if (before.terminating && finalizers.length === 0 && before.finalizers.length > 0) {
      if (!dryRun) this.#change('DELETED', object, before);
      return { answer: 'object', code: 200, object, fresh: false };
    }
    const idle =
      sameLeaves(before.leaves, leaves) &&
      same(before.finalizers, finalizers) &&
      describeOwners(before.owners) === describeOwners(owners);
    if (idle || dryRun) return { answer: 'object', code: 200, object, fresh: false };
    this.#change('MODIFIED', object, before);
    return { answer: 'object', code: 200, object, fresh: true };
  }

  /** Each endpoint writes its own part. */
  #written(before: Stored, wanted: ReadonlyMap<string, Leaf>, status: boolean): Map<string, Leaf> {
    if (!this.rules.status) return new Map(wanted);
    if (!status) return new Map([...pick(wanted, (path) => !isStatus(path)), ...pick(before.leaves, isStatus)]);
    return new Map([...pick(before.leaves, (path) => !isStatus(path)), ...pick(wanted, isStatus)]);
  }

  #withoutStatus(leaves: ReadonlyMap<string, Leaf>): Map<string, Leaf> {
    return this.rules.status ? pick(leaves, (path) => !isStatus(path)) : new Map(leaves);
  }

  #change(type: Change['type'], object: Stored, before: Stored | undefined): void {
    this.log.push({ type, object, before });
    if (type === 'DELETED') this.objects.delete(object.name);
    else this.objects.set(object.name, object);
  }
}

export function describeOwners(owners: Owners): string {
  return [...owners]
    .map(([owner, paths]) => `${owner}: ${[...paths].sort().join(' ')}`)
    .sort()
    .join('\n');
}

/** Expected object without the values that the server chooses. */
export function documentOf({ rules, namespace }: Model, object: Stored): Tree {
  const tree = treeOf(object.leaves);
  const metadata: Tree = { ...(tree['metadata'] as Tree | undefined), name: object.name, namespace };
  if (object.generation > 0) metadata['generation'] = object.generation;
  if (object.finalizers.length > 0) metadata['finalizers'] = [...object.finalizers];
  return { ...tree, apiVersion: rules.apiVersion, kind: rules.kind, metadata };
}

/** Extracts the model's values from a response. Throws if the object has unexpected parts. */
export function readDocument(document: Record<string, unknown>): {
  tree: Tree;
  uid: string;
  revision: number;
  created: string;
  deletion: string | undefined;
  owners: Owners;
  tracked: boolean;
} {
  const { metadata, ...rest } = structuredClone(document) as { metadata: Record<string, unknown> } & Tree;
  const {
    uid,
    resourceVersion,
    creationTimestamp,
    deletionTimestamp,
    deletionGracePeriodSeconds,
    managedFields,
    ...plain
  } = metadata;
  if (deletionTimestamp !== undefined && deletionGracePeriodSeconds !== 0) throw new Error('a grace period of its own');
  return {
    tree: { ...rest, metadata: plain as Tree },
    uid: String(uid),
    revision: resourceVersion === undefined ? 0 : Number(resourceVersion),
    created: String(creationTimestamp),
    deletion: deletionTimestamp as string | undefined,
    owners: ownersOf((managedFields ?? []) as ManagedEntry[]),
    tracked: managedFields !== undefined,
  };
}

interface ManagedEntry {
  readonly manager: string;
  readonly operation: string;
  readonly subresource?: string;
  readonly fieldsV1: Record<string, unknown>;
}

/** Maps that are owned even when empty; the model only tracks their contents. */
const MAPS: ReadonlySet<string> = new Set([
  'metadata/labels',
  'metadata/annotations',
  'data',
  'binaryData',
  'spec',
  'spec/deep',
  'status',
]);

function ownersOf(entries: readonly ManagedEntry[]): Owners {
  const owners = new Map<Owner, Set<string>>();
  for (const { manager, operation, subresource, fieldsV1 } of entries) {
    const paths = new Set<string>();
    const walk = (fields: Record<string, unknown>, prefix: string): void => {
      for (const [key, below] of Object.entries(fields)) {
        if (!key.startsWith('f:')) continue;
        const path = prefix + key.slice(2);
        // Finalizers are a set with owners per item, which the model does not track.
        if (path === 'metadata/finalizers') continue;
        if (Object.keys(below as object).length > 0) walk(below as Record<string, unknown>, `${path}/`);
        else if (!MAPS.has(path)) paths.add(path);
      }
    };
    walk(fieldsV1, '');
    if (paths.size > 0)
      owners.set(`${manager}|${operation}${subresource === undefined ? '' : `|${subresource}`}`, paths);
  }
  return owners;
}
