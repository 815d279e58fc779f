/**
 * Brands: types of strings or numbers that the compiler distinguishes. A function such as `storeRevision` validates a
 * value once and brands it. After that, the value is used like a string or number.
 */
import { CodedError } from './errors.ts';

declare const brand: unique symbol;
export type Brand<T, Name extends string> = T & { readonly [brand]: Name };

/** Revision of the store: a positive integer that counts its transactions, or 0 before the first one. */
export type Revision = Brand<number, 'Revision'>;

/** Brands a revision. Throws CodedError 'bad-value'. */
export function storeRevision(value: number): Revision {
  if (!isRevision(value)) throw new CodedError('bad-value', `revision ${value}: must be an integer of at least 0`);
  return value;
}

const isRevision = (value: number): value is Revision => Number.isSafeInteger(value) && value >= 0;

/** Key of an object in the API server's store, `/registry/…`. It differs from an object key, `namespace/name`. */
export type StoreKey = Brand<string, 'StoreKey'>;

/** Brands a store key. Throws CodedError 'bad-value'. */
export function toStoreKey(value: string): StoreKey {
  if (!isStoreKey(value)) throw new CodedError('bad-value', `key ${value}: must begin with /registry/`);
  return value;
}

const isStoreKey = (value: string): value is StoreKey => value.startsWith('/registry/');

/** UID of an API object; '' if the object has none. */
export type Uid = Brand<string, 'Uid'>;

/** Brands the UID in the metadata of an object. */
export const toUid = (value: string | undefined): Uid => (value ?? '') as Uid;

/** Name of a Node; '' for a pod without a node. */
export type NodeName = Brand<string, 'NodeName'>;

/** Brands the name in the metadata of a Node, or in a field that refers to a Node. */
export const toNodeName = (value: string | undefined): NodeName => (value ?? '') as NodeName;
