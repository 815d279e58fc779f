/** The shape of the generated type table; see build/generate-schemas.ts. */
export interface GeneratedType {
  /** Required fields. */
  readonly r?: readonly string[];
  /** Fields with their compact types: a scalar name, `#type.name`, `[]` or `{}` and a type. */
  readonly f: Readonly<Record<string, string>>;
}

export type GeneratedTypes = Readonly<Record<string, GeneratedType>>;

/** The documentation of types and fields. Loaded on demand: it is larger than everything else. */
export type Descriptions = Readonly<
  Record<string, { readonly d: string; readonly f: Readonly<Record<string, string>> }>
>;
