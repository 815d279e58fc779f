/** Admission as the request pipeline uses it. Implemented in `admission/`. */
import type { GroupVersionKind, KubeObject } from '../../api/meta/object.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import type { Guard } from '../../store/port.ts';
import type { ServedKind } from './kinds.ts';
import type { DeleteOptions, WriteOptions } from './write-options.ts';
import type { WriteRequest } from './write-request.ts';

export interface AdmissionRequest {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';
  readonly kind: ServedKind;
  readonly subresource: string;
  readonly namespace: string;
  /** Name of the object. '' while the name is unknown (generateName). */
  readonly name: string;
  /** True for an object of a deletecollection. As upstream, webhooks and policies do not receive the name. */
  readonly collective?: boolean;
  /**
   * The object to be stored; absent for DELETE. For subresources whose body is another kind (Eviction, TokenRequest),
   * the body is in `body`.
   */
  readonly object?: KubeObject;
  /** The stored object; absent when the object itself is created. */
  readonly old?: KubeObject;
  readonly body?: unknown;
  /** Kind of `body`, if webhooks and policies receive it instead of the object. */
  readonly bodyKind?: GroupVersionKind;
  /** The body that corresponds to the stored object. */
  readonly oldBody?: unknown;
  /**
   * True for a consequence of a request that webhooks and policies have already admitted (the delete of an eviction),
   * and for the server's own writes.
   */
  readonly derived?: boolean;
  /** True if there is a body but no stored object: only plug-ins with `takesBodies` run. */
  readonly bodyOnly?: boolean;
  readonly user: UserInfo;
  readonly dryRun: boolean;
  readonly options?: WriteOptions | DeleteOptions;
  /** Warnings for the client, sent as `Warning` headers. */
  readonly warnings: string[];
  /** Adds an annotation to the audit event. Undefined: the request is not audited. */
  readonly annotate?: Annotate | undefined;
  /** Records field ownership of all changes so far. Webhooks and policies call it before they change the object. */
  noteOwners?(): Promise<void>;
  /** Deadline in monotonic milliseconds. Undefined: no deadline. */
  readonly deadlineMs?: number | undefined;
  /** Guard for the commit, set by the plug-in that has checked the namespace of a new object. */
  namespaceGuard?: NamespaceGuard;
  /** Reservations that plug-ins have made for the object. */
  readonly reservations?: Reservation[];
}

/**
 * State of the namespace at the time of the check. The object is stored only if the namespace has not changed since.
 */
export interface NamespaceGuard {
  readonly guard: Guard;
  /**
   * Reads the namespace from the store and checks it again. Throws an ApiError if the namespace does not allow creates
   * any more.
   */
  renew(): Promise<NamespaceGuard>;
}

export interface Reservation {
  /** Call when the object has been stored. */
  used(): void;
  /** Call when the object will not be stored. */
  refund(): Promise<void>;
}

/** Stores an admitted object and settles its reservations. `store` may report that nothing was stored, or fail. */
export function storeAdmitted<T>(
  { reservations = [] }: AdmissionRequest,
  store: () => Promise<T>,
  isStored: (result: T) => boolean,
): Promise<T> {
  return reservations.length === 0 ? store() : storeReserved(reservations, store, isStored);
}

async function storeReserved<T>(
  reservations: Reservation[],
  store: () => Promise<T>,
  isStored: (result: T) => boolean,
): Promise<T> {
  let stored = false;
  try {
    const result = await store();
    stored = isStored(result);
    return result;
  } finally {
    for (const reservation of reservations.splice(0)) {
      if (stored) reservation.used();
      else await reservation.refund();
    }
  }
}

/** Refunds the reservations of a request that failed before its object was stored. */
export async function refundReservations({ reservations = [] }: AdmissionRequest): Promise<void> {
  for (const reservation of reservations.splice(0)) await reservation.refund();
}

/** Adds an annotation to the audit event. `level`: lowest audit level at which the annotation is recorded. */
export type Annotate = (key: string, value: string, level?: 'Request') => void;

/**
 * Admission of one server. The methods throw or reject with the ApiError of a rejection. They are asynchronous only if
 * a plug-in has to wait.
 */
export interface Admission {
  mutate(request: AdmissionRequest): void | Promise<void>;
  validate(request: AdmissionRequest): void | Promise<void>;
}

/** Fields of an AdmissionRequest that every write takes from its request. */
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

/** Runs webhooks for a review request. They may change `object` in place. Throws an ApiError if they reject it. */
export async function admitReview(admission: Admission, request: WriteRequest, object: KubeObject): Promise<void> {
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

/** Runs webhooks and policies for `body`. They may change `body` in place. Throws an ApiError if they reject it. */
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
