/**
 * Golden files: the defaults of a document of each kind, its printed columns, and the errors for wrong values in each
 * of its fields. Explain a changed line in the commit. `UPDATE_GOLDEN=1 node --test test/api/kinds/golden.test.ts`
 * writes the files again.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { JsonObject, JsonValue } from '../../../src/api/meta/object.ts';
import { pruneAndCheck } from '../../../src/api/schema/decode.ts';
import { schemaOfType } from '../../../src/api/schema/index.ts';
import { context, created, type Document, kindNamed, sampleNameOf, storedKinds, texts } from './samples.ts';

const directory = join(import.meta.dirname, 'golden');
const UPDATE = process.env['UPDATE_GOLDEN'] === '1';
/** Fields that the golden files omit. Pod templates have tests of their own. */
const SKIPPED = new Set(['template', 'jobTemplate', 'metadata', 'apiVersion', 'kind', 'status']);
const MAX_DEPTH = 7;

type Path = readonly (string | number)[];

const shown = (path: Path): string =>
  path.map((step, index) => (typeof step === 'number' ? `[${step}]` : index === 0 ? step : `.${step}`)).join('');

/** Paths of the fields of a document whose values the test replaces by wrong ones. */
function* placesOf(value: JsonValue, path: Path): Generator<Path> {
  if (path.length > 0) yield path;
  if (typeof value !== 'object' || value === null || path.length >= MAX_DEPTH) return;
  for (const [key, each] of Object.entries(value)) {
    if (path.length < 2 && SKIPPED.has(key)) continue;
    yield* placesOf(each, [...path, Array.isArray(value) ? Number(key) : key]);
  }
}

function parentOf(document: Document, path: Path): Record<string | number, JsonValue> {
  let current = document as unknown as Record<string | number, JsonValue>;
  for (const step of path.slice(0, -1)) current = current[step] as JsonObject;
  return current;
}

/** Wrong values of the same type as `value`, so that the decoder accepts them. */
function spoilt(value: JsonValue): JsonValue[] {
  if (typeof value === 'string') return ['', '!'];
  if (typeof value === 'number') return [-1, 2_000_000_000];
  if (Array.isArray(value)) return value.length === 0 ? [] : [[], [value[0] as JsonValue, value[0] as JsonValue]];
  return [];
}

function complaints(kindName: string): Record<string, string[]> {
  const kind = kindNamed(kindName);
  const schema = schemaOfType(kind.schemaName);
  assert.ok(schema);
  const good = created(kindName);
  const found: Record<string, string[]> = {};
  const note = (label: string, document: Document, old?: Document): void => {
    if (pruneAndCheck(schema, structuredClone(document)).typeErrors.length > 0) return;
    const errors = texts(kind.strategy.validate?.(document));
    const changes = old === undefined ? [] : texts(kind.strategy.validateUpdate?.(document, old));
    const fresh = changes.filter((each) => !errors.includes(each)).map((each) => `update: ${each}`);
    if (errors.length + fresh.length > 0) found[label] = [...errors, ...fresh];
  };
  for (const path of placesOf(good as unknown as JsonValue, [])) {
    const key = path.at(-1) ?? '';
    const missing = structuredClone(good);
    const parent = parentOf(missing, path);
    const value = parent[key] ?? null;
    if (Array.isArray(parent)) parent.splice(Number(key), 1);
    else delete parent[key];
    note(`without ${shown(path)}`, missing, good);
    for (const wrong of spoilt(value)) {
      const document = structuredClone(good);
      parentOf(document, path)[key] = wrong;
      note(`${shown(path)} = ${JSON.stringify(wrong).slice(0, 200)}`, document, good);
    }
  }
  return found;
}

function goldenOf(kindName: string): object {
  const kind = kindNamed(kindName);
  const document = created(kindName);
  document.metadata['creationTimestamp'] = '2026-01-02T03:00:05Z';
  return {
    names: {
      plural: kind.plural,
      singular: kind.singular,
      shortNames: kind.shortNames ?? [],
      categories: kind.categories ?? [],
      versions: [kind, ...(kind.aliases ?? [])].map(({ group, version }) =>
        group === '' ? version : `${group}/${version}`,
      ),
      storage: kind.storagePrefix,
      status: kind.statusStrategy !== undefined,
      scale: kind.scale !== undefined,
      verbs: kind.verbs,
    },
    table: kind.columns.map((column) => ({
      name: column.name,
      type: column.type,
      ...(column.priority === undefined ? {} : { priority: column.priority }),
      cell: column.cell(document, context.nowMs),
    })),
    created: document,
    complaints: complaints(kindName),
  };
}

for (const kind of storedKinds.map(sampleNameOf)) {
  test(`defaults, columns and errors of ${kind} equal the golden file`, () => {
    const file = join(directory, `${kind}.json`);
    // Formatting as JSON omits undefined fields.
    const actual = `${JSON.stringify(goldenOf(kind), null, 1)}\n`;
    if (UPDATE) {
      mkdirSync(directory, { recursive: true });
      writeFileSync(file, actual);
    }
    assert.deepEqual(JSON.parse(actual), JSON.parse(readFileSync(file, 'utf8')));
  });
}

test('every golden file belongs to a served kind', () => {
  const kinds = storedKinds.map((kind) => `${sampleNameOf(kind)}.json`).sort();
  assert.deepEqual(readdirSync(directory).sort(), kinds);
});
