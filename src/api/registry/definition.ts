/**
 * How a kind is declared. The API server's pipeline is one and the same for all kinds; what differs is this data.
 * A kind lives in `src/api/kinds/<plural>/` and exports its definitions; `src/api/registry/index.ts` lists them all.
 * Modelled on k8s.io/kubernetes/pkg/registry strategies.
 */
import type { FieldError } from '../meta/field-error.ts';
import type { GroupVersionKind, JsonObject, KubeObject } from '../meta/object.ts';
import type { DecodeFindings } from '../schema/decode.ts';
import type { ObjectNode } from '../schema/node.ts';

export interface UserInfo {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** What a strategy may know besides the objects. Time and randomness are passed in. */
export interface StrategyContext {
  readonly nowMs: number;
  readonly user: UserInfo;
  /** Address from which the request came, without an IPv4-mapped prefix; undefined: a write of the server itself. */
  readonly sourceAddress?: string | undefined;
  newUid(): string;
  /** Random lower-case alphanumerics as upstream's `rand.String` (no vowels, no 0 1 3). */
  randomSuffix(length: number): string;
}

/**
 * Rules for one way of writing a kind. `prepare*` may mutate its argument and never fails; `validate*` never mutates.
 * The generic pipeline has already decoded, pruned, defaulted and checked types, name and metadata.
 */
export interface WriteStrategy<T extends KubeObject> {
  /** Drops what a creator may not set (status), fills what the server sets. */
  prepareForCreate?(object: T, context: StrategyContext): void;
  /**
   * Restores what this endpoint may not change (e.g. spec, on the status sub-resource) and bumps generation where due.
   */
  prepareForUpdate?(object: T, old: T, context: StrategyContext): void;
  /** `old`, on updates: what was taken once is not refused by what has been asked since. */
  validate?(object: T, old?: T): FieldError[];
  /** Runs after `validate` on creates: what is not held against objects that are there already. */
  validateCreate?(object: T): FieldError[];
  /** Runs after `validate` on updates: immutability and transitions. */
  validateUpdate?(object: T, old: T): FieldError[];
  /**
   * Runs after these: what is asked only of who writes in one of the kind's versions. `old` is undefined on creates.
   */
  validateVersion?(apiVersion: string, object: T, old: T | undefined): FieldError[];
  /**
   * Runs last, and not over values of a wrong type: what may take its time. It is advanced step by step, and others
   * have their turn between any two.
   */
  judge?(object: T, old: T | undefined): Iterator<undefined, FieldError[]> | undefined;
  /** Warnings returned in `Warning` headers. */
  warnings?(object: T, old: T | undefined): string[];
}

export interface Column<T extends KubeObject> {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'date' | 'boolean' | 'number';
  readonly format?: string;
  readonly description: string;
  /** 0 is always shown; 1 only with `-o wide`. */
  readonly priority?: number;
  /** The cell as it is printed. Ages come from `nowMs`. */
  cell(object: T, nowMs: number): string | number | bigint | boolean | null;
}

/** Reads one field for a field selector. A method type, so that definitions of all kinds fit in one list. */
export type FieldReader<T extends KubeObject> = { read(object: T): string }['read'];

export type Verb = 'create' | 'delete' | 'deletecollection' | 'get' | 'list' | 'patch' | 'update' | 'watch';

/** As of `Commit` in core/mvcc/port. */
export type Durability = 'durable' | 'relaxed' | 'heartbeat';

/** What differs where a kind is served under another name. Columns read objects as they are stored. */
export type ServedNames<T extends KubeObject = KubeObject> = Pick<
  KindDefinition<T>,
  'kind' | 'plural' | 'singular' | 'listKind' | 'verbs' | 'columns' | 'schemaName'
> & { readonly shortNames?: readonly string[]; readonly categories?: readonly string[] };

/**
 * A kind in another version than the stored one, or in another group. Conversions lose nothing, and may keep parts of
 * what they are given.
 */
export interface KindAlias<T extends KubeObject = KubeObject> {
  readonly group: string;
  readonly version: string;
  /** Objects differ from stored ones in `apiVersion` alone. */
  readonly identical?: boolean;
  /** Releases in which upstream declared the version deprecated and ceased to serve it; clients are warned. */
  readonly deprecated?: { readonly since: string; readonly removed: string };
  /** Default: the kind's own. */
  readonly skeleton?: JsonObject;
  /**
   * Field selectors that are called otherwise here, with the stored version's names. Default: those of the stored
   * version.
   */
  readonly fieldLabels?: Readonly<Record<string, string>>;
  /** Present where the kind has another name here: Project, which is stored as Namespace. */
  readonly names?: ServedNames<T>;
  /** Lists and watches hold the objects that the user may get, and no others. */
  readonly onlyReadable?: true;
  /** Where users see their own objects alone, whatever roles allow: whether this one is the user's. */
  isOwn?(object: T, user: UserInfo): boolean;
  /** `apiVersion` and `kind` are set by the caller. */
  convertTo(object: KubeObject): T;
  convertFrom(object: T): KubeObject;
}

/** Field paths, as lists of field names. */
export type ResetFields = readonly (readonly string[])[];

/** Deletion beyond `metadata.finalizers`. */
export interface Finalization<T extends KubeObject = KubeObject> {
  /** True while the object must not be removed. */
  isHeld(object: T): boolean;
  /** Marks an object whose deletion waits for it. May change `object`. */
  mark(object: T): void;
}

export interface KindDefinition<T extends KubeObject = KubeObject> extends GroupVersionKind {
  /** What clients of the kind in this version are warned of; upstream goes on to serve it. */
  readonly deprecation?: string;
  readonly plural: string;
  readonly singular: string;
  readonly listKind: string;
  readonly namespaced: boolean;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly verbs: readonly Verb[];
  /** Key of the type in the generated schemas: `io.k8s.api.core.v1.Pod`. */
  readonly schemaName: string;
  /**
   * What a new object holds before a client has set a field: structures that upstream's type has by value, and lists
   * and maps that are written when they are empty. They have no field manager. Source: the field types of k8s.io/api.
   */
  readonly skeleton?: JsonObject;
  /**
   * A delete answers with the deleted object instead of a Status; 'undocumented': although the documents of the API
   * promise a Status. Source: `ReturnDeletedObject` of upstream's registries.
   */
  readonly returnsDeleted?: true | 'undocumented';
  /** Below `/registry/`, as upstream: `pods`, `minions`, `services/specs`, `deployments`. */
  readonly storagePrefix: string;
  readonly durability?: Durability;
  /** An update that only reports that its writer still runs: stored with the durability `heartbeat`. */
  isHeartbeat?(object: T, old: Readonly<T>): boolean;
  /**
   * Updates that the cluster's components may do although the disk is full, because they keep a node in the cluster:
   * those of the object, or of its status.
   */
  readonly essentialUpdates?: readonly ('object' | 'status')[];
  /** Time to live of an object in seconds (events: 3600). */
  readonly ttlSeconds?: number;
  /** As of an alias: a kind of which there is no other version. */
  readonly deprecated?: { readonly since: string; readonly removed: string };
  /** Further versions of the kind, all stored as this one. */
  readonly aliases?: readonly KindAlias<T>[];
  /** Served only where `--runtime-config` switches the version on, as beta APIs of upstream since 1.24. */
  readonly offByDefault?: true;
  /** Versions, the stored one among them, that are switched off: as `group/version`. */
  readonly unserved?: ReadonlySet<string>;
  /** Upstream's name rule for this kind. Default: DNS-1123 subdomain. */
  readonly nameRule?: 'dns1123Subdomain' | 'dns1123Label' | 'dns1035Label' | 'pathSegment' | 'ipAddress';
  /**
   * Fills omitted fields exactly as upstream's `SetDefaults_*`. Idempotent, never fails, tolerates missing parents.
   * `isApplied`: it comes from a server-side apply, whose nulls are left for the validation.
   */
  setDefaults?(object: T, isApplied?: boolean): void;
  readonly strategy: WriteStrategy<T>;
  /** Present when the kind has a `/status` sub-resource. */
  readonly statusStrategy?: WriteStrategy<T>;
  /**
   * Paths that writes of the status reset, which server-side apply does not own (upstream's GetResetFields). Default:
   * spec.
   */
  readonly statusResetFields?: ResetFields;
  /**
   * Strategies of further writable sub-resources that carry the kind itself: `approval`, `finalize`,
   * `ephemeralcontainers`, `resize`.
   */
  readonly subresourceStrategies?: Readonly<Record<string, WriteStrategy<T>>>;
  /** PUT on a missing name creates (upstream's AllowCreateOnUpdate). */
  readonly allowCreateOnUpdate?: boolean;
  /** Update without resourceVersion allowed (upstream's AllowUnconditionalUpdate; default true). */
  readonly allowUnconditionalUpdate?: boolean;
  /** Marks an object whose deletion begins, e.g. with a finalizer that holds it. */
  prepareForDelete?(object: T, nowMs: number): void;
  /** A further phase of deletion beside `metadata.finalizers`: a namespace's `spec.finalizers`. */
  readonly finalization?: Finalization<T>;
  /** Warnings of a delete, given its propagation policy; undefined: the request names none. */
  warningsOnDelete?(propagation: string | undefined): readonly string[];
  /** Default for DELETE when the caller names no propagation policy. Default 'Background'. */
  readonly defaultPropagation?: 'Background' | 'Orphan';
  /**
   * Seconds of grace for a delete that names none; undefined: immediate, whatever it names. Only pods are deleted
   * gracefully.
   */
  defaultGraceSeconds?(object: T): number | undefined;
  readonly columns: readonly Column<T>[];
  /** Upstream's message for an unknown field label, where a kind has its own wording. */
  unknownFieldLabel?(field: string): string;
  /** Supported field selectors beside `metadata.name` and `metadata.namespace`, with how to read each. */
  readonly fieldSelectors?: Readonly<Record<string, FieldReader<T>>>;
  readonly scale?: ScaleMapping;
  /**
   * Sub-resources that are not status or scale, by name (`binding`, `eviction`, `token`, `approval`, `log`, `exec` …),
   * for discovery.
   */
  readonly extraSubresources?: readonly {
    readonly name: string;
    readonly kind: string;
    readonly group?: string;
    readonly version?: string;
    readonly verbs: readonly string[];
  }[];
  /** Finalizers may have any names, as those of kinds that users define: upstream has a definition for it. */
  readonly anyFinalizers?: true;
  /** Present for kinds that users define: what built-in kinds have from the generated schemas. */
  readonly custom?: CustomKind;
  /** Longest body of a create, where clients have no credentials. Default: that of the server. */
  readonly maxBodyBytes?: number;
  /** Never stored: a create is answered by a handler (TokenReview, SubjectAccessReview …). */
  readonly virtual?: boolean;
}

/** A version of a kind that a CustomResourceDefinition declares. */
export interface CustomKind {
  /** In which its objects are stored, where that one is served. */
  readonly storageVersion: string | undefined;
  /** Prunes a document of this version in place, and tells what was unknown or wrong. */
  coerce(document: JsonObject, stored?: boolean): DecodeFindings;
  /** For server-side apply. */
  readonly mergeSchema: ObjectNode;
  /** The published schema; refers to metadata as that version of OpenAPI does. */
  openapi(version: 2 | 3): JsonObject;
  /** Sent with every answer. */
  readonly deprecation: string | undefined;
}

export interface ScaleMapping {
  /** JSON paths as in CRDs: `.spec.replicas`. */
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  /** Where the selector is, of kinds that users define. */
  readonly selectorPath?: string;
  /** The selector in string form. */
  selector(object: KubeObject): string;
}
