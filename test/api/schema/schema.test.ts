import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { builtinKinds, subresourceKinds } from '../../../src/api/registry/index.ts';
import { servedAs } from '../../../src/api/registry/versions.ts';
import {
  type ListNode,
  type SchemaNode,
  schemaNameOf,
  schemaNodeAt,
  schemaOf,
  schemaOfType,
  typeNames,
} from '../../../src/api/schema/index.ts';
import { mergeKeyFacts } from '../../../src/api/schema/merge-keys.ts';
import { MESSAGES } from '../../../src/apiserver/http/protobuf/generated/messages.ts';

const pod = schemaOf({ group: '', version: 'v1', kind: 'Pod' });

function listAt(...path: string[]): ListNode {
  const node = schemaNodeAt(pod, ...path);
  assert.ok(node?.kind === 'list', path.join('.'));
  return node;
}

test('every kind and its list have a schema', () => {
  for (const kind of [...builtinKinds, ...subresourceKinds]) {
    assert.equal(schemaNameOf(kind), kind.schemaName);
    assert.ok(schemaOf(kind), kind.kind);
    if (kind.isComputed !== true) assert.ok(schemaOf({ ...kind, kind: kind.listKind }), kind.listKind);
    for (const alias of kind.aliases ?? []) assert.ok(schemaOf({ ...alias, kind: servedAs(kind, alias).kind }));
  }
  assert.equal(schemaOf({ group: 'x.example.com', version: 'v1', kind: 'Pod' }), undefined);
  assert.equal(schemaOf({ group: '', version: '__proto__', kind: 'constructor' }), undefined);
});

test('merge rules name only existing fields and types', () => {
  for (const name of mergeKeyFacts().types) assert.ok(schemaOfType(name), name);
  for (const name of mergeKeyFacts().fields) {
    const dot = name.lastIndexOf('.');
    assert.ok(schemaOfType(name.slice(0, dot))?.fields.has(name.slice(dot + 1)), name);
  }
});

/** Merge rules of a field in the form of `merge.golden`; '' if there are none. */
function mergeFactsOf(node: SchemaNode): string {
  const facts: string[] = [];
  if (node.kind === 'list') {
    if (node.listType === 'map') facts.push(`map(${node.mapKeys.join(',')})`);
    else if (node.listType === 'set') facts.push('set');
    if ('atomic' in node.items && node.items.atomic) facts.push('items:atomic');
    if (node.patchMergeKey !== undefined) facts.push(`by:${node.patchMergeKey}`);
  } else if (node.kind !== 'scalar' && node.atomic) facts.push('atomic');
  if (node.patchStrategy.length > 0) facts.push(`patch:${node.patchStrategy.join(',')}`);
  return facts.sort().join(' ');
}

test("merges all fields of stable types according to upstream's markers", () => {
  const golden = new Map<string, string>();
  for (const line of readFileSync(join(import.meta.dirname, 'merge.golden'), 'utf8')
    .trimEnd()
    .split('\n')
    .slice(1)) {
    const [name = '', ...facts] = line.split(' ');
    golden.set(name, facts.sort().join(' '));
  }
  assert.ok(golden.size > 150);
  for (const name of typeNames()) {
    if (/alpha|beta|kube-aggregator/.test(name)) continue;
    for (const [field, node] of schemaOfType(name)?.fields ?? []) {
      assert.equal(mergeFactsOf(node), golden.get(`${name}.${field}`) ?? '', `${name}.${field}`);
      golden.delete(`${name}.${field}`);
    }
  }
  assert.deepEqual([...golden.keys()], []);
});

test('merge rules of all fields equal the golden file', () => {
  const ports = listAt('spec', 'containers', 'ports');
  assert.deepEqual(
    [ports.listType, ports.mapKeys, ports.patchMergeKey],
    ['map', ['containerPort', 'protocol'], 'containerPort'],
  );
  assert.deepEqual(ports.mapKeyDefaults, { containerPort: 0, protocol: 'TCP' });
  const volumes = listAt('spec', 'volumes');
  assert.deepEqual([volumes.patchStrategy, volumes.patchMergeKey], [['merge', 'retainKeys'], 'name']);
  assert.equal(listAt('spec', 'tolerations').listType, 'atomic');
  assert.deepEqual(listAt('spec', 'tolerations').patchStrategy, []);
  assert.deepEqual(listAt('spec', 'containers', 'volumeMounts').mapKeys, ['mountPath']);
  assert.equal(listAt('metadata', 'finalizers').listType, 'set');
  assert.deepEqual(listAt('metadata', 'ownerReferences').mapKeys, ['uid']);
  assert.deepEqual([listAt('status', 'hostIPs').listType, listAt('status', 'hostIPs').patchMergeKey], ['atomic', 'ip']);
  const selector = schemaNodeAt(pod, 'spec', 'nodeSelector');
  assert.ok(selector?.kind === 'map' && selector.atomic);
  const deployment = schemaOf({ group: 'apps', version: 'v1', kind: 'Deployment' });
  const strategy = schemaNodeAt(deployment, 'spec', 'strategy');
  assert.deepEqual(strategy?.patchStrategy, ['retainKeys']);
  const labelSelector = schemaNodeAt(deployment, 'spec', 'selector');
  assert.ok(labelSelector?.kind === 'object' && labelSelector.atomic);
  const service = schemaOf({ group: '', version: 'v1', kind: 'Service' });
  const servicePorts = schemaNodeAt(service, 'spec', 'ports');
  assert.ok(servicePorts?.kind === 'list');
  assert.deepEqual([servicePorts.mapKeys, servicePorts.patchMergeKey], [['port', 'protocol'], 'port']);
});

test('schemas have the types of scalars', () => {
  const types: readonly [string[], string][] = [
    [['spec', 'containers', 'resources', 'limits', 'cpu'], 'quantity'],
    [['spec', 'overhead', 'cpu'], 'quantity'],
    [['spec', 'volumes', 'emptyDir', 'sizeLimit'], 'quantity'],
    [['spec', 'containers', 'livenessProbe', 'httpGet', 'port'], 'int-or-string'],
    [['spec', 'containers', 'ports', 'containerPort'], 'int32'],
    [['spec', 'terminationGracePeriodSeconds'], 'int64'],
    [['metadata', 'creationTimestamp'], 'date-time'],
    [['metadata', 'managedFields', 'fieldsV1'], 'any'],
    [['spec', 'hostNetwork'], 'boolean'],
  ];
  for (const [path, type] of types) {
    const node: SchemaNode | undefined = schemaNodeAt(pod, ...path);
    assert.equal(node?.kind === 'scalar' ? node.type : node?.kind, type, path.join('.'));
  }
  const lease = schemaNodeAt(
    schemaOf({ group: 'coordination.k8s.io', version: 'v1', kind: 'Lease' }),
    'spec',
    'renewTime',
  );
  assert.ok(lease?.kind === 'scalar' && lease.type === 'date-time-micro');
  const secret = schemaNodeAt(schemaOf({ group: '', version: 'v1', kind: 'Secret' }), 'data', 'x');
  assert.ok(secret?.kind === 'scalar' && secret.type === 'byte');
});

test('schemas have every quantity of the encoded protobuf messages', () => {
  const messages = Object.entries(MESSAGES);
  const quantity = messages.findIndex(([name]) => name === 'io.k8s.apimachinery.pkg.api.resource.Quantity');
  let found = 0;
  for (const [name, rows] of messages)
    for (const row of rows.split(';')) {
      const [, field = '', code = ''] = row.split(' ');
      if (code.replace(/^[*%]/, '') !== `m${quantity}`) continue;
      let node: SchemaNode | undefined = schemaOfType(name)?.fields.get(field);
      if (node === undefined) continue;
      if (node.kind === 'list' || node.kind === 'map') node = node.items;
      assert.ok(node.kind === 'scalar' && node.type === 'quantity', `${name}.${field}`);
      found++;
    }
  assert.ok(found >= 30, `only ${found} quantities were compared`);
});

test('all references between schemas resolve', () => {
  const seen = new Set<string>();
  const walk = (node: SchemaNode): void => {
    if (node.kind === 'list' || node.kind === 'map') walk(node.items);
    if (node.kind !== 'object' || seen.has(node.typeName)) return;
    seen.add(node.typeName);
    for (const field of node.fields.values()) walk(field);
    for (const required of node.required) assert.ok(node.fields.has(required), `${node.typeName}.${required}`);
  };
  for (const name of typeNames()) {
    const node = schemaOfType(name);
    assert.ok(node);
    walk(node);
  }
  assert.ok(seen.size > 200);
});

test('generating the schema types again yields the committed files', async () => {
  const api = join(import.meta.dirname, '../../../src/api');
  const files = globSync(['schema/generated/types.ts', 'generated/*/*.ts'], { cwd: api }).map((path) =>
    join(api, path),
  );
  assert.ok(files.length > 20);
  const contents = () => Promise.all(files.map((file) => readFile(file, 'utf8')));
  const before = await contents();
  await promisify(execFile)(process.execPath, [
    new URL('../../../build/generate-schemas.ts', import.meta.url).pathname,
  ]);
  assert.deepEqual(await contents(), before);
});
