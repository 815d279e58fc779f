/** The admission port of the request pipeline; `admission/` implements it. */
import type { GroupVersionKind, KubeObject } from '../../../api/meta/object.ts';
import type { UserInfo } from '../../../api/registry/definition.ts';
import type { Guard } from '../../../core/mvcc/port.ts';
import type { ServedKind } from './kinds.ts';
import type { DeleteOptions, WriteOptions } from './options.ts';
import type { WriteRequest } from './write-request.ts';

export interface AdmissionRequest {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';
  readonly kind: ServedKind;
  readonly subresource: string;
  readonly namespace: string;
  /** '' while it is not known (generateName). */
  readonly name: string;
  /** Part of a deletecollection: webhooks and policies receive no name, as upstream. */
  readonly collective?: boolean;
  /**
   * As it is to be stored; absent for DELETE. A body of a sub-resource that is not the object itself (Eviction,
   * TokenRequest) is in `body`.
   */
  readonly object?: KubeObject;
  /** The object as it is; absent for CREATE of the object itself. */
  readonly old?: KubeObject;
  readonly body?: unknown;
  /** What `body` is, where webhooks and policies are to see it in the object's place. */
  readonly bodyKind?: GroupVersionKind;
  /** What `body` would be of the object as it is. */
  readonly oldBody?: unknown;
  /**
   * The consequence of a request that webhooks and policies have judged already (the delete of an eviction), or this
   * server's own.
   */
  readonly derived?: boolean;
  /** Concerns `body` only: runs webhooks and policies alone. */
  readonly bodyOnly?: boolean;
  readonly user: UserInfo;
  readonly dryRun: boolean;
  readonly options?: WriteOptions | DeleteOptions;
  /** Sent to the client as `Warning` headers. */
  readonly warnings: string[];
  /** Adds to what the audit log says of the request; undefined: the request is not audited. */
  readonly annotate?: Annotate | undefined;
  /** Tracks field ownership up to here; webhooks and policies call it before they change the object. */
  noteOwners?(): Promise<void>;
  /** When the request has to have ended, in monotonic milliseconds; undefined: it has time. */
  readonly deadlineMs?: number | undefined;
  /** Set by the plug-in that has found the namespace of a new object active. */
  namespaceGuard?: NamespaceGuard;
  /** What plug-ins have set aside for the object. */
  readonly reservations?: Reservation[];
}

/** The namespace as a plug-in has seen it. The object is stored only while that state holds. */
export interface NamespaceGuard {
  readonly guard: Guard;
  /** Reads the namespace from the store. Throws the refusal when nothing may be created in it any more. */
  renew(): Promise<NamespaceGuard>;
}

export interface Reservation {
  /** The object is stored. */
  used(): void;
  /** It is not, after all. */
  refund(): Promise<void>;
}

/** Stores what was admitted and settles what was set aside for it. `store` may say that nothing was stored, or fail. */
export function storeAdmitted<T>(
  { reservations = [] }: AdmissionRequest,
  store: () => Promise<T>,
  isStored: (result: T) => boolean,
): Promise<T> {
  return reservations.length === 0 ? store() : storeReserved(reservations, store, isStored);
}

async function storeReserved<T>(
  reservations: readonly Reservation[],
  store: () => Promise<T>,
  isStored: (result: T) => boolean,
): Promise<T> {
  let stored = false;
  try {
    const result = await store();
    stored = isStored(result);
    return result;
  } finally {
    for (const reservation of reservations) {
      if (stored) reservation.used();
      else await reservation.refund();
    }
  }
}

/** `level`: of the audit log, from which on it is said. */
export type Annotate = (key: string, value: string, level?: 'Request') => void;

/** Both throw, or reject with, the refusal. Most plug-ins are synchronous; only those that wait return a promise. */
export interface Admission {
  mutate(request: AdmissionRequest): void | Promise<void>;
  validate(request: AdmissionRequest): void | Promise<void>;
}

/** What admission learns of every write of an object from its request. */
export function admissionOfWrite(request: WriteRequest) {
  return {
    kind: request.kind,
    subresource: request.subresource,
    namespace: request.namespace,
    name: request.name,
    user: request.user,
    dryRun: request.options.dryRun,
    options: request.options,
    warnings: request.warnings,
    annotate: request.annotate,
    deadlineMs: request.deadlineMs,
    reservations: [],
    derived: request.own === true,
  } satisfies Partial<AdmissionRequest>;
}

/** Webhooks judge the question that `object` is, and may change it, in place. Throws an ApiError when it is refused. */
export async function admitQuestion(admission: Admission, request: WriteRequest, object: KubeObject): Promise<void> {
  const review: AdmissionRequest = {
    operation: 'CREATE',
    kind: request.kind,
    subresource: '',
    namespace: request.namespace,
    name: object.metadata?.name ?? '',
    object,
    bodyOnly: true,
    user: request.user,
    dryRun: request.options.dryRun,
    options: request.options,
    warnings: request.warnings,
    annotate: request.annotate,
    deadlineMs: request.deadlineMs,
  };
  await admission.mutate(review);
  await admission.validate(review);
}

/** Webhooks and policies judge `body`, and webhooks may change it, in place. Throws an ApiError when it is refused. */
export async function admitBody(
  admission: Admission,
  request: Omit<WriteRequest, 'options'> & Partial<Pick<WriteRequest, 'options'>>,
  operation: 'CREATE' | 'CONNECT',
  bodyKind: GroupVersionKind,
  body: object,
): Promise<void> {
  const review: AdmissionRequest = {
    operation,
    kind: request.kind,
    subresource: request.subresource,
    namespace: request.namespace,
    name: request.name,
    body,
    bodyKind,
    bodyOnly: true,
    user: request.user,
    dryRun: request.options?.dryRun ?? false,
    ...(request.options === undefined ? {} : { options: request.options }),
    warnings: request.warnings,
    annotate: request.annotate,
    deadlineMs: request.deadlineMs,
  };
  await admission.mutate(review);
  await admission.validate(review);
}
