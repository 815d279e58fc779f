/** Configurations of mutating policies. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject } from '../../../../src/api/meta/object.ts';
import { schemaOf } from '../../../../src/api/schema/index.ts';
import { mergeConfiguration } from '../../../../src/apiserver/core/patch/index.ts';

const schema = schemaOf({ group: 'apps', version: 'v1', kind: 'Deployment' });
const merged = (live: JsonObject, configuration: JsonObject): JsonObject =>
  mergeConfiguration(live, configuration, schema);
const pod = (spec: JsonObject): JsonObject => ({ spec: { template: { spec } } });

describe('apply configurations of mutating policies', () => {
  it('apply configurations of mutating policies are merged by list keys', () => {
    assert.deepEqual(merged({ spec: { replicas: 1, paused: true } }, { spec: { replicas: 3 } }), {
      spec: { replicas: 3, paused: true },
    });
    assert.deepEqual(
      merged(pod({ volumes: [{ name: 'x' }] }), pod({ volumes: [{ name: 'y' }] })),
      pod({
        volumes: [{ name: 'x' }, { name: 'y' }],
      }),
    );
    assert.deepEqual(
      merged(
        pod({ containers: [{ name: 'a', image: 'a' }, { name: 'b' }] }),
        pod({ containers: [{ name: 'a', env: [{ name: 'E', value: '1' }] }] }),
      ),
      pod({ containers: [{ name: 'a', image: 'a', env: [{ name: 'E', value: '1' }] }, { name: 'b' }] }),
    );
    const live = { metadata: { labels: { a: '1' } } };
    assert.deepEqual(merged(live, { metadata: { labels: { b: '2' } } }), { metadata: { labels: { a: '1', b: '2' } } });
    assert.deepEqual(live, { metadata: { labels: { a: '1' } } }, 'what is there is not touched');
  });

  it('apply configurations of mutating policies are rejected in upstream’s wording if they do not fit the schema', () => {
    const wrong: [JsonObject, string][] = [
      [
        { spec: { replicasx: 1 } },
        'failed to convert patch object to typed object: .spec.replicasx: field not declared in schema',
      ],
      [{ spec: [] }, 'failed to convert patch object to typed object: .spec: expected map, got &{[]}'],
      [
        { spec: { selector: { matchLabels: { l: 'v' } } } },
        'invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.selector',
      ],
      [
        pod({ containers: [{ name: 'a', args: ['x'], command: [] }] }),
        'invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.template.spec.containers[0].args, .spec.template.spec.containers[0].command',
      ],
      [
        pod({ nodeSelector: { a: 'b' } }),
        'invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.template.spec.nodeSelector',
      ],
    ];
    for (const [configuration, message] of wrong) {
      assert.throws(() => merged({}, configuration), { message });
    }
  });

  it('apply configurations of mutating policies without a schema are merged field by field', () => {
    assert.deepEqual(mergeConfiguration({ a: { b: 1 } }, { a: { c: [1] } }, undefined), { a: { b: 1, c: [1] } });
  });
});
