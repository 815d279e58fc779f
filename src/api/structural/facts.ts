/** What a schema says anywhere below: where it says nothing of a sort, no walk has to look for it in documents. */
import type { Schema } from './schema.ts';

export interface SchemaFacts {
  /** Resources may be embedded. */
  readonly embeds: boolean;
  /** Something has a default. */
  readonly defaults: boolean;
  /** There are sets, or lists by keys. */
  readonly keyed: boolean;
  /** There are lists by keys, whose order says nothing. */
  readonly maps: boolean;
}

const known = new WeakMap<Schema, SchemaFacts>();

/** Found out once for each schema. */
export function factsOf(schema: Schema): SchemaFacts {
  let facts = known.get(schema);
  if (facts === undefined) {
    facts = readFacts(schema);
    known.set(schema, facts);
  }
  return facts;
}

function readFacts(schema: Schema): SchemaFacts {
  const { items, additional, properties, listType } = schema;
  const below = [...properties.values()];
  if (items !== undefined) below.push(items);
  if (typeof additional === 'object') below.push(additional);
  const facts = below.map(factsOf);
  return {
    embeds: schema.embedded || facts.some(({ embeds }) => embeds),
    defaults: schema.default !== undefined || facts.some(({ defaults }) => defaults),
    keyed: listType === 'set' || listType === 'map' || facts.some(({ keyed }) => keyed),
    maps: listType === 'map' || facts.some(({ maps }) => maps),
  };
}
