/** Fields of a Pod whose values go to the container runtime. An entry declares everything about its field. */
import type { Container, Pod } from '../../generated/core/v1.ts';

/** Objects that a field is read from. */
export interface FieldOwner {
  readonly pod: Pod;
  readonly container: Container;
}

/** Part of a document that is merged into the document: objects are merged, and other values replace existing ones. */
export interface Part {
  readonly [name: string]: unknown;
}

export interface RuntimeField<T> {
  /** Path below the Pod's spec. `[]` matches every item; `containers[]` includes init and ephemeral containers. */
  readonly path: string;
  /** Release of Kubernetes that introduced the field. */
  readonly since: string;
  /** Reads the value for the configuration of the runtime port. Undefined: the configuration has no such value. */
  read(owner: FieldOwner): T;
  /**
   * Returns the part of the OCI runtime specification for the value. `all`: values of the whole table. Absent if the
   * part depends on facts of the host: the builder of the specification then creates it.
   */
  oci?(value: T, all: Part): Part;
  /** Returns the part of the CRI message ContainerConfig for the value. Absent: the message has no field for it. */
  cri?(value: T, all: Part): Part;
}

/** Declares an entry, and infers the type of its value. */
export const field = <T>(entry: RuntimeField<T>): RuntimeField<T> => entry;

type Table = Readonly<Record<string, RuntimeField<unknown>>>;
type ValueOf<F> = F extends RuntimeField<infer T> ? T : never;
type Optional<T extends Table, K extends keyof T> = undefined extends ValueOf<T[K]> ? K : never;

/** Values of a table. A value that may be undefined is an optional property. */
export type ValuesOf<T extends Table> = {
  readonly [K in keyof T as Exclude<K, Optional<T, K>>]: ValueOf<T[K]>;
} & {
  readonly [K in keyof T as Optional<T, K>]?: Exclude<ValueOf<T[K]>, undefined>;
};

export function readFields<T extends Table>(table: T, owner: FieldOwner): ValuesOf<T> {
  const values: Record<string, unknown> = {};
  for (const [name, entry] of Object.entries(table)) {
    const value = entry.read(owner);
    if (value !== undefined) values[name] = value;
  }
  return values as ValuesOf<T>;
}

/** Merges the parts that the entries of `table` produce for `target` into a copy of `document`. */
export function withFields<D extends object, T extends Table>(
  document: D,
  table: T,
  values: ValuesOf<T>,
  target: 'oci' | 'cri',
): D {
  const all = values as unknown as Part;
  let merged: Part = Object.fromEntries(Object.entries(document));
  for (const [name, entry] of Object.entries(table)) {
    const value = all[name];
    if (value !== undefined) merged = merge(merged, entry[target]?.(value, all) ?? {});
  }
  return merged as unknown as D;
}

function merge(document: Part, part: Part): Part {
  const merged: Record<string, unknown> = { ...document };
  for (const [name, value] of Object.entries(part)) {
    const before = merged[name];
    merged[name] = isObject(before) && isObject(value) ? merge(before, value) : value;
  }
  return merged;
}

const isObject = (value: unknown): value is Part =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
