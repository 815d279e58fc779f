/**
 * Brands: types whose values are strings or numbers, but which the compiler does not mix up. The constructors validate
 * at the border; inside, a branded value is used like its base type.
 */
import { CodedError } from './errors.ts';

declare const brand: unique symbol;
export type Brand<T, Name extends string> = T & { readonly [brand]: Name };

/** Revision of the store: a positive integer that counts its transactions, or 0 before the first one. */
export type Revision = Brand<number, 'Revision'>;

/** Throws CodedError 'bad-value'. */
export function storeRevision(value: number): Revision {
  if (!isRevision(value)) throw new CodedError('bad-value', `revision ${value}: must be an integer of at least 0`);
  return value;
}

const isRevision = (value: number): value is Revision => Number.isSafeInteger(value) && value >= 0;
