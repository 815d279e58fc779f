import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validateObjectMeta } from '../../../src/api/meta/validation.ts';
import { builtinKinds, kindByGvk, kindByPath, subresourceKinds } from '../../../src/api/registry/index.ts';
import { pruneAndCheck } from '../../../src/api/schema/decode.ts';
import { schemaOfType } from '../../../src/api/schema/index.ts';
import { context, created, deepFreeze, defaulted, sample, sampleNameOf, storedKinds, texts } from './samples.ts';

for (const kind of storedKinds) {
  test(`${sampleNameOf(kind)}: a valid document passes defaulting, validation and printing`, () => {
    const document = defaulted(sampleNameOf(kind));
    const schema = schemaOfType(kind.schemaName);
    assert.ok(schema);
    assert.deepEqual(pruneAndCheck(schema, document), { unknownFields: [], typeErrors: [] });
    assert.deepEqual(texts(validateObjectMeta(document.metadata, kind)), []);
    kind.strategy.prepareForCreate?.(document, context);
    assert.deepEqual(texts(kind.strategy.validate?.(document)), []);
    assert.deepEqual(pruneAndCheck(schema, structuredClone(document)), { unknownFields: [], typeErrors: [] });
    const updated = structuredClone(document);
    kind.strategy.prepareForUpdate?.(updated, document, context);
    assert.deepEqual(updated, document, 'an update that changes nothing changes nothing');
    assert.deepEqual(texts(kind.strategy.validateUpdate?.(updated, document)), []);
    kind.statusStrategy?.prepareForUpdate?.(updated, document, context);
    assert.deepEqual(texts(kind.statusStrategy?.validateUpdate?.(updated, document)), []);
  });

  test(`${sampleNameOf(kind)}: defaulting is idempotent and tolerates missing parents`, () => {
    const once = defaulted(sampleNameOf(kind));
    const twice = structuredClone(once);
    kind.setDefaults?.(twice);
    assert.deepEqual(twice, once);
    const empty = { apiVersion: once['apiVersion'], kind: kind.kind, metadata: { name: 'x' } };
    kind.setDefaults?.(empty as never);
    const again = structuredClone(empty);
    kind.setDefaults?.(again as never);
    assert.deepEqual(again, empty);
  });

  test(`${sampleNameOf(kind)}: validation, columns and selectors never change the object and never throw`, () => {
    for (const document of [deepFreeze(created(sampleNameOf(kind))), deepFreeze({ metadata: {} })]) {
      kind.strategy.validate?.(document);
      kind.strategy.validateUpdate?.(document, document);
      kind.strategy.warnings?.(document, undefined);
      kind.statusStrategy?.validateUpdate?.(document, document);
      for (const strategy of Object.values(kind.subresourceStrategies ?? {}))
        strategy.validateUpdate?.(document, document);
      for (const column of kind.columns) {
        const cell = column.cell(document, context.nowMs);
        const type = column.type === 'date' ? 'string' : column.type === 'integer' ? 'number' : column.type;
        if (type !== 'string') assert.equal(typeof cell, type, column.name);
      }
      for (const [field, read] of Object.entries(kind.fieldSelectors ?? {})) {
        assert.equal(typeof read(document), 'string', field);
      }
      kind.scale?.selector(document);
      kind.defaultGraceSeconds?.(document);
    }
  });

  test(`${sampleNameOf(kind)}: a spec update keeps the status and a status update keeps the spec`, () => {
    const { statusStrategy } = kind;
    if (statusStrategy === undefined) return;
    const old = created(sampleNameOf(kind));
    const spec = structuredClone(old);
    spec['status'] = { fromClient: true };
    kind.strategy.prepareForUpdate?.(spec, old, context);
    assert.deepEqual(spec['status'], old['status']);
    const status = structuredClone(old);
    status['spec'] = { fromClient: true };
    statusStrategy.prepareForUpdate?.(status, old, context);
    assert.deepEqual(status['spec'], old['spec']);
  });
}

test('finds registered kinds by name and by path in every version', () => {
  assert.equal(kindByGvk({ group: 'apps', version: 'v1', kind: 'Deployment' })?.kind.plural, 'deployments');
  assert.equal(kindByPath('', 'v1', 'pods')?.kind.kind, 'Pod');
  assert.equal(kindByPath('events.k8s.io', 'v1', 'events')?.alias?.group, 'events.k8s.io');
  assert.equal(kindByPath('', 'v1', 'events')?.alias, undefined);
  assert.equal(kindByGvk({ group: 'policy', version: 'v1', kind: 'Eviction' })?.kind.isComputed, true);
  assert.equal(kindByPath('policy', 'v1', 'evictions'), undefined);
  assert.equal(kindByPath('', 'v1', '__proto__'), undefined);
});

test('gives each kind its own path, store prefix and short names', () => {
  const paths = builtinKinds.map((kind) => `${kind.group}/${kind.version}/${kind.plural}`);
  assert.equal(new Set(paths).size, paths.length);
  const prefixes = storedKinds.map((kind) => kind.storagePrefix);
  assert.equal(new Set(prefixes).size, prefixes.length);
  // The watch cache distinguishes kinds by at most two path segments.
  for (const prefix of prefixes) assert.ok(prefix.split('/').length <= 2, prefix);
  // InstallPlan and IPAddress both have the short name `ip`, as in upstream; clients use the first kind in discovery.
  const short = storedKinds.filter(({ kind }) => kind !== 'IPAddress').flatMap((kind) => kind.shortNames ?? []);
  assert.equal(new Set(short).size, short.length);
  for (const kind of subresourceKinds) assert.ok(kind.isComputed);
});

test('returns a fresh sample for each call', () => {
  assert.notEqual(sample('Pod'), sample('Pod'));
});
