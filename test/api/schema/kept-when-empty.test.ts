/** Compares kept-when-empty.ts with the protobuf table, which was extracted from upstream's struct tags. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { typeNames, typeOf } from '../../../src/api/schema/index.ts';
import { keptWhenEmpty } from '../../../src/api/schema/kept-when-empty.ts';
import { indexOfMessage, messageAt } from '../../../src/apiserver/http/protobuf/field-table.ts';

const SCALARS = /^(?:string|boolean|int32|int64)$/;

test("keeps the same empty fields as Go with upstream's struct tags", () => {
  let compared = 0;
  for (const name of typeNames()) {
    const kept = keptWhenEmpty(name);
    const index = indexOfMessage(name);
    const type = typeOf(name);
    if (kept === undefined || index === undefined || type === undefined) continue;
    for (const field of messageAt(index).values()) {
      const declared = type.f[field.name] ?? '';
      if (field.shape !== 'single' || !SCALARS.test(declared)) continue;
      const required: boolean = type.r?.includes(field.name) === true;
      // A few fields are required and have omitempty; validation rejects them when they are empty.
      if (required && field.omitZero) continue;
      assert.equal(kept.has(field.name) || required, !field.omitZero, `${name}.${field.name}`);
      compared++;
    }
    for (const field of kept) assert.ok(Object.hasOwn(type.f, field), `${name} has no ${field}`);
  }
  assert.ok(compared > 800, String(compared));
});

test('the table of fields that are kept when empty contains only types of its packages', () => {
  assert.equal(keptWhenEmpty('com.example.v1.Thing'), undefined);
  assert.equal(keptWhenEmpty('io.k8s.api.core.v1.PodSpec')?.has('replicas'), false);
});
