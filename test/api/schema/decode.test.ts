import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pruneAndCheck, strictDecodingMessage } from '../../../src/api/schema/decode.ts';
import { schemaOf } from '../../../src/api/schema/index.ts';

function decode(kind: string, text: string, group = '', version = 'v1') {
  const schema = schemaOf({ group, version, kind });
  assert.ok(schema);
  const object = JSON.parse(text) as Record<string, unknown>;
  return { ...pruneAndCheck(schema, object), object };
}

test('drops unknown fields and reports them in document order', () => {
  const { unknownFields, typeErrors, object } = decode(
    'Pod',
    '{"spec":{"foo":1,"containers":[{"name":"a"},{"name":"b","imag":"x","ports":[{"port":1}]}]},"zzz":{}}',
  );
  assert.deepEqual(unknownFields, ['spec.foo', 'spec.containers[1].imag', 'spec.containers[1].ports[0].port', 'zzz']);
  assert.deepEqual(typeErrors, []);
  assert.deepEqual(object, { spec: { containers: [{ name: 'a' }, { name: 'b', ports: [{}] }] } });
  assert.equal(strictDecodingMessage(['a', 'b.c']), 'strict decoding error: unknown field "a", unknown field "b.c"');
});

/** Documents with upstream's errors. */
const WRONG: readonly [string, string, string][] = [
  [
    'Deployment',
    '{"spec":{"replicas":"3"}}',
    'json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32',
  ],
  [
    'Deployment',
    '{"spec":{"replicas":1.5}}',
    'json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32',
  ],
  [
    'Deployment',
    '{"spec":{"replicas":3000000000}}',
    'json: cannot unmarshal number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type int32',
  ],
  [
    'Deployment',
    '{"spec":{"template":{"spec":{"containers":[{"env":[{"name":"a","value":1}]}]}}}}',
    'json: cannot unmarshal number into Go struct field EnvVar.spec.template.spec.containers.env.value of type string',
  ],
  [
    'Deployment',
    '{"spec":[]}',
    'json: cannot unmarshal array into Go struct field Deployment.spec of type v1.DeploymentSpec',
  ],
  [
    'Deployment',
    '{"metadata":{"labels":{"a":true}}}',
    'json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string',
  ],
  [
    'Deployment',
    '{"spec":{"template":{"spec":{"containers":{}}}}}',
    'json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container',
  ],
  [
    'Deployment',
    '{"spec":{"template":{"spec":{"hostNetwork":"yes"}}}}',
    'json: cannot unmarshal string into Go struct field PodSpec.spec.template.spec.hostNetwork of type bool',
  ],
];

test("rejects wrong types with upstream's errors", () => {
  for (const [kind, text, message] of WRONG) {
    assert.deepEqual(decode(kind, text, 'apps').typeErrors, [message], text);
  }
});

test('canonicalizes or rejects quantities, times and base64', () => {
  const good = decode(
    'Pod',
    '{"metadata":{"creationTimestamp":"2026-01-02T05:04:05.678+02:00"},"spec":{"containers":[{"resources":{"limits":{"cpu":2,"memory":"2048Mi"}}}]}}',
  );
  assert.deepEqual(good.typeErrors, []);
  assert.deepEqual(good.object, {
    metadata: { creationTimestamp: '2026-01-02T03:04:05Z' },
    spec: { containers: [{ resources: { limits: { cpu: '2', memory: '2Gi' } } }] },
  });
  const lease = decode('Lease', '{"spec":{"renewTime":"2026-01-02T03:04:05.123Z"}}', 'coordination.k8s.io');
  assert.deepEqual(lease.object, { spec: { renewTime: '2026-01-02T03:04:05.123000Z' } });
  const bad = decode(
    'Pod',
    '{"metadata":{"creationTimestamp":"yesterday"},"spec":{"containers":[{"resources":{"limits":{"cpu":"1q"}}}]}}',
  );
  assert.equal(bad.typeErrors.length, 2);
  assert.match(bad.typeErrors[0] ?? '', /^metadata\.creationTimestamp: parsing time "yesterday"/);
  assert.match(bad.typeErrors[1] ?? '', /^spec\.containers\[0\]\.resources\.limits\.cpu: quantities must match/);
  assert.match(
    decode('Secret', '{"data":{"a":"a"}}').typeErrors[0] ?? '',
    /^data\.a: illegal base64 data at input byte/,
  );
  assert.deepEqual(decode('Secret', '{"data":{"a":"aGk=\\n"}}').object, { data: { a: 'aGk=' } });
});

test('decoding treats null as absent', () => {
  const { object, unknownFields, typeErrors } = decode(
    'Pod',
    '{"metadata":{"creationTimestamp":null,"labels":{"a":null}},"spec":{"containers":[{"args":["x",null]}],"volumes":null}}',
  );
  assert.deepEqual(object, { metadata: { labels: { a: '' } }, spec: { containers: [{ args: ['x', ''] }] } });
  assert.deepEqual([unknownFields, typeErrors], [[], []]);
});

test('decoding keeps a null time in a map, as Go encodes a zero time', () => {
  const { object } = decode('PodDisruptionBudget', '{"status":{"disruptedPods":{"a":null}}}', 'policy');
  assert.deepEqual(object, { status: { disruptedPods: { a: null } } });
});

test('decoding treats prototype keys as plain data', () => {
  const { object, unknownFields } = decode(
    'Pod',
    '{"__proto__":{"x":1},"constructor":{},"metadata":{"labels":{"__proto__":"a","constructor":"b"}}}',
  );
  assert.deepEqual(unknownFields, ['__proto__', 'constructor']);
  assert.equal(JSON.stringify(object), '{"metadata":{"labels":{"__proto__":"a","constructor":"b"}}}');
  assert.equal(Object.getPrototypeOf(object), Object.prototype);
  assert.equal(({} as { x?: number }).x, undefined);
});

test('limits the number of reported unknown fields', () => {
  const fields = Array.from({ length: 5000 }, (_, index) => `"f${index}":1`).join(',');
  assert.equal(decode('Pod', `{${fields}}`).unknownFields.length, 64);
});

test('decoding a decoded object returns the same object', () => {
  const text = '{"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"0.1","memory":"0.1Gi"}}}]}}';
  const once = decode('Pod', text).object;
  assert.deepEqual(decode('Pod', JSON.stringify(once)).object, once);
});
