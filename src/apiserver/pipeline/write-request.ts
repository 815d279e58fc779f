/** Input of the write pipeline. */
import type { KubeObject, ObjectMeta } from '../../api/meta/object.ts';
import { ApiError } from '../../api/meta/status.ts';
import type { StrategyContext, UserInfo } from '../../api/registry/definition.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import type { Place } from '../storage/object-store.ts';
import type { ServedKind } from './kinds.ts';
import type { WriteOptions } from './write-options.ts';

export interface WriteRequest {
  readonly kind: ServedKind;
  readonly namespace: string;
  /** Name of the object. '' for creates. */
  readonly name: string;
  readonly subresource: string;
  /** True for an object of a deletecollection. */
  readonly collective?: boolean;
  readonly user: UserInfo;
  /** Remote address of the connection. Undefined for the server's own writes. */
  readonly sourceAddress?: string | undefined;
  /** True for the server's own writes. They skip webhooks, whose failure could keep the server from becoming ready. */
  readonly own?: boolean;
  readonly options: WriteOptions;
  /** Warnings for the client, sent as `Warning` headers. */
  readonly warnings: string[];
  /** Deadline in monotonic milliseconds. Undefined: no deadline. */
  readonly deadlineMs?: number | undefined;
  /** Length of the request body in bytes. Set when the body has been read. */
  bodyBytes?: number;
  /** Adds an annotation to the audit event. */
  readonly annotate?: ((key: string, value: string, level?: 'Request') => void) | undefined;
}

export function placeOf(request: Pick<WriteRequest, 'kind' | 'namespace'>, name: string): Place {
  const { definition } = request.kind;
  const { view } = request.kind;
  const namespace = definition.namespaced ? request.namespace : '';
  return { definition, namespace, name, ...(view === undefined ? {} : { view }) };
}

/** Alphabet without vowels and without characters that look alike, as upstream's rand.String. */
const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';

export function randomSuffix(random: RandomSource, length: number): string {
  let text = '';
  for (let index = 0; index < length; index++) {
    text += SUFFIX_ALPHABET[Math.floor(random.random() * SUFFIX_ALPHABET.length)] ?? '';
  }
  return text;
}

export function strategyContext(
  context: { readonly clock: Clock; readonly random: RandomSource },
  { user, sourceAddress }: Pick<WriteRequest, 'user' | 'sourceAddress'>,
): StrategyContext {
  return {
    nowMs: context.clock.nowMs(),
    user,
    sourceAddress,
    newUid: () => context.random.uuid(),
    randomSuffix: (length) => randomSuffix(context.random, length),
  };
}

export type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Writable view of the metadata. */
export function metadataOf(object: KubeObject): Mutable<ObjectMeta> {
  object.metadata ??= {};
  return object.metadata;
}

export const conflictMessage =
  'the object has been modified; please apply your changes to the latest version and try again';

export function methodNotAllowed(): ApiError {
  return new ApiError('MethodNotAllowed', 'the server does not allow this method on the requested resource', {});
}
