import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { semanticEqual } from '../../../src/api/meta/equality.ts';
import { apiVersionOf, type JsonObject, type JsonValue } from '../../../src/api/meta/object.ts';
import { builtinKinds, subresourceKinds } from '../../../src/api/registry/index.ts';
import { type SchemaNode, schemaNameOf, schemaOfType } from '../../../src/api/schema/index.ts';
import { decodeProtobuf } from '../../../src/apiserver/http/protobuf/decode.ts';
import {
  encodeMessage,
  envelope,
  hasMessage,
  listParts,
  watchFrame,
} from '../../../src/apiserver/http/protobuf/encode.ts';
import { type Field, indexOfMessage, messageAt } from '../../../src/apiserver/http/protobuf/field-table.ts';
import { randomDocument, randomOf } from '../../api/schema/random.ts';
import { protocOf } from './descriptors.ts';
import { filledDocument } from './filled.ts';

const RUNS = 25;
const directory = mkdtempSync(join(tmpdir(), 'he-proto-'));
after(() => rmSync(directory, { recursive: true, force: true }));

/** API groups of other projects, which support JSON only. */
const JSON_ONLY = /(\.openshift\.io|\.hyperedge\.dev|\.coreos\.com|^metal3\.io|^metrics\.k8s\.io)$/;

const gvks = [...builtinKinds, ...subresourceKinds]
  .flatMap((kind) => [kind, ...(kind.aliases ?? [])].map(({ group, version }) => ({ group, version, kind: kind.kind })))
  .filter(({ group }) => !JSON_ONLY.test(group));

/** Field names of a message, including inlined ones. */
function fieldsOf(index: number): Map<string, Field> {
  const found = new Map<string, Field>();
  for (const field of messageAt(index).values()) {
    if (field.shape === 'inline') for (const [name, inner] of fieldsOf(field.message)) found.set(name, inner);
    else found.set(field.name, field);
  }
  return found;
}

/** The document without fields that have no number because they are newer than the table. */
function numbered(node: SchemaNode, index: number, value: JsonValue): JsonValue {
  if (node.kind === 'list') return (value as JsonValue[]).map((each) => numbered(node.items, index, each));
  if (node.kind === 'map') {
    return Object.fromEntries(
      Object.entries(value as JsonObject).map(([key, each]) => [key, numbered(node.items, index, each)]),
    );
  }
  if (node.kind === 'scalar') return value;
  const fields = fieldsOf(index);
  const kept: JsonObject = {};
  for (const [name, each] of Object.entries(value as JsonObject)) {
    const field = fields.get(name);
    const type = node.fields.get(name);
    // A false without a Go pointer counts as absent.
    if (field === undefined || type === undefined || (field.omitZero && each === false)) continue;
    kept[name] = numbered(type, field.message, each);
  }
  return kept;
}

function documentOf(typeName: string, seed: number): JsonObject {
  const schema = schemaOfType(typeName);
  const index = indexOfMessage(typeName);
  assert.ok(schema !== undefined && index !== undefined, typeName);
  return numbered(schema, index, randomDocument(schema, randomOf(seed))) as JsonObject;
}

test('every built-in kind except v1beta1 CustomResourceDefinitions has a protobuf form, in every version', () => {
  for (const gvk of gvks) {
    const has = hasMessage(schemaNameOf(gvk));
    assert.equal(has, gvk.group !== 'apiextensions.k8s.io' || gvk.version === 'v1', `${apiVersionOf(gvk)} ${gvk.kind}`);
  }
  assert.equal(hasMessage('__proto__'), false);
});

test('every field of every kind has upstream’s protobuf encoding', () => {
  const golden = new Map<string, string>();
  for (const line of readFileSync(join(import.meta.dirname, 'protobuf.golden'), 'utf8')
    .trimEnd()
    .split('\n')
    .slice(1)) {
    const [apiVersion, kind, ...bytes] = line.split(' ');
    golden.set(`${apiVersion} ${kind}`, bytes.join(' '));
  }
  for (const gvk of gvks) {
    const typeName = schemaNameOf(gvk);
    const name = `${apiVersionOf(gvk)} ${gvk.kind}`;
    const known = golden.get(name);
    if (known === undefined) {
      // Kinds that k8s.io/api does not contain, or no longer contains.
      assert.match(
        name,
        /^(api(extensions|registration)\.k8s\.io|autoscaling\/v2beta[12] |policy\/v1beta1 PodSecurityPolicy)/,
      );
      continue;
    }
    const schema = schemaOfType(typeName);
    assert.ok(schema);
    const { apiVersion: _a, kind: _k, ...document } = filledDocument(schema) as JsonObject;
    const bytes = envelope(apiVersionOf(gvk), gvk.kind, encodeMessage(typeName, document));
    const digest = createHash('sha256').update(bytes).digest('hex').slice(0, 32);
    assert.equal(`${bytes.length} ${digest}`, known, name);
    // apiVersion and kind of nested objects are not encoded.
    const { apiVersion, kind, ...decoded } = decodeProtobuf(bytes);
    assert.deepEqual(encodeMessage(typeName, decoded), encodeMessage(typeName, document), `${apiVersion} ${kind}`);
    golden.delete(name);
  }
  assert.deepEqual([...golden.keys()], []);
});

test('decodes an empty map value as null for a time and as 0 for a quantity', () => {
  const budget = { status: { disruptedPods: { a: null } } };
  assert.deepEqual(
    decodeProtobuf(
      envelope('policy/v1', 'PodDisruptionBudget', encodeMessage('io.k8s.api.policy.v1.PodDisruptionBudget', budget)),
    )['status'],
    budget.status,
  );
  // A quota whose map `hard` has the key `cpu` without a value.
  const quota = Buffer.from('12070a050a03637075', 'hex');
  assert.deepEqual(decodeProtobuf(envelope('v1', 'ResourceQuota', quota))['spec'], { hard: { cpu: '0' } });
});

test('decoding protobuf keeps or omits zero values as upstream’s JSON does', () => {
  const zeros: readonly (readonly [string, string, JsonObject, JsonObject])[] = [
    ['apps/v1', 'DaemonSet', { numberReady: 0, numberAvailable: 0 }, { numberReady: 0 }],
    ['policy/v1', 'PodDisruptionBudget', { disruptionsAllowed: 0, observedGeneration: 0 }, { disruptionsAllowed: 0 }],
    ['policy/v1beta1', 'PodDisruptionBudget', { disruptionsAllowed: 0 }, { disruptionsAllowed: 0 }],
    ['autoscaling/v2beta2', 'HorizontalPodAutoscaler', { currentReplicas: 0 }, { currentReplicas: 0 }],
    ['storage.k8s.io/v1beta1', 'VolumeAttachment', { attached: false }, { attached: false }],
  ];
  for (const [apiVersion, kind, status, expected] of zeros) {
    const [group = '', version = ''] = apiVersion.split('/');
    const message = encodeMessage(schemaNameOf({ group, version, kind }), { status });
    assert.deepEqual(decodeProtobuf(envelope(apiVersion, kind, message))['status'], expected, `${apiVersion} ${kind}`);
  }
});

test('decoding an encoded protobuf object returns an equal object', () => {
  let compared = 0;
  for (const gvk of gvks) {
    const typeName = schemaNameOf(gvk);
    // The schema of definitions is open; protobuf-definitions.test.ts tests them.
    if (!hasMessage(typeName) || gvk.group === 'apiextensions.k8s.io') continue;
    for (let seed = 1; seed <= RUNS; seed++) {
      const document = documentOf(typeName, seed);
      const { apiVersion, kind, ...decoded } = decodeProtobuf(
        envelope(apiVersionOf(gvk), gvk.kind, encodeMessage(typeName, document)),
      );
      assert.deepEqual([apiVersion, kind], [apiVersionOf(gvk), gvk.kind]);
      if (!semanticEqual(decoded, document)) assert.deepEqual(decoded, document, `${typeName} seed ${seed}`);
      compared++;
    }
  }
  assert.ok(compared > 1000);
});

/** Strings of a document with their field names, which a decoder must show. */
function texts(node: SchemaNode, value: JsonValue, name: string, found: [string, string][]): void {
  if (node.kind === 'list') for (const each of value as JsonValue[]) texts(node.items, each, name, found);
  else if (node.kind === 'object') {
    for (const [field, each] of Object.entries(value as JsonObject)) {
      const type = node.fields.get(field);
      if (type !== undefined) texts(type, each, field, found);
    }
  } else if (node.kind === 'scalar' && node.type === 'string') found.push([name, String(value)]);
}

/** A string as protoc's text format quotes it. */
function quoted(text: string): string {
  const bytes = [...Buffer.from(text)];
  const shown = bytes.map((byte) =>
    byte < 0x80 ? String.fromCharCode(byte) : `\\${byte.toString(8).padStart(3, '0')}`,
  );
  return `"${shown.join('')}"`;
}

test("protoc decodes the bytes with kubectl's descriptors, and encodes the same bytes", (t) => {
  const protoc = protocOf(directory);
  if (protoc === undefined) return t.skip('no protoc or no kubectl on this machine');
  let compared = 0;
  for (const gvk of gvks) {
    const typeName = schemaNameOf(gvk);
    const message = typeName.replace(/^io\.k8s\./, 'k8s.io.');
    if (!hasMessage(typeName) || !protoc.knows(message)) continue;
    const document = documentOf(typeName, 7);
    const bytes = encodeMessage(typeName, document);
    const text = protoc.decode(message, bytes);
    // A number instead of a name is a field unknown to the descriptors; an older kubectl has fewer.
    const unknown = /^\s*\d+[ :{]/m.test(text);
    const schema = schemaOfType(typeName);
    assert.ok(schema);
    const found: [string, string][] = [];
    texts(schema, document, '', found);
    const lower = text.toLowerCase();
    for (const [name, value] of found) {
      if (name === 'apiVersion' || name === 'kind' || unknown) continue;
      const wanted = `${name}: ${quoted(value)}`.toLowerCase();
      const inList = lower.includes(`items: ${quoted(value)}`.toLowerCase());
      assert.ok(lower.includes(wanted) || inList, `${typeName}: ${wanted}`);
    }
    if (!unknown) assert.ok(protoc.encode(message, text).equals(bytes), typeName);
    compared++;
  }
  assert.ok(compared > 30, String(compared));
});

test('encodes the protobuf envelope, a list and a watch frame', () => {
  const lease = encodeMessage('io.k8s.api.coordination.v1.Lease', {
    metadata: { name: 'a', creationTimestamp: '1970-01-01T00:00:01Z' },
    spec: { leaseDurationSeconds: 15, renewTime: '1970-01-01T00:00:02.000003Z' },
  });
  assert.equal(lease.toString('hex'), '0a090a01614204080110001209100f2205080210b817');
  const whole = envelope('coordination.k8s.io/v1', 'Lease', lease);
  const head = Buffer.concat([
    Buffer.from('k8s\0'),
    Buffer.from([0x0a, 0x1f, 0x0a, 0x16]),
    Buffer.from('coordination.k8s.io/v1'),
    Buffer.from([0x12, 0x05]),
    Buffer.from('Lease'),
    Buffer.from([0x12, lease.length]),
  ]);
  assert.deepEqual(whole, Buffer.concat([head, lease, Buffer.from([0x1a, 0, 0x22, 0])]));
  const frame = watchFrame('ADDED', whole);
  assert.equal(frame.readUInt32BE(0), frame.length - 4);
  const raw = Buffer.concat([Buffer.from([0x0a, whole.length]), whole]);
  assert.deepEqual(
    frame.subarray(4),
    Buffer.concat([Buffer.from([0x0a, 5]), Buffer.from('ADDED'), Buffer.from([0x12, raw.length]), raw]),
  );
  const list = Buffer.concat([...listParts('v1', 'L', { resourceVersion: '9' }, [Buffer.from('x'), Buffer.alloc(0)])]);
  assert.equal(list.toString('hex'), `6b3873000a070a02763112014c120a${'0a03120139'}${'120178'}${'1200'}1a002200`);
});

test('protobuf encoding keeps explicit zeros, and omits absent fields', () => {
  const deployment = (spec: JsonObject): JsonValue =>
    decodeProtobuf(envelope('apps/v1', 'Deployment', encodeMessage('io.k8s.api.apps.v1.Deployment', { spec })))[
      'spec'
    ] ?? null;
  assert.deepEqual(deployment({ replicas: 0, paused: false, selector: {} }), { replicas: 0, selector: {} });
  assert.deepEqual(deployment({ strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: '25%' } } }), {
    strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: '25%' } },
  });
});

test('protobuf decoding treats prototype names as plain data', () => {
  const object = JSON.parse(
    '{"metadata":{"labels":{"__proto__":"x","constructor":"y"}},"data":{"__proto__":"z"}}',
  ) as JsonObject;
  const bytes = envelope('v1', 'ConfigMap', encodeMessage('io.k8s.api.core.v1.ConfigMap', object));
  const { apiVersion: _a, kind: _k, ...decoded } = decodeProtobuf(bytes);
  assert.equal(JSON.stringify(decoded), JSON.stringify(object));
});

test('skips fields of newer releases, and rejects invalid bytes', () => {
  const known = encodeMessage('io.k8s.api.core.v1.ConfigMap', { data: { a: 'b' } });
  // Fields 900 to 903, one of each wire type.
  const newer = Buffer.from('a03801a1380000000000000000aa3802abcdb53800000000', 'hex');
  const decoded = decodeProtobuf(envelope('v1', 'ConfigMap', Buffer.concat([newer, known])));
  assert.deepEqual(decoded, { apiVersion: 'v1', kind: 'ConfigMap', data: { a: 'b' } });
  for (const broken of ['ff', '0a05', '0b0c', 'a23805']) {
    assert.throws(() => decodeProtobuf(envelope('v1', 'ConfigMap', Buffer.from(broken, 'hex'))), { httpCode: 400 });
  }
  assert.throws(() => decodeProtobuf(envelope('v1', 'Nothing', known)), { httpCode: 415 });
});
