import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject, JsonValue } from '../../../../src/api/meta/object.ts';
import { isApiError } from '../../../../src/api/meta/status.ts';
import { schemaOf } from '../../../../src/api/schema/index.ts';
import { applyServerSide, trackUpdate } from '../../../../src/apiserver/core/patch/index.ts';
import { Choices } from './choices.ts';

const schema = schemaOf({ group: '', version: 'v1', kind: 'Pod' });
const SUBJECT = { apiVersion: 'v1', kind: 'Pod' };

/** A pod with all types of containers: map, set, keyed list in a keyed list, atomic list, structure. */
function randomPod(choices: Choices): JsonObject {
  const labels = choices.some(['a', 'b', 'c'], 0, 3).map((key) => [key, choices.one(['1', '2'])] as const);
  const env = (): JsonObject[] =>
    choices.some(['X', 'Y'], 1, 2).map((name) => ({ name, value: choices.one(['1', '2']) }));
  const container = (name: string): JsonObject => ({
    name,
    ...(choices.chance(0.6) ? { image: choices.one(['i', 'j']) } : {}),
    ...(choices.chance(0.4) ? { args: choices.some(['1', '2'], 1, 2) } : {}),
    ...(choices.chance(0.4) ? { env: env() } : {}),
  });
  const containers = choices.some(['p', 'q', 'r'], 0, 3).map(container);
  return {
    ...SUBJECT,
    metadata: {
      name: 'x',
      ...(labels.length > 0 ? { labels: Object.fromEntries(labels) } : {}),
      ...(choices.chance(0.4) ? { finalizers: choices.some(['f/1', 'f/2'], 1, 2) } : {}),
    },
    ...(containers.length > 0 || choices.chance(0.5)
      ? {
          spec: {
            ...(choices.chance(0.5) ? { nodeName: choices.one(['n', 'm']) } : {}),
            ...(choices.chance(0.3) ? { dnsConfig: { nameservers: [choices.one(['1.1.1.1', '2.2.2.2'])] } } : {}),
            ...(containers.length > 0 ? { containers } : {}),
          },
        }
      : {}),
  };
}

/** Oracle: all values of the random pods by their paths, hand-written without a schema. */
function leaves(pod: JsonObject): Map<string, string> {
  const found = new Map<string, string>();
  const walk = (value: JsonValue, path: string): void => {
    if (Array.isArray(value)) {
      if (path.endsWith('f:finalizers')) for (const each of value) found.set(`${path} v:${JSON.stringify(each)}`, '');
      else if (path.endsWith('f:containers') || path.endsWith('f:env')) {
        for (const each of value) walk(each, `${path} k:{"name":${JSON.stringify((each as JsonObject)['name'])}}`);
      } else found.set(path, JSON.stringify(value));
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, own] of Object.entries(value)) {
        if (key !== 'managedFields') walk(own, path === '' ? `f:${key}` : `${path} f:${key}`);
      }
    } else found.set(path, JSON.stringify(value));
  };
  walk(pod, '');
  for (const path of ['f:apiVersion', 'f:kind', 'f:metadata f:name']) found.delete(path);
  return found;
}

/** Manager → owned paths, including those of list items and maps. */
function owners(pod: JsonObject | undefined): Map<string, Set<string>> {
  const result = new Map<string, Set<string>>();
  const entries = ((pod?.['metadata'] as JsonObject | undefined)?.['managedFields'] ?? []) as JsonObject[];
  for (const entry of entries) {
    const paths = new Set<string>();
    const walk = (node: JsonObject, path: string): void => {
      const below = Object.keys(node).filter((key) => key !== '.');
      if (path !== '' && (below.length === 0 || Object.hasOwn(node, '.'))) paths.add(path);
      for (const key of below) walk(node[key] as JsonObject, path === '' ? key : `${path} ${key}`);
    };
    walk(entry['fieldsV1'] as JsonObject, '');
    result.set(`${String(entry['manager'])} ${String(entry['operation'])}`, paths);
  }
  return result;
}

const facts = (manager: string) => ({ manager, schema, apiVersion: 'v1', nowIso: '2026-01-01T00:00:00Z' });
const withoutFields = (pod: JsonObject): JsonObject => {
  const { managedFields: _fields, ...metadata } = pod['metadata'] as JsonObject;
  return { ...pod, metadata };
};

/** Objects without field owners: an empty object, one with structures and nulls, and one with values. */
const SKELETONS: readonly JsonObject[] = [
  {},
  { metadata: { creationTimestamp: null }, spec: { containers: null, securityContext: {} }, status: {} },
  { spec: { nodeSelector: { a: 'b' }, containers: [{ name: 'a', image: 'x', ports: null }] }, a: { b: {} }, b: null },
];

describe('field ownership', () => {
  it('ownership of a changed field moves to the manager of the update; other ownership stays', () => {
    for (let seed = 1; seed <= 400; seed++) {
      const choices = new Choices(seed);
      let live: JsonObject | undefined;
      for (let step = 0; step < 6; step++) {
        const manager = choices.one(['one', 'two', 'three']);
        const updated = randomPod(choices);
        const before = owners(live);
        const next = trackUpdate({ ...facts(manager), live, updated });
        const after = owners(next);
        const [old, now] = [live === undefined ? new Map<string, string>() : leaves(live), leaves(updated)];
        const context = `seed ${seed} step ${step}: ${manager}\n${JSON.stringify(live)}\n${JSON.stringify(next)}`;
        for (const path of new Set([...old.keys(), ...now.keys()])) {
          const owning = [...after].filter(([, paths]) => paths.has(path)).map(([name]) => name);
          const owned = [...before].filter(([, paths]) => paths.has(path)).map(([name]) => name);
          if (!now.has(path)) assert.deepEqual(owning, [], `${context}\nremoved ${path}`);
          else if (old.get(path) !== now.get(path))
            assert.deepEqual(owning, [`${manager} Update`], `${context}\nchanged ${path}`);
          else assert.deepEqual(owning, owned, `${context}\nkept ${path}`);
        }
        live = next;
      }
    }
  });

  it('tracks a new object like an update of an empty object', () => {
    for (let seed = 1; seed <= 300; seed++) {
      const choices = new Choices(seed);
      const pod = choices.chance(0.5) ? randomPod(choices) : choices.object(3, false);
      const filled = { name: 'a', namespace: 'b', uid: 'c', creationTimestamp: '2026-01-01T00:00:00Z', generation: 1 };
      const metadata = choices.chance(0.5) ? { ...filled, ...(pod['metadata'] as JsonObject | undefined) } : filled;
      const updated: JsonObject = choices.chance(0.9) ? { ...SUBJECT, ...pod, metadata } : pod;
      for (const known of [schema, undefined]) {
        const options = { ...facts('one'), schema: known, updated };
        for (const skeleton of SKELETONS) {
          // Compared as text, because the order of the elements matters.
          assert.equal(
            JSON.stringify(trackUpdate({ ...options, skeleton, live: undefined })),
            JSON.stringify(trackUpdate({ ...options, live: { metadata: {}, ...skeleton } })),
            `seed ${seed}: ${JSON.stringify({ updated, skeleton })}`,
          );
        }
      }
    }
  });

  it('preserved unknown fields, including their containers, are owned by their creator', () => {
    const updated = {
      ...SUBJECT,
      metadata: { name: 'x' },
      kept: { a: '1', inner: { b: '2' } },
      spec: { nodeName: 'n' },
    };
    // Ownership as kube-apiserver 1.20 records it.
    const expected = { '.': {}, 'f:a': {}, 'f:inner': { '.': {}, 'f:b': {} } };
    for (const live of [undefined, SUBJECT]) {
      const tracked = trackUpdate({ ...facts('one'), schema, live, updated }) as unknown as {
        metadata: { managedFields: { fieldsV1: Record<string, unknown> }[] };
      };
      assert.deepEqual(
        tracked.metadata.managedFields.map(({ fieldsV1 }) => fieldsV1['f:kept']),
        [expected],
      );
    }
  });

  it('an apply changes only fields of its manager, and conflicts exactly with different values of other managers', () => {
    let conflicts = 0;
    for (let seed = 1; seed <= 600; seed++) {
      const choices = new Choices(seed);
      let live: JsonObject | undefined;
      for (let step = 0; step < 6; step++) {
        const manager = choices.one(['one', 'two', 'three']);
        if (choices.chance(0.3)) {
          live = trackUpdate({ ...facts(manager), live, updated: randomPod(choices) });
          continue;
        }
        const applied = randomPod(choices);
        const force = choices.chance(0.5);
        const wanted = leaves(applied);
        const old = live === undefined ? new Map<string, string>() : leaves(live);
        const before = owners(live);
        const self = `${manager} Apply`;
        const foreign = new Set([...before].filter(([name]) => name !== self).flatMap(([, paths]) => [...paths]));
        const disputed = [...wanted].filter(([path, value]) => foreign.has(path) && old.get(path) !== value);
        const others = [...before].filter(([name]) => name !== self);
        const claims = disputed.flatMap(([path]) => others.filter(([, paths]) => paths.has(path)));
        const context = `seed ${seed} step ${step}: ${manager} ${JSON.stringify(applied)}\n${JSON.stringify(live)}`;
        let next: JsonObject;
        try {
          next = applyServerSide({ ...facts(manager), live, applied, force });
        } catch (error) {
          assert.ok(isApiError(error, 'Conflict') && !force, `${context}\n${error}`);
          assert.ok(disputed.length > 0, `${context}\n${error}`);
          assert.equal(error.details?.causes?.length, claims.length, `${context}\n${error}`);
          conflicts++;
          continue;
        }
        assert.ok(force || disputed.length === 0, `${context}\nno conflict on ${disputed}`);
        const now = leaves(next);
        const after = owners(next);
        for (const [path, value] of wanted) {
          assert.equal(now.get(path), value, `${context}\n${path}`);
          assert.ok(after.get(self)?.has(path), `${context}\n${path} is not owned`);
        }
        const dropped = [...(before.get(self) ?? [])].filter((path) => !wanted.has(path));
        // An item is removed with the last manager that owns the item itself, whatever fields in it have owners.
        const doomed = dropped.filter((path) => /k:[^ ]*$/.test(path) && !foreign.has(path) && !covers(wanted, path));
        for (const [path, value] of old) {
          if (wanted.has(path)) continue;
          if (dropped.includes(path)) {
            const stays = foreign.has(path) && !doomed.some((item) => path.startsWith(`${item} `));
            assert.equal(now.has(path), stays, `${context}\n${path} was dropped`);
          } else if (foreign.has(path) && now.has(path)) {
            assert.equal(now.get(path), value, `${context}\n${path} changed`);
          }
        }
        for (const path of now.keys())
          assert.ok(wanted.has(path) || old.has(path), `${context}\n${path} came from nowhere`);
        // All owned paths exist.
        for (const [name, paths] of after) {
          for (const path of paths) {
            const present = now.has(path) || [...now.keys()].some((each) => each.startsWith(`${path} `));
            assert.ok(present || isEmptyAt(next, path), `${context}\n${name} owns ${path}, which is gone`);
          }
        }
        assert.deepEqual(
          applyServerSide({ ...facts(manager), nowIso: '2027-01-01T00:00:00Z', live: next, applied, force }),
          next,
          `${context}\nnot idempotent`,
        );
        live = next;
      }
    }
    assert.ok(conflicts > 100, `only ${conflicts} conflicts`);
  });

  it('field ownership is the same after a create by apply and after a forced apply', () => {
    for (let seed = 1; seed <= 200; seed++) {
      const choices = new Choices(seed);
      const applied = randomPod(choices);
      const created = applyServerSide({ ...facts('me'), live: undefined, applied, force: false });
      assert.deepEqual(leaves(created), leaves(applied));
      assert.deepEqual(withoutFields(created), applied);
    }
  });
});

/** Reports whether one of `paths` is below `item`. */
function covers(paths: ReadonlyMap<string, string>, item: string): boolean {
  return [...paths.keys()].some((path) => path.startsWith(`${item} `));
}

/** Reports whether the value at the path is an empty structure or list. */
function isEmptyAt(pod: JsonObject, path: string): boolean {
  let value: JsonValue | undefined = pod;
  for (const element of path.split(' ')) {
    if (element.startsWith('f:')) value = (value as JsonObject | undefined)?.[element.slice(2)];
    else if (element.startsWith('k:') && Array.isArray(value)) {
      const key = JSON.parse(element.slice(2)) as JsonObject;
      value = value.find((item) => (item as JsonObject)['name'] === key['name']);
    }
  }
  return typeof value === 'object' && value !== null;
}

it('a manager that writes its own fields again keeps its entry unchanged', () => {
  const facts = { manager: 'me', apiVersion: 'v1', schema };
  const made = trackUpdate({ ...facts, live: undefined, updated: pod('1'), nowIso: '2026-01-01T00:00:00Z' });
  const live = JSON.parse(JSON.stringify(made)) as JsonObject;
  const later = '2026-01-01T00:00:05Z';
  const written = trackUpdate({ ...facts, live, updated: pod('2'), nowIso: later });
  const entryOf = (object: JsonObject) =>
    (object['metadata'] as { managedFields: [{ time: string; fieldsV1: JsonValue }] }).managedFields[0];
  assert.equal(entryOf(written).fieldsV1, entryOf(live).fieldsV1);
  assert.equal(entryOf(written).time, later);

  function pod(value: string): JsonObject {
    return { ...SUBJECT, metadata: { name: 'x', annotations: { n: value }, labels: { l: 'm' } } };
  }
});

it('a managedFields entry that contains only the name stays until its manager applies', () => {
  const seed = (manager: string): JsonObject => ({
    manager,
    operation: 'Apply',
    apiVersion: 'v1',
    fieldsType: 'FieldsV1',
    fieldsV1: { 'f:metadata': { 'f:name': {} } },
  });
  const pod = (more: JsonObject = {}): JsonObject => ({ ...SUBJECT, metadata: { name: 'x', uid: 'u', ...more } });
  const created = trackUpdate({ ...facts('creator'), live: undefined, updated: pod({ labels: { a: '1' } }) });
  const seeded = trackUpdate({
    ...facts('janitor'),
    live: created,
    updated: pod({ labels: { a: '1' }, managedFields: [seed('controller')] }),
  });
  assert.deepEqual((seeded['metadata'] as JsonObject)['managedFields'], [seed('controller')]);
  const touched = trackUpdate({ ...facts('other'), live: seeded, updated: pod({ labels: { a: '1', b: '1' } }) });
  assert.deepEqual(
    owners(touched),
    new Map([
      ['controller Apply', new Set(['f:metadata f:name'])],
      ['other Update', new Set(['f:metadata f:labels f:b'])],
    ]),
  );
  const applied = applyServerSide({
    ...facts('controller'),
    live: seeded,
    applied: pod({ labels: { c: '1' } }),
    force: true,
  });
  assert.deepEqual([...owners(applied).keys()], ['controller Apply']);
  assert.equal(owners(applied).get('controller Apply')?.has('f:metadata f:name'), false);
  assert.equal(owners(applied).get('controller Apply')?.has('f:metadata f:labels f:c'), true);
});
