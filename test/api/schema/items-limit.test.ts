/** Limit of the structured items in the lists and maps of a document. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pruneAndCheck } from '../../../src/api/schema/decode.ts';
import { schemaOf } from '../../../src/api/schema/index.ts';

function typeErrors(kind: string, text: string): readonly string[] {
  const schema = schemaOf({ group: '', version: 'v1', kind });
  assert.ok(schema);
  return pruneAndCheck(schema, JSON.parse(text) as Record<string, unknown>).typeErrors;
}

test('rejects more structured items than a stored object can have', () => {
  const many = (count: number) => `[${Array(count).fill('{}').join(',')}]`;
  const pod = (containers: number, volumes: number) =>
    typeErrors('Pod', `{"spec":{"containers":${many(containers)},"volumes":${many(volumes)}}}`);
  assert.deepEqual(pod(60_000, 5_536), []);
  const tooMany = 'Too many: the lists and maps must have at most 65536 items in total';
  assert.deepEqual(pod(60_000, 5_537), [`spec.volumes: ${tooMany}`]);
  assert.deepEqual(pod(65_537, 0), [`spec.containers: ${tooMany}`]);
  const nulls = typeErrors('Pod', `{"spec":{"containers":[${Array(70_000).fill('null').join(',')}]}}`);
  assert.deepEqual(nulls, [`spec.containers: ${tooMany}`]);
  const keys = Array.from({ length: 70_000 }, (_, index) => `"k${index}":"v"`).join(',');
  assert.deepEqual(typeErrors('ConfigMap', `{"data":{${keys}}}`), [], 'texts are not counted');
});
