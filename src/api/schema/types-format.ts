/** Format of the generated type table; see build/generate-schemas.ts. */
export interface GeneratedType {
  /** Names of the required fields. */
  readonly r?: readonly string[];
  /** Fields with their compact types: the name of a scalar or `#type.name`, after any number of `[]` and `{}`. */
  readonly f: Readonly<Record<string, string>>;
}

export type GeneratedTypes = Readonly<Record<string, GeneratedType>>;

/** Documentation of types and fields. It is the largest part of the executable, so it is loaded on demand. */
export type Descriptions = Readonly<
  Record<string, { readonly d: string; readonly f: Readonly<Record<string, string>> }>
>;
