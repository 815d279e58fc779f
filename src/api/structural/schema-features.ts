/** Features that a schema uses at any depth. If a feature is unused, documents need no walk for it. */
import type { Schema } from './schema.ts';

export interface SchemaFeatures {
  /** The schema has embedded resources. */
  readonly embeds: boolean;
  /** The schema has defaults. */
  readonly defaults: boolean;
  /** The schema has lists of type set or map. */
  readonly keyed: boolean;
  /** The schema has lists of type map, whose order is not significant. */
  readonly maps: boolean;
}

const known = new WeakMap<Schema, SchemaFeatures>();

/** Computed once per schema. */
export function featuresOf(schema: Schema): SchemaFeatures {
  let facts = known.get(schema);
  if (facts === undefined) {
    facts = readFeatures(schema);
    known.set(schema, facts);
  }
  return facts;
}

function readFeatures(schema: Schema): SchemaFeatures {
  const { items, additional, properties, listType } = schema;
  const below = [...properties.values()];
  if (items !== undefined) below.push(items);
  if (typeof additional === 'object') below.push(additional);
  const facts = below.map(featuresOf);
  return {
    embeds: schema.embedded || facts.some(({ embeds }) => embeds),
    defaults: schema.default !== undefined || facts.some(({ defaults }) => defaults),
    keyed: listType === 'set' || listType === 'map' || facts.some(({ keyed }) => keyed),
    maps: listType === 'map' || facts.some(({ maps }) => maps),
  };
}
