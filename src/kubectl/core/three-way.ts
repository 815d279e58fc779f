/**
 * Three-way merge of client-side apply. Fields of the manifest replace those of the live object; fields that only the
 * former manifest contained are removed; all other fields are kept. Lists with a merge key are merged by element.
 * Source: k8s.io/apimachinery/pkg/util/strategicpatch, RFC 7386.
 */
import { jsonEqual } from '../../api/meta/equality.ts';
import { resolve, type Schema, type Schemas } from './openapi.ts';

export interface MergeSchema {
  readonly schemas: Schemas;
  readonly root: Schema;
}

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The object that results from applying `manifest`. Without a schema all lists are replaced as a whole. */
export function threeWayMerge(
  former: unknown,
  manifest: unknown,
  live: unknown,
  schema: MergeSchema | undefined,
): unknown {
  return merge(former, manifest, live, schema === undefined ? undefined : new Rules(schema.schemas, schema.root));
}

/** Merge rules of a field from its schema. */
class Rules {
  readonly #schemas: Schemas;
  readonly #schema: Schema;
  readonly strategies: readonly string[];
  readonly mergeKey: string | undefined;

  constructor(schemas: Schemas, schema: Schema) {
    this.#schemas = schemas;
    this.#schema = resolve(schemas, schema);
    this.strategies = schema['x-kubernetes-patch-strategy']?.split(',') ?? [];
    this.mergeKey = schema['x-kubernetes-patch-merge-key'];
  }

  field(name: string): Rules | undefined {
    const { properties, additionalProperties } = this.#schema;
    const found =
      properties !== undefined && Object.hasOwn(properties, name)
        ? properties[name]
        : typeof additionalProperties === 'object'
          ? additionalProperties
          : undefined;
    return found === undefined ? undefined : new Rules(this.#schemas, found);
  }

  get items(): Rules | undefined {
    return this.#schema.items === undefined ? undefined : new Rules(this.#schemas, this.#schema.items);
  }
}

function merge(former: unknown, manifest: unknown, live: unknown, rules: Rules | undefined): unknown {
  if (isFields(manifest)) return mergeFields(isFields(former) ? former : {}, manifest, live, rules);
  if (!Array.isArray(manifest) || !Array.isArray(live) || rules?.strategies.includes('merge') !== true) return manifest;
  const before: readonly unknown[] = Array.isArray(former) ? former : [];
  return rules.mergeKey === undefined
    ? mergeSet(before, manifest, live)
    : mergeList(before, manifest, live, rules.mergeKey, rules.items);
}

function mergeFields(former: Fields, manifest: Fields, live: unknown, rules: Rules | undefined): unknown {
  const before = isFields(live) ? live : {};
  const result = new Map(Object.entries(before));
  for (const name of Object.keys(former)) if (!Object.hasOwn(manifest, name)) result.delete(name);
  for (const [name, value] of Object.entries(manifest)) {
    if (value === null) result.delete(name);
    else {
      const own = (fields: Fields): unknown => (Object.hasOwn(fields, name) ? fields[name] : undefined);
      result.set(name, merge(own(former), value, own(before), rules?.field(name)));
    }
  }
  const merged = Object.fromEntries(result);
  // With the strategy retainKeys (used for unions), a change removes the members that the manifest does not have.
  if (rules?.strategies.includes('retainKeys') === true && !jsonEqual(merged, live))
    return Object.fromEntries(Object.entries(merged).filter(([name]) => Object.hasOwn(manifest, name)));
  return merged;
}

function mergeSet(former: readonly unknown[], manifest: readonly unknown[], live: readonly unknown[]): unknown[] {
  const kept = live.filter((each) => manifest.includes(each) || !former.includes(each));
  return [...kept, ...manifest.filter((each) => !kept.includes(each))];
}

function mergeList(
  former: readonly unknown[],
  manifest: readonly unknown[],
  live: readonly unknown[],
  key: string,
  rules: Rules | undefined,
): unknown[] {
  const keyOf = (each: unknown): unknown => (isFields(each) ? each[key] : undefined);
  const find = (list: readonly unknown[], value: unknown): unknown => list.find((each) => keyOf(each) === value);
  const merged = manifest.map((each) => merge(find(former, keyOf(each)), each, find(live, keyOf(each)), rules));
  const isRetained = (each: unknown): boolean =>
    find(manifest, keyOf(each)) === undefined && find(former, keyOf(each)) === undefined;
  const liveOrder = live.map(keyOf).filter((value) => find(manifest, value) !== undefined);
  const ownOrder = manifest.map(keyOf).filter((value) => find(live, value) !== undefined);
  if (!jsonEqual(liveOrder, ownOrder)) return [...merged, ...live.filter(isRetained)];
  const present = live
    .filter((each) => isRetained(each) || find(manifest, keyOf(each)) !== undefined)
    .map((each) => find(merged, keyOf(each)) ?? each);
  return [...present, ...merged.filter((each) => find(live, keyOf(each)) === undefined)];
}

/** JSON merge patch that turns `live` into `wanted`; undefined if both are equal. */
export function mergePatchFor(live: unknown, wanted: unknown): Fields | undefined {
  const [before, after] = [isFields(live) ? live : {}, isFields(wanted) ? wanted : {}];
  const patch: [string, unknown][] = [];
  for (const name of Object.keys(before)) if (!Object.hasOwn(after, name)) patch.push([name, null]);
  for (const [name, value] of Object.entries(after)) {
    const old = Object.hasOwn(before, name) ? before[name] : undefined;
    if (jsonEqual(old, value)) continue;
    if (isFields(value) && isFields(old)) patch.push([name, mergePatchFor(old, value)]);
    else patch.push([name, value]);
  }
  return patch.length === 0 ? undefined : Object.fromEntries(patch);
}
