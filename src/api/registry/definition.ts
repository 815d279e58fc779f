/**
 * Declaration of a kind. One pipeline in the API server serves all kinds; a `KindDefinition` contains the differences.
 * A kind is in `src/api/kinds/<plural>/`, which exports its definitions; `src/api/registry/index.ts` lists them all.
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

/** Context of a strategy in addition to the objects. Time and randomness are arguments, so that tests control them. */
export interface StrategyContext {
  readonly nowMs: number;
  readonly user: UserInfo;
  /** Source address of the request, without an IPv4-mapped prefix. Undefined for writes of the server itself. */
  readonly sourceAddress?: string | undefined;
  newUid(): string;
  /** Random lower-case alphanumerics like upstream's `rand.String` (no vowels, no 0 1 3). */
  randomSuffix(length: number): string;
}

/**
 * Rules for writes of a kind through one endpoint. `prepare*` may change its argument and never fails; `validate*`
 * never changes it. The pipeline has already decoded, pruned and defaulted the object and checked types, name and
 * metadata.
 */
export interface WriteStrategy<T extends KubeObject> {
  /** Drops fields that clients must not set (status) and sets fields that the server owns. */
  prepareForCreate?(object: T, context: StrategyContext): void;
  /**
   * Restores fields that this endpoint must not change (for example the spec on /status) and increases the generation
   * if the desired state changes.
   */
  prepareForUpdate?(object: T, old: T, context: StrategyContext): void;
  /** `old` is set on updates, so that newer rules can be skipped for values that the stored object already has. */
  validate?(object: T, old?: T): FieldError[];
  /** Rules for new objects, which do not apply to stored ones. Runs after `validate` on creates. */
  validateCreate?(object: T): FieldError[];
  /** Rules about changes, for example immutable fields. Runs after `validate` on updates. */
  validateUpdate?(object: T, old: T): FieldError[];
  /**
   * Rules of a single API version, the one of the request. Runs after the other `validate…` functions. `old` is
   * undefined on creates.
   */
  validateVersion?(apiVersion: string, object: T, old: T | undefined): FieldError[];
  /**
   * Expensive checks. Runs last, and only if all types are correct. The caller advances the iterator step by step and
   * serves other requests between the steps.
   */
  validateExpensive?(object: T, old: T | undefined): Iterator<undefined, FieldError[]> | undefined;
  warnings?(object: T, old: T | undefined): string[];
}

export interface Column<T extends KubeObject> {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'date' | 'boolean' | 'number';
  readonly format?: string;
  readonly description: string;
  /** Priority of the column. 0: always shown; 1: shown with `-o wide` only. */
  readonly priority?: number;
  /** Value of the cell. Ages are relative to `nowMs`. */
  cell(object: T, nowMs: number): string | number | bigint | boolean | null;
}

/**
 * Reads a field for a field selector. The type is that of a method, so that one list can hold definitions of all kinds.
 */
export type FieldReader<T extends KubeObject> = { read(object: T): string }['read'];

export type Verb = 'create' | 'delete' | 'deletecollection' | 'get' | 'list' | 'patch' | 'update' | 'watch';

/** When a write reaches the disk. `Commit` in store/port.ts describes the values. */
export type Durability = 'durable' | 'relaxed' | 'heartbeat';

/** Fields that differ if a kind is served under another name. Columns read objects in the stored version. */
export type ServedNames<T extends KubeObject = KubeObject> = Pick<
  KindDefinition<T>,
  'kind' | 'plural' | 'singular' | 'listKind' | 'verbs' | 'columns' | 'schemaName'
> & { readonly shortNames?: readonly string[]; readonly categories?: readonly string[] };

/**
 * Another version or group in which a kind is served. Conversions lose no data; a result may share parts with its
 * source.
 */
export interface KindAlias<T extends KubeObject = KubeObject> {
  readonly group: string;
  readonly version: string;
  /** True if objects of this version differ from the stored ones in `apiVersion` only. */
  readonly identical?: boolean;
  /** Kubernetes releases in which upstream deprecated and removed the version. Clients get a warning. */
  readonly deprecated?: { readonly since: string; readonly removed: string };
  /** Skeleton of objects in this version. Default: the skeleton of the kind. */
  readonly skeleton?: JsonObject;
  /**
   * Names of field selectors in this version, with their names in the stored version. Default: those of the stored
   * version.
   */
  readonly fieldLabels?: Readonly<Record<string, string>>;
  /** Set if the kind has another name here, for example Project, which is stored as Namespace. */
  readonly names?: ServedNames<T>;
  /** Lists and watches contain only the objects that the user may get. */
  readonly onlyReadable?: true;
  /**
   * Whether the object belongs to the user. Only for kinds of which users get only their own objects, whatever their
   * roles are.
   */
  isOwn?(object: T, user: UserInfo): boolean;
  /** Converts an object of this version to the stored version. The caller sets `apiVersion` and `kind`. */
  convertTo(object: KubeObject): T;
  convertFrom(object: T): KubeObject;
}

export type ResetFields = readonly (readonly string[])[];

/** A phase of deletion in addition to `metadata.finalizers`. */
export interface Finalization<T extends KubeObject = KubeObject> {
  /** Whether the object must not be removed yet. */
  isHeld(object: T): boolean;
  /** Marks an object whose deletion has started. May change `object`. */
  mark(object: T): void;
}

export interface KindDefinition<T extends KubeObject = KubeObject> extends GroupVersionKind {
  /** Warning for clients of this version, which upstream still serves. */
  readonly deprecation?: string;
  readonly plural: string;
  readonly singular: string;
  readonly listKind: string;
  readonly namespaced: boolean;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly verbs: readonly Verb[];
  /** Name of the type in the generated schemas, for example `io.k8s.api.core.v1.Pod`. */
  readonly schemaName: string;
  /**
   * Fields that every object has: structs by value in upstream's type, and lists and maps that are serialized when
   * empty. The server adds these fields, so they have no field manager. Source: the field types of k8s.io/api.
   */
  readonly skeleton?: JsonObject;
  /**
   * A delete returns the deleted object instead of a Status. 'undocumented': the published API documentation specifies
   * a Status. Source: `ReturnDeletedObject` of upstream's registries.
   */
  readonly returnsDeleted?: true | 'undocumented';
  /** Key prefix below `/registry/`, as upstream: `pods`, `minions`, `services/specs`, `deployments`. */
  readonly storagePrefix: string;
  readonly durability?: Durability;
  /** Whether an update only reports that its writer is alive. It is stored with the durability `heartbeat`. */
  isHeartbeat?(object: T, old: Readonly<T>): boolean;
  /**
   * Writes that cluster components may still do when the disk is full, because they keep a node in the cluster: updates
   * of the object or of its status.
   */
  readonly essentialUpdates?: readonly ('object' | 'status')[];
  /** Time to live of objects in seconds, for events. */
  readonly ttlSeconds?: number;
  /** Like `deprecated` of an alias, for the version in which the objects are stored. */
  readonly deprecated?: { readonly since: string; readonly removed: string };
  /** Other versions of the kind. Their objects are stored in the version of this definition. */
  readonly aliases?: readonly KindAlias<T>[];
  /** Served only if `--runtime-config` enables the version, as upstream's beta APIs since 1.24. */
  readonly offByDefault?: true;
  /** Disabled versions as `group/version`; may include the stored one. */
  readonly unserved?: ReadonlySet<string>;
  /** Name rule of the kind. Default: DNS-1123 subdomain. */
  readonly nameRule?: 'dns1123Subdomain' | 'dns1123Label' | 'dns1035Label' | 'pathSegment' | 'ipAddress';
  /**
   * Sets the same defaults as upstream's `SetDefaults_*`. Idempotent; never fails; tolerates missing parents.
   * `isApplied`: the object comes from server-side apply, so nulls are kept for validation.
   */
  setDefaults?(object: T, isApplied?: boolean): void;
  readonly strategy: WriteStrategy<T>;
  /** Set if the kind has a `/status` subresource. */
  readonly statusStrategy?: WriteStrategy<T>;
  /**
   * Field paths that a status write resets, so server-side apply does not own them (upstream's GetResetFields).
   * Default: spec.
   */
  readonly statusResetFields?: ResetFields;
  /**
   * Strategies of other subresources whose body is the kind itself: `approval`, `finalize`, `ephemeralcontainers`,
   * `resize`.
   */
  readonly subresourceStrategies?: Readonly<Record<string, WriteStrategy<T>>>;
  /** A PUT creates a missing object (upstream's AllowCreateOnUpdate). */
  readonly allowCreateOnUpdate?: boolean;
  /** Updates without resourceVersion are allowed (upstream's AllowUnconditionalUpdate). Default: true. */
  readonly allowUnconditionalUpdate?: boolean;
  /** Changes an object when its deletion starts, for example by adding a finalizer. */
  prepareForDelete?(object: T, nowMs: number): void;
  /** Additional phase of deletion, for example the `spec.finalizers` of a namespace. */
  readonly finalization?: Finalization<T>;
  /** Warnings for a delete. `propagation` is undefined if the request has no propagation policy. */
  warningsOnDelete?(propagation: string | undefined): readonly string[];
  /** Propagation policy of deletes that specify none. Default: 'Background'. */
  readonly defaultPropagation?: 'Background' | 'Orphan';
  /**
   * Grace period in seconds for deletes that specify none. Undefined: the object is deleted immediately, whatever the
   * request specifies. Only pods have a grace period.
   */
  defaultGraceSeconds?(object: T): number | undefined;
  readonly columns: readonly Column<T>[];
  /** Error for an unknown field label, if the kind has its own wording upstream. */
  unknownFieldLabel?(field: string): string;
  /** Field selectors in addition to `metadata.name` and `metadata.namespace`. */
  readonly fieldSelectors?: Readonly<Record<string, FieldReader<T>>>;
  readonly scale?: ScaleMapping;
  /**
   * Subresources other than status and scale (`binding`, `eviction`, `token`, `approval`, `log`, `exec` …), for
   * discovery.
   */
  readonly extraSubresources?: readonly {
    readonly name: string;
    readonly kind: string;
    readonly group?: string;
    readonly version?: string;
    readonly verbs: readonly string[];
  }[];
  /** Finalizers may have names without a domain, because upstream defines the kind by a CustomResourceDefinition. */
  readonly anyFinalizers?: true;
  /** Set for custom resources. Replaces the generated schemas of built-in kinds. */
  readonly custom?: CustomKind;
  /** Maximum body size of a create in bytes, for kinds with unauthenticated clients. Default: the server's limit. */
  readonly maxBodyBytes?: number;
  /** Objects are never stored; a handler computes them from the request (TokenReview, SubjectAccessReview …). */
  readonly isComputed?: boolean;
}

/** Schema of one version of a custom resource. */
export interface CustomKind {
  /** Version in which the objects are stored, if that version is served. */
  readonly storageVersion: string | undefined;
  /** `group/version` of all versions, including those that are not served. */
  readonly apiVersions: ReadonlySet<string>;
  /** Prunes a document of this version in place. Returns unknown fields and type errors. */
  coerce(document: JsonObject, stored?: boolean): DecodeFindings;
  /**
   * Sets the defaults of a stored document of this version in place. Defaults above the limit of their size are
   * omitted, so that one object cannot make the list of all objects unreadable.
   */
  setStoredDefaults(document: JsonObject): void;
  /** Schema for server-side apply. */
  readonly mergeSchema: ObjectNode;
  /** Schema for the OpenAPI document of this version. */
  openapi(version: 2 | 3): JsonObject;
  /** Deprecation warning, sent with every response. */
  readonly deprecation: string | undefined;
}

export interface ScaleMapping {
  /** JSON path as in CRDs, for example `.spec.replicas`. */
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  /** JSON path of the label selector. Only custom resources have such a path. */
  readonly selectorPath?: string;
  /** The label selector as text. */
  selector(object: KubeObject): string;
}
